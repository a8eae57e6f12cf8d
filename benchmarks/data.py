"""Generated packets on disk, made once for each set of parameters."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.packets import packets

_FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-data"


def packet_files(spark: SparkSession, rows: int, hosts: int, seconds: int = 3600) -> DataFrame:
    """Packets of one hour by default, read from Parquet."""
    folder = _FOLDER / f"packets-{rows}-{hosts}-{seconds}"
    if not (folder / "_SUCCESS").exists():
        packets(spark, rows, hosts=hosts, seconds=seconds).write.mode("overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))
