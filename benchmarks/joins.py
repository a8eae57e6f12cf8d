"""A window join of two streams on four columns: one flow against Spark's own join of streams, at growing rates."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import FOLDER
from headgate.connect.packets.packets import packets

#: Tuples a second, and seconds of stream in a batch: as a flow goes that keeps up, and one that catches up.
SETTINGS = ((4_000, 5), (4_000, 60), (20_000, 5), (20_000, 30), (100_000, 5), (200_000, 5))
#: Files of each stream, and the batches that are not counted.
_FILES, _WARM_UP = 8, 3
_BAND = 10
_PAIRS = ("srcIP", "destIP"), ("destIP", "srcIP"), ("srcPort", "destPort"), ("destPort", "srcPort")


@dataclass(frozen=True)
class Measured:
    """The median time of a batch, and the most that was kept: tuples, and what they take."""

    seconds: float
    rows: int
    bytes: int


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the table; `rows` bounds how many tuples a stream has."""
    columns = ("tuples/s", "s of stream", "Spark's join, s", "kept", "MB", "headgate, s", "kept", "MB", "ratio")
    table = Table(*columns, title=f"median batch, {_BAND} s band")
    for rate, seconds in SETTINGS:
        if rate * seconds * _FILES > rows:
            continue
        folder = _both_ways(spark, rate, seconds)
        for _ in range(2):  # The first time, to warm up.
            theirs, ours = native(spark, folder), flow(spark, folder)
        figures = [f for m in (theirs, ours) for f in (f"{m.seconds:.2f}", f"{m.rows:,}", f"{m.bytes / 1e6:.0f}")]
        table.add_row(f"{rate:,}", str(seconds), *figures, f"{theirs.seconds / ours.seconds:.1f}")
    console.print(table)


def _both_ways(spark: SparkSession, rate: int, seconds: int) -> Path:
    """Packets, and answers to them that go the other way up to five seconds later, a file for every few seconds."""
    folder = FOLDER / f"both-ways-{rate}-{seconds}"
    if (folder / "done").exists():
        return folder
    asked = packets(spark, rate * seconds * _FILES, hosts=5000, seconds=seconds * _FILES, partitions=_FILES)
    later = F.expr("timestamp_micros(unix_micros(ts) + pmod(hash(srcIP, srcPort, ts), 5000000))")
    answers = asked.select(later.alias("ts"), *(F.col(there).alias(here) for here, there in _PAIRS))
    for name, df in (("asked", asked), ("answered", answers)):
        staged, slices = folder / "staged", F.expr(f"unix_micros(ts) div {seconds * 1_000_000}").alias("slice")
        sliced = df.select("*", slices).repartition("slice")
        sliced.write.mode("overwrite").partitionBy("slice").parquet(str(staged))
        (folder / name).mkdir(exist_ok=True)
        for number, part in enumerate(sorted(staged.glob("slice=*"))):  # All of the same length, in order of time.
            (file,) = part.glob("part-*.parquet")
            os.utime(file.rename(folder / name / f"{number:04d}.parquet"), (number, number))
    (folder / "done").touch()
    return folder


def flow(spark: SparkSession, folder: Path) -> Measured:
    """The join as a flow; what it keeps is on disk."""
    scratch = tempfile.mkdtemp()
    made = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    for name in ("asked", "answered"):
        source = hg.sources.files(str(folder / name), max_files_per_batch=1)
        made.stream(name, source, progress=hg.progress("ts", within="1 second"))
    same = " AND ".join(f"a.{here} = b.{there}" for here, there in _PAIRS)
    clause = f"[RANGE {_BAND} seconds, WA ts]"
    both = f"asked AS a {clause}, answered AS b {clause}"
    made.query("pairs", f"SELECT a.ts AS asked, b.ts AS answered FROM {both} WHERE {same}")
    made.sink("pairs", _nowhere)
    run = made.run_available()
    shutil.rmtree(scratch)
    seconds = statistics.median(run.batch_seconds()[_WARM_UP:])
    return Measured(seconds, max(r.state_rows for r in run.reports), max(r.state_bytes for r in run.reports))


def _nowhere(_pairs: DataFrame, _batch: int) -> None:
    """Takes the pairs, as the sink `noop` of Spark's own does."""


def native(spark: SparkSession, folder: Path) -> Measured:
    """Spark's own join; what it keeps is in memory, and on disk as well."""
    scratch = tempfile.mkdtemp()

    def stream(name: str) -> DataFrame:
        schema = spark.read.parquet(str(folder / name)).schema
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        return files.select("ts", "srcIP", "destIP", "srcPort", "destPort").withWatermark("ts", "1 second").alias(name)

    same = " AND ".join(f"asked.{here} = answered.{there}" for here, there in _PAIRS)
    band = f"INTERVAL {_BAND} seconds"
    on = f"{same} AND answered.ts >= asked.ts - {band} AND answered.ts < asked.ts + {band}"
    pairs = stream("asked").join(stream("answered"), F.expr(on)).select("asked.ts", "answered.ts")
    writer = pairs.toDF("asked", "answered").writeStream.format("noop").option("checkpointLocation", scratch)
    query = writer.outputMode("append").trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    most = {
        figure: max(sum(operator[figure] for operator in p["stateOperators"]) for p in progress)
        for figure in ("numRowsTotal", "memoryUsedBytes")
    }
    shutil.rmtree(scratch)
    seconds = statistics.median(p["durationMs"]["triggerExecution"] / 1000 for p in progress[_WARM_UP:])
    return Measured(seconds, most["numRowsTotal"], most["memoryUsedBytes"])
