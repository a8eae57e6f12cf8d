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

#: Files that are not counted: in the batches that have them, code is still being compiled.
WARM_UP = 3
#: Whole runs before the one that counts: the code of a flow is warm after a minute or two.
WARM_RUNS = 3


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the tables: against Spark's own, and one of our own windows against another."""
    files = max(2, rows // 1_000_000)
    folder = stream_files(spark, files, hosts=5000)
    table = Table(
        "files a batch", "RANGE / SLIDE", "window() s", "headgate s", "ratio", title="1 M packets a file, 5,000 hosts"
    )
    for per_batch in (1, 5):
        for overlap in (10, 60):
            clause = f"[RANGE {overlap} minutes, SLIDE 1 minute]"
            sql = f"SELECT srcIP, count(*) AS n, sum(len) AS bytes {clause} FROM packets GROUP BY srcIP"
            for _ in range(WARM_RUNS):  # Spark's own gets warm in its own long batches.
                flow(spark, folder, per_batch, sql)
            theirs, ours = native(spark, folder, per_batch, overlap), flow(spark, folder, per_batch, sql)
            table.add_row(str(per_batch), str(overlap), f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.1f}")
    console.print(table)
    console.print(_by_overlap(spark, stream_files(spark, files, hosts=500)))
    console.print(_almost_empty(spark))


def _by_overlap(spark: SparkSession, folder: Path) -> Table:
    table = Table(
        "aggregate", "s at 1", "s at 600", "ratio", title="500 hosts, SLIDE 6 seconds, RANGE / SLIDE = 1 and 600"
    )
    for aggregate in ("sum", "max"):
        times = []
        for overlap in (1, 600):
            clause = f"[RANGE {6 * overlap} seconds, SLIDE 6 seconds]"
            sql = f"SELECT srcIP, {aggregate}(len) AS m {clause} FROM packets GROUP BY srcIP"
            flow(spark, folder, 1, sql)
            times.append(flow(spark, folder, 1, sql))
        table.add_row(aggregate, f"{times[0]:.2f}", f"{times[1]:.2f}", f"{times[1] / times[0]:.2f}")
    return table


def _almost_empty(spark: SparkSession) -> Table:
    folder = stream_files(spark, 20, hosts=5000, rows_each=100)
    sql = (
        "SELECT srcIP, count(*) AS n, sum(len) AS bytes [RANGE 10 minutes, SLIDE 1 minute] FROM packets GROUP BY srcIP"
    )
    flow(spark, folder, 1, sql)
    native(spark, folder, 1, 10)
    theirs, ours = native(spark, folder, 1, 10), flow(spark, folder, 1, sql)
    table = Table("window() s", "headgate s", "ratio", title="100 packets a batch")
    table.add_row(f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.1f}")
    return table


def flow(spark: SparkSession, folder: Path, per_batch: int, sql: str) -> float:
    """The median time of a batch of a flow, from its trigger to its commit."""
    scratch = tempfile.mkdtemp()
    made = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    source = hg.sources.files(str(folder), max_files_per_batch=per_batch)
    made.stream("packets", source, progress=hg.progress("ts", within="1 minute"))
    made.query("q", sql)
    seconds = made.run_available().batch_seconds()
    shutil.rmtree(scratch)
    return _median(seconds, per_batch)


def native(spark: SparkSession, folder: Path, per_batch: int, overlap: int) -> float:
    """The median time of a batch of Spark's own aggregation."""
    scratch = tempfile.mkdtemp()
    schema = spark.read.parquet(str(folder)).schema
    packets = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch).parquet(str(folder))
    windows = packets.withWatermark("ts", "1 minute").groupBy(F.window("ts", f"{overlap} minutes", "1 minute"), "srcIP")
    answers = windows.agg(F.count("*").alias("n"), F.sum("len").alias("bytes"))
    writer = answers.writeStream.format("noop").option("checkpointLocation", f"{scratch}/native")
    query = writer.outputMode("append").trigger(availableNow=True).start()
    query.awaitTermination()
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"]]
    shutil.rmtree(scratch)
    return _median(seconds, per_batch)


def _median(seconds: list[float], per_batch: int) -> float:
    cold = -(-WARM_UP // per_batch)
    return statistics.median(seconds[min(cold, len(seconds) - 1) :])
