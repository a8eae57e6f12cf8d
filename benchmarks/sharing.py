"""Seven network-monitoring queries: one flow that shares its work against seven streaming queries of Spark's own."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import stream_files


@dataclass(frozen=True)
class Monitor:
    """A query in both languages: its keys, its filter, its window in minutes."""

    keys: tuple[str, ...]
    where: str
    range: int
    slide: int
    sums: bool = True

    @property
    def sql(self) -> str:
        """The query for a flow."""
        calls = "count(*) AS n" + (", sum(len) AS bytes" if self.sums else "")
        select = ", ".join([*self.keys, calls])
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        clause = f"[RANGE {self.range} minutes, SLIDE {self.slide} minutes]"
        return f"SELECT {select} {clause} FROM packets WHERE {self.where}{group}"


#: The hour of the talkers is what a dashboard of hosts shows; the short windows are what alarms need.
HOUR, SHORT = 60, 10
MONITORS = {
    "talkers": Monitor(("srcIP",), "true", HOUR, 1),
    "connections": Monitor(("srcIP",), "proto = 'tcp' AND flags = 'SYN'", 5, 1, sums=False),
    "lookups": Monitor(("destIP",), "destPort = 53", 1, 1, sums=False),
    "transfers": Monitor(("srcIP",), "len > 1000", 10, 5),
    "services": Monitor(("destPort",), "proto <> 'icmp'", 5, 1),
    "total": Monitor((), "true", 1, 1),
    "busiest": Monitor(("destPort",), "srcIP = '10.0.0.1'", 60, 1),
}


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the table."""
    folder = stream_files(spark, max(2, rows // 1_000_000), hosts=5000)
    short = MONITORS | {"talkers": replace(MONITORS["talkers"], range=SHORT)}
    table = Table("talkers over", "seven of Spark's own", "one flow", "ratio", title="seconds, 1 M packets a batch")
    native(spark, folder, short)  # Both sides are warmed up.
    for minutes, monitors in ((SHORT, short), (HOUR, MONITORS)):
        for _ in range(3):
            flow(spark, folder, monitors)
        theirs, ours = native(spark, folder, monitors), flow(spark, folder, monitors)
        table.add_row(f"{minutes} minutes", f"{theirs:.1f}", f"{ours:.1f}", f"{theirs / ours:.1f}")
    console.print(table)


def flow(spark: SparkSession, folder: Path, monitors: Mapping[str, Monitor]) -> float:
    """The time of one flow with all queries."""
    scratch = tempfile.mkdtemp()
    made = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    source = hg.sources.files(str(folder), max_files_per_batch=1)
    made.stream("packets", source, progress=hg.progress("ts", within="1 minute"))
    for name, monitor in monitors.items():
        made.query(name, monitor.sql)
    begun = time.perf_counter()
    made.run_available()
    taken = time.perf_counter() - begun
    shutil.rmtree(scratch)
    return taken


def native(spark: SparkSession, folder: Path, monitors: Mapping[str, Monitor]) -> float:
    """The time of as many streaming queries, all at the same time."""
    scratch = tempfile.mkdtemp()
    schema = spark.read.parquet(str(folder)).schema
    begun, queries = time.perf_counter(), []
    for name, monitor in monitors.items():
        packets = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
        window = F.window("ts", f"{monitor.range} minutes", f"{monitor.slide} minutes")
        grouped = packets.where(monitor.where).withWatermark("ts", "1 minute").groupBy(window, *monitor.keys)
        sums = [F.sum("len").alias("bytes")] if monitor.sums else []
        writer = grouped.agg(F.count("*").alias("n"), *sums).writeStream.format("noop").outputMode("append")
        writer = writer.option("checkpointLocation", f"{scratch}/{name}").trigger(availableNow=True)
        queries.append(writer.start())
    for query in queries:
        query.awaitTermination()
    taken = time.perf_counter() - begun
    shutil.rmtree(scratch)
    return taken
