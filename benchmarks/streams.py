"""A flow against Spark's own streaming aggregation: the same files, one or five a batch, at growing overlap."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import stream_files

#: Batches that are not counted: code is still being compiled in them.
WARM_UP = 3


def run(spark: SparkSession, console: Console, files: int) -> None:
    """Prints the table."""
    folder = stream_files(spark, files, hosts=5000)
    table = Table(
        "files a batch", "RANGE / SLIDE", "window() s", "headgate s", "ratio", title="1 M packets a file, 5,000 hosts"
    )
    for per_batch in (1, 5):
        for overlap in (10, 60):
            native = batch_seconds(spark, folder, per_batch, overlap, ours=False)
            ours = batch_seconds(spark, folder, per_batch, overlap, ours=True)
            table.add_row(str(per_batch), str(overlap), f"{native:.2f}", f"{ours:.2f}", f"{native / ours:.1f}")
    console.print(table)


def batch_seconds(spark: SparkSession, folder: Path, per_batch: int, overlap: int, *, ours: bool) -> float:
    """The median time of a batch, from trigger to commit."""
    scratch = tempfile.mkdtemp()
    try:
        seconds = (flow if ours else native)(spark, folder, per_batch, overlap, scratch)
        return statistics.median(seconds[min(WARM_UP, len(seconds) - 1) :])
    finally:
        shutil.rmtree(scratch)


def flow(spark: SparkSession, folder: Path, per_batch: int, overlap: int, scratch: str) -> list[float]:
    """Headgate's times of all batches."""
    made = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    source = hg.sources.files(str(folder), max_files_per_batch=per_batch)
    made.stream("packets", source, progress=hg.progress("ts", within="1 minute"))
    clause = f"[RANGE {overlap} minutes, SLIDE 1 minute]"
    made.query("q", f"SELECT srcIP, count(*) AS n, sum(len) AS bytes {clause} FROM packets GROUP BY srcIP")
    return made.run_available().batch_seconds()


def native(spark: SparkSession, folder: Path, per_batch: int, overlap: int, scratch: str) -> list[float]:
    """The times of all batches of Spark's own aggregation."""
    schema = spark.read.parquet(str(folder)).schema
    packets = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch).parquet(str(folder))
    windows = packets.withWatermark("ts", "1 minute").groupBy(F.window("ts", f"{overlap} minutes", "1 minute"), "srcIP")
    answers = windows.agg(F.count("*").alias("n"), F.sum("len").alias("bytes"))
    writer = answers.writeStream.format("noop").option("checkpointLocation", f"{scratch}/native")
    query = writer.outputMode("append").trigger(availableNow=True).start()
    query.awaitTermination()
    return [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"]]
