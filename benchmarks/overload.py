"""More packets than the machine can process: how late answers are, and how far off, with shedding and without."""

from __future__ import annotations

import math
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import repeated_files, stream_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.runtime.run import Run

_TARGET, _FILES_A_TARGET, _HOSTS, _BATCHES = 5.0, 8, 2000, 60
_LOADS = (1, 2, 3, 5)
#: The files of a step of the heaviest load.
_MOST = max(_LOADS) * _FILES_A_TARGET
#: The steps that packets are made for; they come again and again.
_MADE = 12
#: What it begins with, in parts of the capacity.
_WARM = [0.25, 0.5] * 8
_CLAUSE = "[RANGE 60 seconds, SLIDE 20 seconds]"
_NET = "substring_index({}, '.', 3)"
#: Seven queries: what each is grouped by, what it counts, and what else it tells of it. Some of them are much finer,
#: and so worse off in a sample, than others.
_QUERIES = {
    "hosts": ({"srcIP": "srcIP"}, "true", "sum(len) AS bytes"),
    "connections": ({"srcIP": "srcIP"}, "flags = 'SYN'", "max(len) AS largest"),
    "targets": ({"destIP": "destIP"}, "true", "avg(len) AS size"),
    "nets": ({"net": _NET.format("srcIP")}, "true", "sum(len) AS bytes, stddev(len) AS spread"),
    "routes": ({"net": _NET.format("srcIP"), "dest": _NET.format("destIP")}, "true", "avg(len) AS size"),
    "services": ({"destPort": "destPort"}, "true", "sum(len) AS bytes"),
    "total": ({}, "true", "sum(len) AS bytes, avg(len) AS size"),
}


def _sql(keys: Mapping[str, str], where: str, others: str) -> str:
    columns = ", ".join([*(f"{sql} AS {key}" for key, sql in keys.items()), "count(*) AS n", others])
    group = f" GROUP BY {', '.join(keys.values())}" if keys else ""
    return f"SELECT {columns} {_CLAUSE} FROM packets WHERE {where}{group}"


QUERIES = {name: _sql(*query) for name, query in _QUERIES.items()}


@dataclass
class Outcome:
    """What a run at some load came to."""

    delays: list[float]
    """By batch, the seconds from the arrival of its first file to its end."""
    seconds: list[float]
    error: float
    """The relative error of answers, averaged over windows, of the query with the largest."""
    input_error: float
    """The same if as many tuples were dropped at the input, for all queries alike, as takes as long."""
    exact: float
    """The part of the answers that are exact."""


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the tables; `rows` bounds how many packets the heaviest load brings."""
    capacity = _capacity(spark)
    console.print(f"capacity: {capacity:,.0f} packets a second, in batches of {_TARGET:g} s")
    each = int(capacity * _TARGET / _FILES_A_TARGET)
    batches = min(_BATCHES, rows // (max(_LOADS) * _FILES_A_TARGET * each))
    # As many files for each step as the heaviest load brings. Lighter ones leave some of them out, so that time goes on
    # at the same pace, and windows close as often, at every load.
    made = stream_files(spark, _MADE * _MOST, _HOSTS, int(_MADE * _TARGET), each)
    folder = repeated_files(made, int(_MADE * _TARGET), math.ceil((len(_WARM) + batches) / _MADE))
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
        title=f"target {_TARGET:g} s",
    )
    for load in _LOADS:
        for name, shedding in ((f"{load} x", True), (f"{load} x, not shed", False)):
            loads = [load] * (batches if shedding else min(batches, 12))
            _told(table, name, _outcome(spark, folder, each, loads, shedding))
    third = batches // 3
    _told(table, "0.9, 3, 0.9 x", _outcome(spark, folder, each, [0.9] * third + [3] * third + [0.9] * third, True))
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
        f"{100 * outcome.input_error:.2f}",
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


def _outcome(spark: SparkSession, folder: Path, each: int, loads: Sequence[float], shedding: bool) -> Outcome:
    """Lets files appear at the pace that each step of a target's length says, and follows the flow."""
    scratch = tempfile.mkdtemp()
    live = Path(scratch, "live")
    live.mkdir()
    source = hg.sources.files(str(live), schema=spark.read.parquet(str(folder)).schema)
    flow = _flow(spark, source, scratch, shedding)
    run = flow.start(trigger=f"{_TARGET:g} seconds", overload=hg.overload(_TARGET) if shedding else None)
    arrived: list[float] = []
    # At first so few that the flow gets warm, and its model has batches to learn from, before it counts.
    feeder = threading.Thread(
        target=_feed, args=(live, sorted(folder.glob("part-*.parquet")), [*_WARM, *loads], arrived)
    )
    feeder.start()
    ends: dict[int, float] = {}
    rates: dict[int, float] = {}
    while feeder.is_alive() or (shedding and sum(r.rows for r in run.reports) < each * len(arrived)):
        for report in run.reports:
            ends.setdefault(report.batch, time.monotonic())
        if shedding and run.reports:
            rates.setdefault(run.reports[-1].batch, _input_rate(run))
        time.sleep(0.02)
    run.stop()
    warm = sum(round(load * _FILES_A_TARGET) for load in _WARM)
    delays, seconds, first = [], [], 0
    counted = []
    for report in run.reports:
        if first >= warm and report.batch in ends:
            delays.append(ends[report.batch] - arrived[first])
            seconds.append(sum(report.seconds.values()))
            counted.append(rates.get(report.batch, 1.0))
        first += report.rows // each
    outcome = _judged(run, delays, seconds, statistics.mean(counted), live)
    shutil.rmtree(scratch)
    return outcome


