"""More packets than the machine can process: how late answers are, and how far off, with shedding and without.

One flow goes through all loads, one after the other, with quiet times between them, as it would in a night.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import FOLDER, later_file, stream_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.api.run import Run

_TARGET, _FILES, _HOSTS, _BATCHES = 6, 8, 2000, 60
_LOADS = (1, 2, 3, 5)
_FEWEST = 14
#: The files of a step of a target's length under the heaviest load. Lighter ones leave some of them out, so that time
#: goes on at the same pace, and windows close as often, at every load.
_MOST = max(_LOADS) * _FILES
#: The steps that packets are made for, which come again and again: as long as a window.
_MADE = 10
_RANGE, _SLIDE, _WITHIN = 60, 20, 1
_CLAUSE = f"[RANGE {_RANGE} seconds, SLIDE {_SLIDE} seconds]"
#: What it begins with, and what comes between loads, in parts of the capacity.
_WARM, _QUIET = [0.25, 0.5] * 12, [0.4] * 6
_NET = "substring_index({}, '.', 3)"
_SOURCE, _DEST = {"net": _NET.format("srcIP")}, {"dest": _NET.format("destIP")}
_ALL = "sum(len) AS bytes, avg(len) AS size, min(len) AS smallest, max(len) AS largest"
#: Seven queries: what each is grouped by, what it counts, and what else it tells of it. None has the groups of another;
#: the hosts are many, and so worse off in a sample than the rest.
_QUERIES: dict[str, tuple[dict[str, str], str, str]] = {
    "hosts": ({"srcIP": "srcIP"}, "true", _ALL),
    "marks": ({"proto": "proto", "flags": "flags"}, "true", _ALL),
    "routes": (_SOURCE | _DEST, "true", _ALL),
    "services": ({"destPort": "destPort", "proto": "proto"}, "true", _ALL),
    "states": (_SOURCE | {"flags": "flags"}, "proto = 'tcp'", _ALL),
    "uses": (_DEST | {"destPort": "destPort"}, "true", _ALL),
    "sizes": (_SOURCE | {"hundreds": "len DIV 100"}, "true", "avg(len) AS size"),
}


def _sql(keys: Mapping[str, str], where: str, others: str) -> str:
    columns = ", ".join([*(f"{sql} AS {key}" for key, sql in keys.items()), "count(*) AS n", others])
    return f"SELECT {columns} {_CLAUSE} FROM packets WHERE {where} GROUP BY {', '.join(keys.values())}"


QUERIES = {name: _sql(*query) for name, query in _QUERIES.items()}


@dataclass(frozen=True)
class Phase:
    """Some steps at a load."""

    name: str
    loads: Sequence[float]
    counts: bool = True


@dataclass
class Batch:
    """What was seen of a batch."""

    rows: int
    seconds: float
    ended: float
    rate: float
    """The rate at which tuples would be taken for all queries alike, if that were to take as long."""


@dataclass
class Night:
    """A flow with files that come at the pace that steps say."""

    phases: Sequence[Phase]
    made: Sequence[Path]
    """The files of the steps that come again and again."""
    folder: Path
    each: int
    arrived: list[float] = field(default_factory=list)
    batches: dict[int, Batch] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """How many packets have been read."""
        return sum(batch.rows for batch in self.batches.values())

    @cached_property
    def lanes(self) -> list[tuple[int, int]]:
        """The step of each file, and its place in it."""
        loads = [load for phase in self.phases for load in phase.loads]
        many = [round(load * _FILES) for load in loads]
        return [(step, i * _MOST // files) for step, files in enumerate(many) for i in range(files)]

    def feed(self, live: Path) -> None:
        """Lets the files of each step appear, evenly. Time stands still while those of a phase are made."""
        first = 0
        for phase in self.phases:
            last = first + len(phase.loads)
            places = [place for place in self.lanes if first <= place[0] < last]
            while self.read < self.each * len(self.arrived):
                time.sleep(0.05)
            for file in live.iterdir():  # They would fill the disk.
                file.unlink()
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                files = list(threads.map(self._make, places))
            begun = time.monotonic()
            for number, ((step, lane), file) in enumerate(zip(places, files, strict=True)):
                for soon in files[number : number + _MOST]:  # What has just been written is in memory, as a rule.
                    _fetch(soon)
                time.sleep(max(begun + (step - first + lane / _MOST) * _TARGET - time.monotonic(), 0))
                self.arrived.append(time.monotonic())
                file.rename(live / file.name)
            first = last

    def _make(self, place: tuple[int, int]) -> Path:
        (again, step), lane = divmod(place[0], _MADE), place[1]
        file = self.folder / f"{place[0] * _MOST + lane:06d}.parquet"
        later_file(self.made[step * _MOST + lane], again * _MADE * _TARGET, file)
        return file

    def delays(self, first: int, last: int) -> list[float]:
        """Of the windows that end in some steps, the seconds from when they could be answered to when they were."""
        places = [(step * _MOST + lane + 1) * _TARGET / _MOST - _WITHIN for step, lane in self.lanes]
        read = np.cumsum([batch.rows // self.each for batch in self.batches.values()])
        ended = [batch.ended for batch in self.batches.values()]
        found = []
        for end in range(math.ceil(first * _TARGET / _SLIDE) * _SLIDE, last * _TARGET, _SLIDE):
            number = int(np.searchsorted(places, end))
            if number < read[-1]:
                found.append(ended[int(np.searchsorted(read, number, side="right"))] - self.arrived[number])
        return found

    def of(self, first: int, last: int) -> list[Batch]:
        """The batches that begin with a file of some steps."""
        steps = [step for step, _ in self.lanes]
        found, number = [], 0
        for batch in self.batches.values():
            if batch.rows and first <= steps[number] < last:
                found.append(batch)
            number += batch.rows // self.each
        return found


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the tables; `rows` bounds how many packets come, but a load is always longer than a window."""
    capacity = _capacity(spark)
    console.print(f"capacity: {capacity:,.0f} packets a second, in batches of {_TARGET} s")
    each = int(capacity * _TARGET / _FILES)
    batches = min(max(rows // (each * _FILES * (sum(_LOADS) + 5)), _FEWEST), _BATCHES)
    step = max(batches // 3, 1)
    phases = [Phase("", _WARM, counts=False)]
    for load in _LOADS:
        phases += [Phase(f"{load} x", [load] * batches), Phase("", _QUIET, counts=False)]
    phases += [Phase("0.9 x", [0.9] * step), Phase("then 3 x", [3] * step), Phase("then 0.9 x", [0.9] * step)]
    table = Table(
        "load",
        "batches",
        "median s",
        "longest s",
        "longest delay s",
        "last delay s",
        "error %",
        "at the input %",
        "exact %",
        title=f"target {_TARGET} s",
    )
    _follow(spark, phases, each, table, shedding=True)
    for load in _LOADS:
        unshed = Phase(f"{load} x, not shed", [load] * min(batches, 12))
        _follow(spark, [Phase("", _WARM[:8], counts=False), unshed], each, table, shedding=False)
    console.print(table, soft_wrap=True)


def _follow(spark: SparkSession, phases: Sequence[Phase], each: int, table: Table, shedding: bool) -> None:
    made = stream_files(spark, _MADE * _MOST, _HOSTS, _MADE * _TARGET, each)
    scratch = Path(tempfile.mkdtemp(dir=FOLDER))  # Beside them is room for the files of a night, which are many.
    try:
        night = Night(phases, sorted(made.glob("part-*.parquet")), scratch / "made", each)
        night.folder.mkdir()
        done = _followed(spark, night, scratch, shedding)
        first = 0
        for phase in phases:
            last = first + len(phase.loads)
            if phase.counts:
                _told(table, phase, night, done, night.made, first, last)
            first = last
    finally:
        shutil.rmtree(scratch)


def _fetch(file: Path) -> None:
    """Has a file read into memory, soon."""
    with suppress(FileNotFoundError), file.open("rb") as handle:
        os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def _flow(spark: SparkSession, source: Any, checkpoint: Path, shedding: bool) -> hg.Flow:
    flow = hg.Flow(spark, "bench", str(checkpoint))
    flow.stream("packets", source, progress=hg.progress("ts", within=f"{_WITHIN} second"))
    for name, sql in QUERIES.items():
        flow.query(name, sql, policy=hg.estimate() if shedding else None)
    return flow


def _capacity(spark: SparkSession) -> float:
    """The packets a second of which a batch takes as long as it may: from batches of two sizes."""
    small, large, each = 6, 20, 250_000
    folder = stream_files(spark, 6 * large, _HOSTS, 480, each)
    taken = {}
    for many in (small, large, small, large):
        scratch = Path(tempfile.mkdtemp())
        source = hg.sources.files(str(folder), max_files_per_batch=many)
        done = _flow(spark, source, scratch, shedding=False).run_available()
        taken[many] = statistics.mean(sum(r.seconds.values()) for r in done.reports[2:])
        shutil.rmtree(scratch)
    a_tuple = max(taken[large] - taken[small], 0.01) / ((large - small) * each)
    fixed = max(taken[large] - large * each * a_tuple, 0.0)
    return max(_TARGET * 0.9 - fixed, 0.2) / a_tuple / _TARGET


def _followed(spark: SparkSession, night: Night, scratch: Path, shedding: bool) -> Run:
    live = scratch / "live"
    live.mkdir()
    source = hg.sources.files(str(live), schema=spark.read.parquet(str(night.made[0])).schema)
    flow = _flow(spark, source, scratch / "checkpoint", shedding)
    run = flow.start(overload=hg.overload(_TARGET) if shedding else None)
    feeder = threading.Thread(target=night.feed, args=(live,))
    feeder.start()
    while feeder.is_alive() or (shedding and night.read < night.each * len(night.arrived)):
        for report in run.reports:
            if report.batch not in night.batches:
                taken = sum(report.seconds.values())
                night.batches[report.batch] = Batch(report.rows, taken, time.monotonic(), _alike(run))
        time.sleep(0.02)
    run.stop()
    return run


def _alike(run: Run) -> float:
    rate: float = run.status()["shedding"]["alike"]
    return rate


def _told(table: Table, phase: Phase, night: Night, run: Run, made: Sequence[Path], first: int, last: int) -> None:
    batches, delays = night.of(first, last), night.delays(first, last)
    seconds = [batch.seconds for batch in batches] or [0.0]
    # The error of a sum goes by what tuples weigh: a batch at a low rate spoils the windows it is in.
    rows = sum(batch.rows for batch in batches)
    rate = rows / sum(batch.rows / batch.rate for batch in batches) if rows else 1.0
    error, at_input, exact = _judged(run, made, phase.loads[0], rate, first * _TARGET, last * _TARGET)
    table.add_row(
        phase.name,
        str(len(batches)),
        f"{statistics.median(seconds):.1f}",
        f"{max(seconds):.1f}",
        f"{max(delays, default=math.inf):.1f}",
        f"{delays[-1] if delays else math.inf:.1f}",
        f"{100 * error:.2f}",
        f"{100 * at_input:.2f}",
        f"{100 * exact:.0f}",
    )


def _judged(
    run: Run, made: Sequence[Path], load: float, rate: float, first: int, last: int
) -> tuple[float, float, float]:
    """Compares counts with those of another engine, over the windows that lie within some seconds at one load.

    It gives the largest mean error of a query, weighted by tuples, with all groups that a window has, delivered or not;
    the same if as many tuples were dropped at the input, for all queries alike, as takes as long; and the share of
    answers that are exact. The same packets come every `_RANGE` seconds, so all windows that start at the same
    place in it are alike.
    """
    errors, at_input, sampled, every = [0.0], [0.0], 0, 0
    dice = np.random.default_rng(1)
    many = round(load * _FILES)
    files = [str(made[step * _MOST + i * _MOST // many]) for step in range(_MADE) for i in range(many)]
    for name, (keys, where, _) in _QUERIES.items():
        given = run.results(name).select(*keys, "window_start", "n", "sampling_rate").toArrow()
        texts = {key: sql.replace("substring_index", "nets").replace(" DIV ", " // ") for key, sql in keys.items()}
        by = "".join(f"{sql} AS {key}, " for key, sql in texts.items())
        same = " AND ".join(f"given.{key} = exact.{key}" for key in keys)
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            db.execute("CREATE MACRO nets(ip, dot, many) AS regexp_extract(ip, '^[^.]*[.][^.]*[.][^.]*')")
            db.register("given", given)
            # As long as what comes again and again, a window holds all of it, wherever it starts.
            db.execute(
                f"CREATE TABLE exact AS SELECT {by}count(*) AS n FROM read_parquet({files}) WHERE {where} GROUP BY ALL"
            )
            since = f"epoch(window_start) - (SELECT epoch(min(ts)) FROM read_parquet({files[:1]}))"
            windows = f"SELECT DISTINCT window_start FROM given WHERE {since} BETWEEN {first} AND {last - _RANGE}"
            rows = db.execute(
                f"SELECT exact.n::DOUBLE, coalesce(given.n, 0)::DOUBLE, given.sampling_rate"
                f" FROM ({windows}) AS windows CROSS JOIN exact"
                f" LEFT JOIN given ON given.window_start = windows.window_start AND {same}"
            ).fetchnumpy()
        true, told, rates = (np.ma.filled(column, 0.0) for column in rows.values())
        if not len(true):
            continue
        errors.append(float(np.abs(told - true).sum() / true.sum()))
        drawn = dice.binomial(true.astype(int), rate) / rate
        at_input.append(float(np.abs(drawn - true).sum() / true.sum()))
        sampled, every = sampled + int((rates < 1).sum()), every + len(true)
    return max(errors), max(at_input), 1 - sampled / max(every, 1)
