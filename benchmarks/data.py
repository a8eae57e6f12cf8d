"""Generated packets on disk, made once for each set of parameters."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.packets import packets

_FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-data"


def packet_files(spark: SparkSession, rows: int, hosts: int, seconds: int = 3600) -> DataFrame:
    """Packets of one hour by default, read from Parquet."""
    folder = _FOLDER / f"packets-{rows}-{hosts}-{seconds}"
    if not (folder / "_SUCCESS").exists():
        packets(spark, rows, hosts=hosts, seconds=seconds).write.mode("overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))


def stream_files(spark: SparkSession, files: int, hosts: int, seconds: int = 3600, rows_each: int = 1_000_000) -> Path:
    """A folder of files with so many packets each, one after the other in time, as a stream brings them."""
    folder = _FOLDER / f"stream-{files}-{hosts}-{seconds}-{rows_each}"
    if not (folder / "_SUCCESS").exists():
        rows = packets(spark, files * rows_each, hosts=hosts, seconds=seconds, partitions=files)
        rows.write.mode("overwrite").parquet(str(folder))
        # A file stream takes files by age, so their ages have to follow their times.
        for number, file in enumerate(sorted(folder.glob("part-*.parquet"))):
            os.utime(file, (number, number))
    return folder


def repeated_files(folder: Path, seconds: int, times: int) -> Path:
    """The packets of a folder again and again, so many seconds later each time: much faster than to make more."""
    repeated = folder.with_name(f"{folder.name}-{times}-times")
    if not (repeated / "_SUCCESS").exists():
        repeated.mkdir(parents=True, exist_ok=True)
        files = sorted(folder.glob("part-*.parquet"))
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            for number in range(times * len(files)):
                again, file = divmod(number, len(files))
                later = f"SELECT * REPLACE (ts + to_seconds({again * seconds}) AS ts) FROM '{files[file]}'"
                name = repeated / f"part-{number:06d}.parquet"
                db.execute(f"COPY ({later}) TO '{name}' (COMPRESSION snappy)")
                os.utime(name, (number, number))
        (repeated / "_SUCCESS").touch()
    return repeated
