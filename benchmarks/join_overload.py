"""A join of more tuples than the machine can match: how long batches take, and how many pairs come out of them."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.api.run import Run

_TARGET, _FILES_A_TARGET, _BATCHES, _FEWEST, _LOAD = 3.0, 4, 40, 12, 3
#: The files of a step of a target's length under overload. Lighter loads leave some of them out, so that time goes on
#: at the same pace, and windows are as long, at every load.
_MOST = _FILES_A_TARGET * _LOAD
#: What it begins with, in parts of the capacity.
_WARM = [0.25, 0.5] * 12
_KEYS, _WINDOW = 200_000, 12
_SIDES = ("L", "R")
_SQL = (
    f"SELECT L.ts AS lt, R.ts AS rt, L.v, R.v AS w FROM L [RANGE {_WINDOW} seconds, WA ts], R [RANGE {_WINDOW} seconds,"
    " WA ts] WHERE L.k = R.k"
)
_POLICIES: dict[str, Any] = {
    "by-key": hg.subset(),
    "probe-no-insert": hg.subset(method="probe-no-insert"),
    "sample": hg.sample(),
}


@dataclass
class Outcome:
    """What a run came to, once it was overloaded."""

    seconds: list[float] = field(default_factory=list)
    expected: float = 0.0
    delivered: float = 0.0
    tuples: int = 0
    why: str = ""


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the table; `rows` bounds how many tuples a stream has, but a dozen batches are shed at least."""
    capacity = _capacity(spark)
    console.print(f"capacity: {capacity:,.0f} tuples a second on each side, in batches of {_TARGET:g} s")
    each = int(capacity * _TARGET / _FILES_A_TARGET)
    batches = min(max(rows // (each * _MOST) - len(_WARM), _FEWEST), _BATCHES)
    folder = _streams(spark, (len(_WARM) + batches) * _MOST, each, _MOST)
    table = Table(
        *("method", "batches", "median s", "longest s", "within target %", "pairs a tuple", "pairs, of expected %"),
        title=f"{_LOAD} times the capacity, target {_TARGET:g} s",
    )
    for name, policy in _POLICIES.items():
        _shed_once(spark, folder, name)
        found = _outcome(spark, folder, policy, batches)
        within = sum(s <= _TARGET for s in found.seconds) / len(found.seconds)
        table.add_row(
            name,
            str(len(found.seconds)),
            f"{statistics.median(found.seconds):.1f}",
            f"{max(found.seconds):.1f}",
            f"{100 * within:.0f}",
            f"{found.delivered / found.tuples:.3f}",
            f"{100 * found.delivered / found.expected:.0f}",
        )
        console.print(f"{name}: {found.why}")
    console.print(table)


def _shed_once(spark: SparkSession, folder: Path, name: str) -> None:
    """Runs a few batches as they are when they are shed, so that the code of that is warm."""
    scratch = tempfile.mkdtemp()
    live = {side: Path(scratch, side) for side in _SIDES}
    for side, path in live.items():
        path.mkdir()
        for file in sorted((folder / side).glob("part-*.parquet"))[:4]:
            os.link(file, path / file.name)
    policy = hg.sample(rate=0.5) if name == "sample" else hg.subset(drop=0.5, method=name)
    sources = {side: hg.sources.files(str(path), max_files_per_batch=1) for side, path in live.items()}
    _flow(spark, sources, scratch, policy).run_available()
    shutil.rmtree(scratch)


def _streams(spark: SparkSession, files: int, each: int, a_target: int) -> Path:
    """Two streams, so many files a target, keys by a law of Zipf; those frequent in one are not in the other."""
    folder = FOLDER / f"join-{files}-{each}-{a_target}-{_KEYS}"
    if (folder / "done").exists():
        return folder
    step = round(_TARGET * 1_000_000) // a_target
    for seed, side in enumerate(_SIDES):
        key = f"CAST(pow({_KEYS}D, pmod(xxhash64(id, {seed}L), 1000000) / 1e6D) AS BIGINT)"
        columns = (
            f"timestamp_micros(id * {step} div {each}) AS ts",
            f"{key} * {7919**seed} % {_KEYS} AS k",
            "id AS v",
        )
        rows = spark.range(files * each, numPartitions=files).selectExpr(*columns)
        rows.write.mode("overwrite").parquet(str(folder / side))
    (folder / "done").touch()
    return folder


def _flow(spark: SparkSession, sources: dict[str, Any], scratch: str, policy: Any) -> hg.Flow:
    flow = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    for side, source in sources.items():
        flow.stream(side, source, progress=hg.progress("ts", ordered=True))
    flow.query("pairs", _SQL, policy=policy)
    flow.sink("pairs", _nowhere)
    return flow


def _nowhere(_pairs: DataFrame, _batch: int) -> None:
    """Takes the pairs, which are on disk by then."""


def _capacity(spark: SparkSession) -> float:
    """The tuples a second of which a batch takes as long as it may, with windows full."""
    _taken(spark, 10_000)  # Code gets warm.
    each, before = 10_000, (0, 0.0)
    while (taken := _taken(spark, each)) < 0.9 * _TARGET:
        each, before = 2 * each, (each, taken)
    part = (0.9 * _TARGET - before[1]) / (taken - before[1])
    return (before[0] + part * (each - before[0])) * _FILES_A_TARGET / _TARGET


def _taken(spark: SparkSession, each: int) -> float:
    """How long a batch of so many tuples a file takes."""
    window = round(_WINDOW / _TARGET)
    folder = _streams(spark, _FILES_A_TARGET * (window + 4), each, _FILES_A_TARGET)
    scratch = tempfile.mkdtemp()
    sources = {side: hg.sources.files(str(folder / side), max_files_per_batch=_FILES_A_TARGET) for side in _SIDES}
    done = _flow(spark, sources, scratch, hg.subset(method="probe-no-insert")).run_available()
    shutil.rmtree(scratch)
    return statistics.median(sum(r.seconds.values()) for r in done.reports[window:] if r.rows)


def _outcome(spark: SparkSession, folder: Path, policy: Any, batches: int) -> Outcome:
    """Lets files appear at the pace that each step of a target's length says, and follows the flow."""
    scratch = tempfile.mkdtemp()
    live = {side: Path(scratch, side) for side in _SIDES}
    sources = {}
    for side, path in live.items():
        path.mkdir()
        sources[side] = hg.sources.files(str(path), schema=spark.read.parquet(str(folder / side)).schema)
    flow = _flow(spark, sources, scratch, policy)
    run = flow.start(trigger=f"{_TARGET:g} seconds", overload=hg.overload(_TARGET))
    feeder = threading.Thread(target=_feed, args=(folder, live, [*_WARM, *([_LOAD] * batches)]))
    feeder.start()
    found, last = Outcome(), -1
    while feeder.is_alive():
        status = run.status()
        told = run.reports and run.reports[-1].batch == status["batch"]
        if told and status["batch"] > last and status["shedding"]["active"]:
            last = status["batch"]
            _add(found, run, status)
        time.sleep(0.05)
    run.stop()
    shutil.rmtree(scratch)
    return found


def _add(found: Outcome, run: Run, status: dict[str, Any]) -> None:
    report, join = run.reports[-1], status["joins"]["pairs"]
    if not report.rows:
        return
    found.seconds.append(sum(report.seconds.values()))
    found.expected += join["expected"] or 0.0
    found.delivered += join["delivered"]
    found.tuples += report.rows
    found.why = join["plan"]


def _feed(folder: Path, live: dict[str, Path], steps: Sequence[float]) -> None:
    """Lets so many files of each side appear in each step, evenly."""
    begun = time.monotonic()
    made = {side: sorted((folder / side).glob("part-*.parquet")) for side in live}
    for step, load in enumerate(steps):
        many = round(load * _FILES_A_TARGET)
        for lane in (i * _MOST // many for i in range(many)):
            time.sleep(max(begun + (step + lane / _MOST) * _TARGET - time.monotonic(), 0))
            number = step * _MOST + lane
            for side, path in live.items():
                os.link(made[side][number], path / f".{number:06d}.parquet")
                (path / f".{number:06d}.parquet").rename(path / f"{number:06d}.parquet")
