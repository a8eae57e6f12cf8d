"""What it costs to be able to drop: the same flow under policies that drop nothing, against one that never drops."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import stream_files
from benchmarks.sharing import MONITORS
from headgate.shed.policy import Policy

POLICIES: dict[str, Policy] = {
    "exact": hg.exact(),
    "subset, no window dropped": hg.subset(gap=10, drop=0.0),
    "estimate, not sampled": hg.estimate(),
    "estimate, a sample of everything": hg.estimate(rate=1.0),
}
QUERIES = ("transfers", "services")
#: Whole runs of each flow that count, after one in which code gets warm.
_ROUNDS, _WARM = 4, 1
#: Batches of a run that do not count: the first ones begin the windows.
_FIRST = 2


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the table."""
    files = min(max(4, rows // 1_000_000), 10)
    folder = stream_files(spark, files, hosts=5000)
    taken: dict[str, list[float]] = {name: [] for name in POLICIES}
    for number in range(_ROUNDS + _WARM):
        for name in POLICIES:  # In turns, so that noise of the machine meets all alike.
            seconds = batches(spark, folder, files, POLICIES[name])
            taken[name] += seconds if number >= _WARM else []
    table = Table("policy", "median batch s", "throughput against exact", title="1 M packets a batch, two queries")
    for name, seconds in taken.items():
        ratio = statistics.median(taken["exact"]) / statistics.median(seconds)
        table.add_row(name, f"{statistics.median(seconds):.3f}", f"{ratio:.3f}")
    console.print(table)


def batches(spark: SparkSession, folder: Path, files: int, policy: Policy) -> list[float]:
    """How long the batches of a flow took that follows its stream live, a file a batch."""
    scratch = tempfile.mkdtemp()
    flow = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    source = hg.sources.files(str(folder), max_files_per_batch=1)
    flow.stream("packets", source, progress=hg.progress("ts", within="1 minute"))
    for name in QUERIES:
        flow.query(name, MONITORS[name].sql, policy=policy)
    started = flow.start(trigger="0 seconds")
    while len(started.reports) < files:
        started.await_termination(0.05)
    started.stop()
    shutil.rmtree(scratch)
    return [sum(report.seconds.values()) for report in started.reports[_FIRST:]]
