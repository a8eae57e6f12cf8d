"""What a window join holds, and how long its results wait: order-agnostic, and with its results put in order.

The order-preserving forms sort results after the join (output buffered) or tuples before it (input buffered; thesis
7.3). All forms are simulated tuple by tuple over the same disordered streams. A flow over the first seconds then has to
give the same pairs batch by batch, and to keep what the order-agnostic form holds and no more than its files add to it.
"""

from __future__ import annotations

import gc
import math
import os
import shutil
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from heapq import heappop, heappush
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

import headgate as hg
from headgate.connect.packets.packets import PacketSource

RATE, SECONDS = 4_000, 60
BANDS = (1, 3, 5, 7, 9)
#: By how many seconds `answered` comes after `asked`.
LAGS = (0, 5)
_SECOND = 1_000_000
#: A tuple arrives up to so much after its time, and an answer is sent up to so much after its question.
_DISORDER, _ANSWERED_WITHIN = 1 * _SECOND, 5 * _SECOND
#: Punctuation comes this often.
_TICK = _SECOND // 100
#: What is counted: before it windows are not full yet, and after it the end of the input would cut delays short.
_COUNTED = range(30 * _SECOND, 44 * _SECOND)
#: The flow's batches of a second, and its band.
_BATCHES, _FLOW_BAND = 10, 3
ASKED, ANSWERED = 0, 1
_KEYS = ("srcIP", "destIP", "srcPort", "destPort")
_REVERSED = ("destIP", "srcIP", "destPort", "srcPort")

Integers = NDArray[np.int64]
Streams = tuple[pa.Table, pa.Table]
#: The numbers of a tuple of `asked` and one of `answered`.
Pair = tuple[int, int]
#: The punctuation of both streams.
Told = tuple[float, float]


@dataclass(frozen=True)
class Tuples:
    """The tuples of both streams, numbered by their times; these are in microseconds from the start."""

    ts: list[int]
    at: list[int]
    """When each arrives."""
    side: list[int]
    key: list[int]
    row: list[int]
    """Its place in its stream."""


class Step(NamedTuple):
    """The numbers of the tuples that arrive until some time, and the punctuation that comes then."""

    at: int
    new: Sequence[int]
    told: Told


class Moment(NamedTuple):
    """How many tuples a form holds after a step, and the pairs that leave with it."""

    held: int
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class Figures:
    """What was held, in tuples, and how long pairs waited after their second tuple, in seconds."""

    most: int
    mean: float
    delay: float
    slow: float


def run(spark: SparkSession, console: Console, _rows: int) -> None:
    """Prints the tables. The number of tuples is fixed: what is held depends on their rate alone."""
    streams = _streams()
    gc.disable()  # There are no cycles to be found, and looking for them would take a fifth of the time.
    try:
        console.print(*_simulated(streams))
    finally:
        gc.enable()
    console.print(_as_in_a_flow(spark, streams))


def _simulated(streams: Streams) -> tuple[Table, Table]:
    """The tables of what is held and of how long pairs wait."""
    titles = ("thousand tuples held: most / mean", "seconds that pairs wait: mean / 99th percentile")
    memory, delay = (_table("lag s", "band s", "order-agnostic", *_headings(), title=title) for title in titles)
    for lag in LAGS:
        tuples = _tuples(streams, lag * _SECOND)
        steps = list(_steps(tuples, SECONDS * _SECOND, _TICK))
        for band in BANDS:
            forms = _compared(tuples, steps, band * _SECOND)
            memory.add_row(str(lag), str(band), *(f"{f.most / 1000:.1f} / {f.mean / 1000:.1f}" for f in forms))
            delay.add_row(str(lag), str(band), *(f"{f.delay:.2f} / {f.slow:.2f}" for f in forms))
        memory.add_section()
        delay.add_section()
    return memory, delay


def _headings() -> list[str]:
    return [
        f"{buffered} buffered,\nby {order}" for order in ("later ts", "asked.ts") for buffered in ("output", "input")
    ]


