"""More packets than the machine can process: how late answers are, and how far off, with shedding and without."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import stream_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.run import Run

_TARGET, _FILES_A_TARGET, _HOSTS, _BATCHES = 5.0, 4, 2000, 60
_LOADS = (1, 2, 3, 5)
#: What it begins with, in parts of the capacity.
_WARM = [0.25, 0.5] * 8
_CLAUSE = "[RANGE 60 seconds, SLIDE 20 seconds]"
#: Seven queries over four sets of keys, some of them much finer, and so worse off in a sample, than others.
QUERIES = {
    "hosts": f"SELECT srcIP, count(*) AS n, sum(len) AS bytes {_CLAUSE} FROM packets GROUP BY srcIP",
    "connections": f"SELECT srcIP, count(*) AS n {_CLAUSE} FROM packets WHERE flags = 'SYN' GROUP BY srcIP",
    "targets": f"SELECT destIP, count(*) AS n, avg(len) AS size {_CLAUSE} FROM packets GROUP BY destIP",
    "services": f"SELECT destPort, count(*) AS n, sum(len) AS bytes {_CLAUSE} FROM packets GROUP BY destPort",
    "protocols": f"SELECT proto, count(*) AS n, stddev(len) AS spread {_CLAUSE} FROM packets GROUP BY proto",
    "large": f"SELECT proto, count(*) AS n {_CLAUSE} FROM packets WHERE len > 1000 GROUP BY proto",
    "total": f"SELECT count(*) AS n, sum(len) AS bytes, avg(len) AS size {_CLAUSE} FROM packets",
}


@dataclass
class Outcome:
    """What a run at some load came to."""

    delays: list[float]
    """By batch, the seconds from the arrival of its first file to its end."""
    seconds: list[float]
    error: float
    """The relative error of answers, averaged over windows, of the query with the largest."""
    exact: float
    """The part of the answers that are exact."""


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the tables; `rows` bounds how many packets the heaviest load brings."""
    capacity = _capacity(spark)
    console.print(f"capacity: {capacity:,.0f} packets a second, in batches of {_TARGET:g} s")
    each = int(capacity * _TARGET / _FILES_A_TARGET)
    batches = min(_BATCHES, rows // (max(_LOADS) * _FILES_A_TARGET * each))
    files = (max(_LOADS) * batches + len(_WARM)) * _FILES_A_TARGET
    folder = stream_files(spark, files, _HOSTS, int(files * _TARGET / _FILES_A_TARGET), each)
    exact = _exact(spark, folder)
    table = Table(
        "load",
        "batches",
        "median s",
        "longest s",
        "longest delay s",
        "last delay s",
        "error %",
        "exact %",
        title=f"target {_TARGET:g} s",
    )
    for load in _LOADS:
        for name, shedding in ((f"{load} x", True), (f"{load} x, not shed", False)):
            steps = [load] * (batches if shedding else min(batches, 20))
            _told(table, name, _outcome(spark, folder, each, steps, shedding, exact))
    third = batches // 3
    _told(
        table, "0.9, 3, 0.9 x", _outcome(spark, folder, each, [0.9] * third + [3] * third + [0.9] * third, True, exact)
    )
    console.print(table)


def _told(table: Table, name: str, outcome: Outcome) -> None:
    seconds = outcome.seconds
    table.add_row(
        name,
        str(len(seconds)),
        f"{statistics.median(seconds):.1f}",
        f"{max(seconds):.1f}",
        f"{max(outcome.delays):.1f}",
        f"{outcome.delays[-1]:.1f}",
        f"{100 * outcome.error:.2f}",
        f"{100 * outcome.exact:.0f}",
    )


def _flow(spark: SparkSession, source: Any, scratch: str, shedding: bool) -> hg.Flow:
    flow = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    flow.stream("packets", source, progress=hg.progress("ts", within="1 second"))
    for name, sql in QUERIES.items():
        flow.query(name, sql, policy=hg.estimate() if shedding else None)
    return flow


def _capacity(spark: SparkSession) -> float:
    """The packets a second of which a batch takes as long as it may: from batches of two sizes."""
    folder = stream_files(spark, 16, _HOSTS, 160, 250_000)
    taken = {}
    for many in (1, 4, 1, 4):
        scratch = tempfile.mkdtemp()
        source = hg.sources.files(str(folder), max_files_per_batch=many)
        done = _flow(spark, source, scratch, shedding=False).run_available()
        taken[many] = statistics.median(sum(r.seconds.values()) for r in done.reports[1:])
        shutil.rmtree(scratch)
    each = max(taken[4] - taken[1], 0.01) / 750_000
    fixed = max(taken[4] - 1_000_000 * each, 0.0)
    return max(_TARGET * 0.9 - fixed, 0.2) / each / _TARGET


def _exact(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    packets = spark.read.parquet(str(folder))
    found = {}
    for name, sql in QUERIES.items():
        found[name] = hg.evaluate(sql.replace("seconds]", "seconds, WA ts]"), packets=packets).localCheckpoint()
    return found


def _outcome(
    spark: SparkSession, folder: Path, each: int, steps: Sequence[float], shedding: bool, exact: dict[str, DataFrame]
) -> Outcome:
    """Lets files appear at the pace that each step of a target's length says, and follows the flow."""
    scratch = tempfile.mkdtemp()
    live = Path(scratch, "live")
    live.mkdir()
    source = hg.sources.files(str(live), schema=spark.read.parquet(str(folder)).schema)
    flow = _flow(spark, source, scratch, shedding)
    run = flow.start(trigger=f"{_TARGET:g} seconds", overload=hg.overload(_TARGET) if shedding else None)
    arrived: list[float] = []
    files = sorted(folder.glob("part-*.parquet"))
    # At first so few that the flow gets warm, and its model has batches to learn from, before it counts.
    feeder = threading.Thread(target=_feed, args=(live, files, [*_WARM, *steps], arrived))
    feeder.start()
    ends: dict[int, float] = {}
    while feeder.is_alive() or (shedding and sum(r.rows for r in run.reports) < each * len(arrived)):
        for report in run.reports:
            ends.setdefault(report.batch, time.monotonic())
        time.sleep(0.02)
    run.stop()
    warm = sum(round(step * _FILES_A_TARGET) for step in _WARM)
    delays, seconds, first = [], [], 0
    for report in run.reports:
        if first >= warm and report.batch in ends:
            delays.append(ends[report.batch] - arrived[first])
            seconds.append(sum(report.seconds.values()))
        first += report.rows // each
    error, share = _error(run, exact)
    shutil.rmtree(scratch)
    return Outcome(delays, seconds, error, share)


def _feed(live: Path, files: Sequence[Path], steps: Sequence[float], arrived: list[float]) -> None:
    """Lets so many files appear in each step, evenly."""
    begun, left = time.monotonic(), iter(files)
    for number, step in enumerate(steps):
        many = round(step * _FILES_A_TARGET)
        for i, file in enumerate(islice(left, many)):
            due = begun + (number + i / many) * _TARGET
            time.sleep(max(due - time.monotonic(), 0))
            arrived.append(time.monotonic())
            os.link(file, live / f".{file.name}")
            (live / f".{file.name}").rename(live / f"{len(arrived):06d}.parquet")


def _error(run: Run, exact: dict[str, DataFrame]) -> tuple[float, float]:
    """The largest mean error of a query's answers, weighted by their tuples, and the part that is exact."""
    errors, sampled, every = [0.0], 0, 0
    for name, answers in exact.items():
        given = run.results(name)
        keys = [c for c in answers.columns if c in ("srcIP", "destIP", "destPort", "proto", "window_start")]
        known = answers.select(*keys, F.col("n").alias("exact"))
        both = given.select(*keys, "n", "sampling_rate").join(known, keys)
        row = both.selectExpr("sum(abs(n - exact)) / sum(exact)", "count_if(sampling_rate < 1)", "count(*)").first()
        assert row is not None
        errors.append(row[0] or 0.0)
        sampled, every = sampled + row[1], every + row[2]
    return max(errors), 1 - sampled / max(every, 1)
