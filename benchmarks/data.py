"""Generated packets on disk, made once for each set of parameters."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from headgate.connect.packets.packets import packets

#: The columns that are few texts again and again.
_TEXTS = ["srcIP", "destIP", "proto", "flags"]
#: Where all of it is.
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-data"


def packet_files(spark: SparkSession, rows: int, hosts: int, seconds: int = 3600) -> DataFrame:
    """Packets of one hour by default, read from Parquet."""
    folder = FOLDER / f"packets-{rows}-{hosts}-{seconds}"
    if not (folder / "_SUCCESS").exists():
        packets(spark, rows, hosts=hosts, seconds=seconds).write.mode("overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))


def stream_files(spark: SparkSession, files: int, hosts: int, seconds: int = 3600, rows_each: int = 1_000_000) -> Path:
    """A folder of files with so many packets each, one after the other in time, as a stream brings them."""
    folder = FOLDER / f"stream-{files}-{hosts}-{seconds}-{rows_each}"
    if not (folder / "_SUCCESS").exists():
        rows = packets(spark, files * rows_each, hosts=hosts, seconds=seconds, partitions=files)
        rows.write.mode("overwrite").parquet(str(folder))
        # A file stream takes files by age, so their ages have to follow their times.
        for number, file in enumerate(sorted(folder.glob("part-*.parquet"))):
            os.utime(file, (number, number))
    return folder


def later_file(file: Path, seconds: int, to: Path) -> None:
    """The packets of a file once more, so many seconds later: much faster than to make others."""
    packets = pq.read_table(file, read_dictionary=_TEXTS)
    times = packets["ts"]
    later = pc.add(times.cast(pa.int64()), seconds * 1_000_000).cast(times.type)
    pq.write_table(
        packets.set_column(packets.column_names.index("ts"), "ts", later),
        to,
        compression="snappy",
        use_dictionary=[*_TEXTS, "destPort", "len"],
        row_group_size=1 << 20,
    )
