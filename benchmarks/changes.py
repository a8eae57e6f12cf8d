"""Fifty queries that come and go while a flow runs: how long batches take meanwhile, and whether anything is lost."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import stream_files
from benchmarks.sharing import MONITORS

if TYPE_CHECKING:
    from headgate.api.run import Run

_QUERIES, _ROUND, _FILES = 50, 12, 200
#: Packets in a batch: about as few as a batch of its own is worth, and more.
_SIZES = (100_000, 500_000)
_KEYS = ("srcIP", "destIP", "destPort", "proto", "flags")


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints a table for each size of batches; `rows` bounds how many tuples the stream has."""
    for size in _SIZES:
        if size * _FILES <= rows:
            _run(spark, console, size)


def _run(spark: SparkSession, console: Console, size: int) -> None:
    # A minute of stream each, so that every batch closes windows.
    folder, scratch = stream_files(spark, _FILES, 5000, 60 * _FILES, size), Path(tempfile.mkdtemp())
    started = _flow(spark, folder, scratch).start()
    phases: dict[str, list[float]] = {}
    _more(started, _ROUND)  # To warm up.
    phases["7"] = _more(started, _ROUND)
    before = started.status()["batch"]
    for number, key in zip(range(_QUERIES), cycle(_KEYS), strict=False):
        clause = f"[RANGE {1 + number % 5} minutes, SLIDE 1 minute]"
        sql = f"SELECT {key}, count(*) AS n {clause} FROM packets WHERE len > {20 * number} GROUP BY {key}"
        started.query(f"q{number}", sql)
    phases["7 to 57"] = _seconds(started, before)
    phases["57"] = _more(started, _ROUND)
    before = started.status()["batch"]
    for number in range(_QUERIES):
        started.drop(f"q{number}")
    phases["57 to 7"] = _seconds(started, before)
    phases["7 again"] = _more(started, _ROUND)
    started.stop()
    table = Table("queries", "batches", "median s", "longest s", title=f"seconds of a batch of {size:,} packets")
    for name, seconds in phases.items():
        table.add_row(name, str(len(seconds)), f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}")
    console.print(table)
    every = [s for seconds in phases.values() for s in seconds]
    console.print(f"the longest batch took {max(every) / statistics.median(every):.1f} times the median")
    wrong = _wrong(_flow(spark, folder, scratch).run_available(), spark.read.parquet(str(folder)))
    console.print(f"answers of the seven that are lost or wrong: {wrong}")
    shutil.rmtree(scratch)


def _flow(spark: SparkSession, folder: Path, scratch: Path) -> hg.Flow:
    made = hg.Flow(spark, "bench", f"{scratch}/checkpoint")
    source = hg.sources.files(str(folder), max_files_per_batch=1)
    made.stream("packets", source, progress=hg.progress("ts", within="1 minute"))
    for name, monitor in MONITORS.items():
        made.query(name, monitor.sql)
    return made


def _more(started: Run, batches: int) -> list[float]:
    """The times of the next batches."""
    before = started.status()["batch"]
    while started.status()["batch"] < before + batches and started.is_active:
        time.sleep(0.05)
    return _seconds(started, before)


def _seconds(started: Run, after: int) -> list[float]:
    return [sum(report.seconds.values()) for report in started.reports if report.batch > after]


def _wrong(finished: Run, packets: DataFrame) -> int:
    """How many answers differ from those over all packets at once, of the windows that have been closed."""
    wrong = 0
    for name, monitor in MONITORS.items():
        given = finished.results(name)
        closed = given.agg(F.max("window_end")).collect()[0][0]
        exact = hg.evaluate(monitor.sql.replace("minutes]", "minutes, WA ts]"), packets=packets)
        wrong += given.exceptAll(exact).count() + exact.where(F.col("window_end") <= closed).exceptAll(given).count()
    return wrong