def _table(*columns: str, title: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


# The streams


def _streams() -> Streams:
    """Packets, and answers to them that go the other way up to five seconds later."""
    made = PacketSource(rate=RATE, hosts=5000)
    asked = pa.Table.from_batches([made.batch(0, RATE * SECONDS, ("ts", *_KEYS))])
    later = np.random.default_rng(1).integers(_ANSWERED_WITHIN, size=len(asked))
    ts = pa.array(_micros(asked) + later).view(asked["ts"].type)
    return asked, pa.table([ts, *(asked[name] for name in _REVERSED)], names=asked.column_names)


def _micros(stream: pa.Table) -> Integers:
    micros: Integers = stream["ts"].cast(pa.int64()).to_numpy()
    return micros


def _tuples(streams: Streams, lag: int) -> Tuples:
    """The tuples of both streams; `answered` lags, and all are in disorder."""
    draw, keys = np.random.default_rng(2), dict[tuple[object, ...], int]()
    ts = np.concatenate([_micros(stream) for stream in streams])
    ts -= ts.min()
    rows = np.concatenate([np.arange(len(stream)) for stream in streams])
    side = np.repeat((ASKED, ANSWERED), [len(stream) for stream in streams])
    at = ts + draw.integers(_DISORDER, size=len(ts)) + lag * (side == ANSWERED)
    key = []
    for stream, names in zip(streams, (_KEYS, _REVERSED), strict=True):
        values = zip(*(stream[name].to_pylist() for name in names), strict=True)
        key += [keys.setdefault(value, len(keys)) for value in values]
    by_time = np.argsort(ts, kind="stable")
    return Tuples(*(column[by_time].tolist() for column in (ts, at, side, np.array(key), rows)))


def _steps(tuples: Tuples, end: int, length: int) -> Iterator[Step]:
    """What arrives before the end, in steps of one length; no tuple is further below its side than the disorder."""
    arriving = np.argsort(tuples.at, kind="stable")
    ends = np.arange(length, end + 1, length)
    cuts = np.searchsorted(np.array(tuples.at)[arriving], ends)
    highest = [-math.inf, -math.inf]
    for at, new in zip(ends.tolist(), np.split(arriving, cuts)[:-1], strict=True):
        numbers = new.tolist()
        for n in numbers:
            highest[tuples.side[n]] = max(highest[tuples.side[n]], tuples.ts[n])
        yield Step(at, numbers, (highest[ASKED] - _DISORDER, highest[ANSWERED] - _DISORDER))
    yield Step(end, [], (math.inf, math.inf))


# The forms


class Join:
    """The tuples of both sides that are kept, by key."""

    def __init__(self, tuples: Tuples, band: int) -> None:
        self._tuples, self._band = tuples, band
        self._kept: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
        self._is_kept = bytearray(len(tuples.ts))
        self._first = [0, 0]
        """Of each side, the number below which no tuple is needed any more."""
        self.held = 0

    def meet(self, new: Iterable[int]) -> list[Pair]:
        """The pairs of new tuples with those that are kept; then they are kept too, where they are needed."""
        sides, keys, pairs = self._tuples.side, self._tuples.key, list[Pair]()
        for number in new:
            side, key = sides[number], keys[number]
            if others := self._kept[1 - side].get(key):
                pairs += [(number, other) if side == ASKED else (other, number) for other in others]
            if number >= self._first[side]:
                self._kept[side].setdefault(key, []).append(number)
                self._is_kept[number] = 1
                self.held += 1
        ts, band = self._tuples.ts, self._band
        return [(a, b) for a, b in pairs if ts[a] - band <= ts[b] < ts[a] + band]

    def purge(self, told: Told) -> None:
        """Lets tuples go that none to come can meet."""
        sides, keys = self._tuples.side, self._tuples.key
        for side, (kept, time) in enumerate(zip(self._kept, first_needed(told, self._band), strict=True)):
            first = bisect_left(self._tuples.ts, time)
            for number in range(self._first[side], first):
                if self._is_kept[number] and sides[number] == side:
                    same = kept[keys[number]]
                    same.remove(number)
                    if not same:
                        del kept[keys[number]]
                    self.held -= 1
            self._first[side] = max(self._first[side], first)


def first_needed(told: Told, band: int) -> Told:
    """The first time of each side that a tuple to come on the other side can meet."""
    # The band ends before asked.ts + band, so a question that is exactly a band older than an answer misses it.
    return told[ANSWERED] - band + 1, told[ASKED] - band


T = TypeVar("T")


class Sorter(Generic[T]):
    """Holds things until nothing can come before them."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._waiting: list[int] = []
        """Place and index of each thing that waits, in one number, as a heap of such is the fastest."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, place: int, item: T) -> None:
        heappush(self._waiting, place << 32 | len(self._items))
        self._items.append(item)

    def up_to(self, place: float) -> Iterator[T]:
        """Gives what waits up to a place, in order."""
        while self._waiting and self._waiting[0] >> 32 <= place:
            yield self._items[heappop(self._waiting) & 0xFFFFFFFF]


def order_agnostic(tuples: Tuples, steps: Sequence[Step], band: int) -> Iterator[Moment]:
    """Pairs leave at once, and a tuple is kept while the other side's punctuation lets one come that it meets."""
    join = Join(tuples, band)
    for step in steps:
        pairs = join.meet(step.new)
        join.purge(step.told)
        yield Moment(join.held, pairs)


# Both orders are that of the later time of a pair, with `asked` moved by a shift. Without one it is the later time
# itself. Moved by the band, no answer is later than its question, and the order is that of asked.ts (thesis Q7-2).


def output_buffered(tuples: Tuples, steps: Sequence[Step], joined: Sequence[Moment], shift: int) -> Iterator[Moment]:
    """The pairs of the same join wait until no pair to come is before them. A pair counts as one tuple."""
    waiting = Sorter[Pair]()
    for step, (held, pairs) in zip(steps, joined, strict=True):
        for asked, answered in pairs:
            waiting.add(max(tuples.ts[asked] + shift, tuples.ts[answered]), (asked, answered))
        left = list(waiting.up_to(_reached(step.told, shift)))
        yield Moment(held + len(waiting), left)


def input_buffered(tuples: Tuples, steps: Sequence[Step], band: int, shift: int) -> Iterator[Moment]:
    """Tuples wait until no tuple to come is before them, and then meet one another in order."""
    join, waiting, shifts = Join(tuples, band), Sorter[int](), (shift, 0)
    for step in steps:
        for new in step.new:
            waiting.add(tuples.ts[new] + shifts[tuples.side[new]], new)
        reached = _reached(step.told, shift)
        pairs = join.meet(waiting.up_to(reached))
        # In order, both sides of the join are as far as each other.
        join.purge((reached - shift, reached))
        yield Moment(len(waiting) + join.held, pairs)


def _reached(told: Told, shift: int) -> float:
    """The place that both sides have passed."""
    return min(told[ASKED] + shift, told[ANSWERED])


# What is measured


def _compared(tuples: Tuples, steps: Sequence[Step], band: int) -> list[Figures]:
    """The figures of the order-agnostic form, and of the other two for each order."""
    ts, joined = np.array(tuples.ts), list(order_agnostic(tuples, steps, band))
    expected = _pairs(joined)
    figures = [_figures(tuples, steps, joined, expected, at_once=True)]
    for shift in (0, band):
        after = output_buffered(tuples, steps, joined, shift)
        before = input_buffered(tuples, steps, band, shift)
        for moments in (list(after), list(before)):
            pairs = _pairs(moments)
            assert np.array_equal(_sorted(pairs), _sorted(expected)), "the forms differ in their pairs"
            places = np.maximum(ts[pairs[:, ASKED]] + shift, ts[pairs[:, ANSWERED]])
            assert np.all(np.diff(places) >= 0), "pairs left out of order"
            figures.append(_figures(tuples, steps, moments, pairs))
    return figures


def _pairs(moments: Sequence[Moment]) -> Integers:
    """The pairs in the order in which they left, a row each."""
    return np.array([pair for moment in moments for pair in moment.pairs], dtype=np.int64).reshape(-1, 2)


def _sorted(pairs: Integers) -> Integers:
    """A number for each pair, in order."""
    return np.sort(pairs[:, ASKED] << 32 | pairs[:, ANSWERED])


def _figures(
    tuples: Tuples, steps: Sequence[Step], moments: Sequence[Moment], pairs: Integers, at_once: bool = False
) -> Figures:
    """The figures of a form whose pairs leave `at_once`, or else with the punctuation that lets them."""
    held = [moment.held for step, moment in zip(steps, moments, strict=True) if step.at in _COUNTED]
    complete = np.array(tuples.at)[pairs].max(axis=1)
    left = np.repeat([step.at for step in steps], [len(moment.pairs) for moment in moments])
    counted = (complete >= _COUNTED.start) & (complete < _COUNTED.stop)
    delays = ((complete if at_once else left) - complete)[counted] / _SECOND
    return Figures(max(held), float(np.mean(held)), float(np.mean(delays)), float(np.percentile(delays, 99)))


# The same in a flow


def _as_in_a_flow(spark: SparkSession, streams: Streams) -> Table:
    """What a flow keeps after each batch, and how much of it the simulation holds, with the same batches."""
    tuples, band = _tuples(streams, lag=0), _FLOW_BAND * _SECOND
    *batches, _ = _steps(tuples, _BATCHES * _SECOND, _SECOND)
    flow, held = _flow(spark, streams, tuples, batches), order_agnostic(tuples, batches, band)
    title = f"a flow in batches of a second, {_FLOW_BAND} s band"
    table = _table("batch", "pairs", "tuples in its files", "held in the simulation", title=title)
    rows = zip(flow, held, _in_files(tuples, batches, band), strict=True)
    for batch, ((pairs, kept), moment, in_files) in enumerate(rows):
        assert pairs == len(moment.pairs), f"batch {batch}: {pairs} pairs, not {len(moment.pairs)}"
        assert kept == in_files, f"batch {batch}: {kept} tuples in files, not {in_files}"
        table.add_row(str(batch), f"{pairs:,}", f"{kept:,}", f"{moment.held:,}")
    return table


def _in_files(tuples: Tuples, batches: Sequence[Step], band: int) -> Iterator[int]:
    """The tuples in files after each batch: those that the simulation holds, and what lies beside them.

    A flow writes what it needs of a batch to one file, and deletes the file once it needs nothing of it. Eight files
    it would merge, without what it does not need; so many it never has here.
    """
    files: list[list[int]] = []
    for batch in batches:
        first = first_needed(batch.told, band)
        needed = [n for n in batch.new if tuples.ts[n] >= first[tuples.side[n]]]
        files = [file for file in files if any(tuples.ts[n] >= first[tuples.side[n]] for n in file)]
        files.append(needed)
        yield sum(map(len, files))


def _flow(spark: SparkSession, streams: Streams, tuples: Tuples, batches: Sequence[Step]) -> list[tuple[int, int]]:
    """The pairs of each batch of a flow, and the tuples that it has in its files after it."""
    scratch = Path(tempfile.mkdtemp())
    made = hg.Flow(spark, "order", f"{scratch}/checkpoint")
    for side, name in enumerate(("asked", "answered")):
        (scratch / name).mkdir()
        for number, batch in enumerate(batches):
            file = scratch / name / f"{number:04d}.parquet"
            pq.write_table(streams[side].take([tuples.row[n] for n in batch.new if tuples.side[n] == side]), file)
            os.utime(file, (number, number))  # A file stream takes files by age.
        source = hg.sources.files(str(scratch / name), max_files_per_batch=1)
        made.stream(name, source, progress=hg.progress("ts", within=timedelta(microseconds=_DISORDER)))
    same = " AND ".join(f"a.{here} = b.{there}" for here, there in zip(_KEYS, _REVERSED, strict=True))
    clause = f"[RANGE {_FLOW_BAND} seconds, WA ts]"
    both = f"asked AS a {clause}, answered AS b {clause}"
    made.query("pairs", f"SELECT a.ts AS asked, b.ts AS answered FROM {both} WHERE {same}")
    made.sink("pairs", _nowhere)
    reports = made.run_available().reports
    shutil.rmtree(scratch)
    return [(report.answers.get("pairs", 0), report.state_rows) for report in reports]


def _nowhere(_pairs: DataFrame, _batch: int) -> None:
    """Takes the pairs, of which only the number is of interest."""