def _feed(live: Path, files: Sequence[Path], loads: Sequence[float], arrived: list[float]) -> None:
    """Lets so many of the files of each step appear, evenly."""
    begun = time.monotonic()
    for number, load in enumerate(loads):
        many = round(load * _FILES_A_TARGET)
        for i in range(many):
            due = begun + (number + i / many) * _TARGET
            time.sleep(max(due - time.monotonic(), 0))
            file = files[number * _MOST + i * _MOST // many]
            arrived.append(time.monotonic())
            os.link(file, live / f".{file.name}")
            (live / f".{file.name}").rename(live / f"{len(arrived):06d}.parquet")


def _input_rate(run: Run) -> float:
    """The rate at which tuples would be taken for all queries alike, if that were to take as long as the last plan."""
    shedding = run.status().get("shedding", {})
    rates: dict[str, float] = shedding.get("rates", {})
    costs: dict[str, float] = shedding.get("tuple_costs", {})
    if not rates or not any(costs.values()):
        return 1.0
    return sum(costs[name] * rates.get(name, 1.0) for name in QUERIES) / sum(costs[name] for name in QUERIES)


def _judged(run: Run, delays: list[float], seconds: list[float], rate: float, live: Path) -> Outcome:
    """Compares counts with those of another engine: the largest mean error of a query, weighted by their tuples.

    Windows that were delivered count, with all groups that they have, delivered or not.
    """
    errors, at_input, sampled, every = [0.0], [0.0], 0, 0
    dice = np.random.default_rng(1)
    for name, (keys, where, _) in _QUERIES.items():
        given = run.results(name).select(*keys, "window_start", "n", "sampling_rate").toArrow()
        by = "".join(f"{sql.replace('substring_index', 'nets')} AS {key}, " for key, sql in keys.items())
        panes = f"SELECT {by}time_bucket(INTERVAL 20 seconds, ts) AS pane, count(*) AS n FROM packets WHERE {where}"
        rolled = f"SELECT *, unnest([0, 20, 40]) AS ago FROM ({panes} GROUP BY ALL)"
        windows = f"SELECT {''.join(f'{k}, ' for k in keys)}pane - to_seconds(ago) AS window_start, sum(n) AS n"
        exact = f"{windows} FROM ({rolled}) GROUP BY ALL"
        same = " AND ".join(f"given.{key} = exact.{key}" for key in (*keys, "window_start"))
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            db.execute("CREATE MACRO nets(ip, dot, many) AS regexp_extract(ip, '^[^.]*[.][^.]*[.][^.]*')")
            db.execute(f"CREATE VIEW packets AS FROM read_parquet('{live}/*.parquet')")
            db.register("given", given)
            rows = db.execute(
                f"SELECT exact.n::DOUBLE, coalesce(given.n, 0)::DOUBLE, given.sampling_rate FROM ({exact}) AS exact"
                f" LEFT JOIN given ON {same} WHERE exact.window_start IN (SELECT window_start FROM given)"
            ).fetchnumpy()
        true, told, rates = (np.ma.filled(column, 0.0) for column in rows.values())
        errors.append(float(np.abs(told - true).sum() / true.sum()))
        drawn = dice.binomial(true.astype(int), rate) / rate
        at_input.append(float(np.abs(drawn - true).sum() / true.sum()))
        sampled, every = sampled + int((rates < 1).sum()), every + len(true)
    return Outcome(delays, seconds, max(errors), max(at_input), 1 - sampled / max(every, 1))
