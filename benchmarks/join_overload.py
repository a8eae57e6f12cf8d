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
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.run import Run

_TARGET, _FILES_A_TARGET, _BATCHES, _LOAD = 3.0, 4, 15, 3
#: What it begins with, in parts of the capacity.
_WARM = [0.25, 0.5] * 8
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
    """Prints the table; `rows` bounds how many tuples a stream has."""
    small, capacity = 50_000, _capacity(spark, 50_000)
    console.print(f"capacity: {capacity:,.0f} tuples a second on each side, in batches of {_TARGET:g} s")
    files = (_LOAD * _BATCHES + round(sum(_WARM))) * _FILES_A_TARGET
    each = min(int(capacity * _TARGET / _FILES_A_TARGET), rows // files) or small
    folder = _streams(spark, files, each)
    table = Table(
        *("method", "batches", "median s", "longest s", "within target %", "pairs a tuple", "pairs, of expected %"),
        title=f"{_LOAD} times the capacity, target {_TARGET:g} s",
    )
    for name, policy in _POLICIES.items():
        _shed_once(spark, folder, name)
        found = _outcome(spark, folder, policy)
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


def _streams(spark: SparkSession, files: int, each: int) -> Path:
    """Two streams, a file for each second, with keys by a law of Zipf; those frequent in one are not in the other."""
    folder = FOLDER / f"join-{files}-{each}-{_KEYS}"
    if (folder / "done").exists():
        return folder
    for seed, side in enumerate(_SIDES):
        key = f"CAST(pow({_KEYS}D, pmod(xxhash64(id, {seed}L), 1000000) / 1e6D) AS BIGINT)"
        columns = (
            f"timestamp_micros(id * 1000000 div {each}) AS ts",
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


def _capacity(spark: SparkSession, each: int) -> float:
    """The tuples a second of which a batch takes as long as it may, with windows full: from batches of two sizes."""
    folder = _streams(spark, 4 * _WINDOW, each)
    taken = {}
    for many in (2, 6, 2, 6):
        scratch = tempfile.mkdtemp()
        sources = {side: hg.sources.files(str(folder / side), max_files_per_batch=many) for side in _SIDES}
        done = _flow(spark, sources, scratch, hg.subset(method="probe-no-insert")).run_available()
        full = [r for r in done.reports if r.rows == 2 * many * each][_WINDOW // many :]
        taken[many] = statistics.median(sum(r.seconds.values()) for r in full)
        shutil.rmtree(scratch)
    a_file = max(taken[6] - taken[2], 0.01) / 4
    fixed = max(taken[2] - 2 * a_file, 0.0)
    return max(_TARGET * 0.9 - fixed, 0.2) / a_file * each / _TARGET


def _outcome(spark: SparkSession, folder: Path, policy: Any) -> Outcome:
    """Lets files appear at the pace that each step of a target's length says, and follows the flow."""
    scratch = tempfile.mkdtemp()
    live = {side: Path(scratch, side) for side in _SIDES}
    sources = {}
    for side, path in live.items():
        path.mkdir()
        sources[side] = hg.sources.files(str(path), schema=spark.read.parquet(str(folder / side)).schema)
    flow = _flow(spark, sources, scratch, policy)
    run = flow.start(trigger=f"{_TARGET:g} seconds", overload=hg.overload(_TARGET))
    feeder = threading.Thread(target=_feed, args=(folder, live, [*_WARM, *([_LOAD] * _BATCHES)]))
    feeder.start()
    found, last = Outcome(), -1
    while feeder.is_alive():
        status = run.status()
        if status["batch"] > last and status.get("shedding", {}).get("active"):
            last = status["batch"]
            _add(found, run, status)
        time.sleep(0.05)
    run.stop()
    shutil.rmtree(scratch)
    return found


def _add(found: Outcome, run: Run, status: dict[str, Any]) -> None:
    report, join = run.reports[-1], status["joins"]["pairs"]
    if report.batch != status["batch"] or not report.rows:
        return
    found.seconds.append(sum(report.seconds.values()))
    found.expected += join["expected"] or 0.0
    found.delivered += join["delivered"]
    found.tuples += report.rows
    found.why = join["plan"]


def _feed(folder: Path, live: dict[str, Path], steps: Sequence[float]) -> None:
    """Lets so many files of each side appear in each step, evenly."""
    begun = time.monotonic()
    left = iter(zip(*(sorted((folder / side).glob("part-*.parquet")) for side in live), strict=True))
    count = 0
    for number, step in enumerate(steps):
        many = round(step * _FILES_A_TARGET)
        for i, files in enumerate(islice(left, many)):
            time.sleep(max(begun + (number + i / many) * _TARGET - time.monotonic(), 0))
            for file, path in zip(files, live.values(), strict=True):
                os.link(file, path / f".{file.name}")
                (path / f".{file.name}").rename(path / f"{count:06d}.parquet")
            count += 1
