"""A stream of tuples through a plan whose ledgers drop windows: what is read, computed and delivered, and its load.

Behind the aggregates there are no windows to tell apart, and answers are dropped at random, each by a coin of its own.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.drop_plans import Placement, highest
from headgate.shed.subset.ledger import Ledger, decide, keep_ranges
from headgate.shed.subset.needs import Range
from headgate.shed.subset.plan import SubsetQuery, Tree
from headgate.windows import Sliding

Integers = NDArray[np.int64]
#: A drop is looked for in so many steps up to the highest.
_STEPS = 512


class Tuples(NamedTuple):
    """Tuples in the order of their times, or answers in that of their windows."""

    ts: Integers
    value: Integers

    def where(self, kept: NDArray[np.bool_]) -> Tuples:
        """Give some of them."""
        return Tuples(self.ts[kept], self.value[kept])


@dataclass(frozen=True)
class Outcome:
    """What came of a drop: the work in a second, and the answers of each query."""

    load: float
    answers: tuple[Tuples, ...]


class Simulation:
    """A plan over a stream whose tuples come at random times, all of one chance; `units` of the longest slide."""

    def __init__(self, tree: Tree, units: int) -> None:
        self._tree = tree
        self._begun = [Ledger.begun(query.name, _windows(query), query.gap, at=0) for query in tree.queries]
        self._length = units * max(int(book.windows[-1].slide) for book in self._begun)
        draw = np.random.default_rng(0)
        times = np.sort(draw.integers(self._length, size=round(tree.queries[0].rate * self._length)))
        self._stream = Tuples(times, draw.integers(1_000, size=len(times)))
        self._found: dict[tuple[Placement, float], Outcome] = {}
        # The exact answers owe nothing to a ledger, since what ledgers keep is checked against them.
        self._whole = self._pushed(self._begun, self._stream, level=math.inf)
        self._coins = [draw.random(len(answers.ts)) for answers in self._whole.answers]

    def needed_drop(self, placement: Placement, excess: float) -> float | None:
        """Give the fraction of answers that is missing when the load fits, or None where no drop makes it fit."""
        drop = self.fitting(placement, excess)
        return None if drop is None else self.missing(self.outcome(placement, drop))

    def fitting(self, placement: Placement, excess: float) -> float | None:
        """Give the drop to ask for where `excess` comes in over what fits: the load fits, one step below not yet."""
        capacity = self._whole.load / (1 + excess)
        drops = [step / _STEPS * highest(self._tree) for step in range(_STEPS + 1)]
        found = bisect_left(drops, True, key=lambda drop: self.outcome(placement, drop).load <= capacity)
        return drops[found] if found < len(drops) else None

    def outcome(self, placement: Placement, drop: float) -> Outcome:
        """Give what comes of dropping this fraction there."""
        if (placement, drop) not in self._found:
            self._found[placement, drop] = self._run(placement, drop)
        return self._found[placement, drop]

    def missing(self, outcome: Outcome) -> float:
        """Give the fraction of answers that was not delivered, the mean of all queries."""
        pairs = zip(outcome.answers, self._whole.answers, strict=True)
        return float(np.mean([1 - len(given.ts) / len(whole.ts) for given, whole in pairs]))

    def wrong(self, outcome: Outcome) -> int:
        """Give how many answers are none of the exact ones."""
        found = 0
        for given, whole in zip(outcome.answers, self._whole.answers, strict=True):
            exact = dict(zip(whole.ts.tolist(), whole.value.tolist(), strict=True))
            found += sum(exact.get(ts) != value for ts, value in zip(*given, strict=True))
        return found

    def longest_gap(self, outcome: Outcome) -> int:
        """Give the most answers of a query that are missing in a row."""
        longest = 0
        for given, whole in zip(outcome.answers, self._whole.answers, strict=True):
            places = np.flatnonzero(np.isin(whole.ts, given.ts))
            longest = max(longest, int(np.diff(places, prepend=-1, append=len(whole.ts)).max()) - 1)
        return longest

    def _run(self, placement: Placement, drop: float) -> Outcome:
        if placement.name == "behind":
            return self._random(drop)
        if placement.together:
            books = decide(self._begun, self._length, drop)
            read = _within(self._stream.ts, keep_ranges(books, 0, self._length))
            return self._pushed(books, self._stream.where(read), placement.level)
        apart = [book for begun in self._begun for book in decide([begun], self._length, drop)]
        return self._pushed(apart, self._stream, placement.level)

    def _random(self, drop: float) -> Outcome:
        answers = [whole.where(coin >= drop) for whole, coin in zip(self._whole.answers, self._coins, strict=True)]
        saved = sum(
            query.per_answer * (len(whole.ts) - len(given.ts))
            for query, whole, given in zip(self._tree.queries, self._whole.answers, answers, strict=True)
        )
        return Outcome(self._whole.load - saved / self._length, tuple(answers))

    def _pushed(self, books: Sequence[Ledger], read: Tuples, level: float) -> Outcome:
        """What comes of tuples that have been read, where the ledgers drop from a level on."""
        work, given = self._tree.shared * len(read.ts), []
        for query, book in zip(self._tree.queries, books, strict=True):
            costs = [*(step.cost for step in query.steps), query.per_answer]
            levels = _levels(book, read, self._length, level)
            work += sum(cost * len(tuples.ts) for cost, tuples in zip(costs, levels, strict=True))
            given.append(levels[-1])
        return Outcome(work / self._length, tuple(given))


def _levels(book: Ledger, tuples: Tuples, length: int, level: float) -> list[Tuples]:
    """What comes to each aggregate of a query, and last its answers, where its ledger drops from a level on."""
    if level == 0:
        tuples = tuples.where(_within(tuples.ts, book.needed(0, length)))
    levels = [tuples]
    for above, window in enumerate(book.windows, start=1):
        starts = np.arange(0, length, int(window.slide))
        if above >= level:
            starts = starts[_within(starts, book.needed(0, length, above))]
        levels.append(_sums(levels[-1], starts, int(window.range)))
    return levels


def _sums(tuples: Tuples, starts: Integers, length: int) -> Tuples:
    """The sum of each window that holds a tuple."""
    first, past = (np.searchsorted(tuples.ts, edge) for edge in (starts, starts + length))
    running = np.concatenate([[0], np.cumsum(tuples.value)])
    return Tuples(starts, running[past] - running[first]).where(past > first)


def _within(places: Integers, ranges: Sequence[Range]) -> NDArray[np.bool_]:
    """Which of the places lie in one of the ranges, which are in order and apart."""
    edges = np.array(ranges, dtype=np.int64).reshape(-1)
    inside: NDArray[np.bool_] = np.searchsorted(edges, places, side="right") % 2 == 1
    return inside


def _windows(query: SubsetQuery) -> list[Sliding]:
    return [step.window for step in query.steps if isinstance(step.window, Sliding)]
