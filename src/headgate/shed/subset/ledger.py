"""The ledger: which windows of a query are dropped, decided once, before they begin, and recorded.

Nothing is marked on tuples. An aggregate leaves out the windows that the ledger has as dropped, and a tuple is dropped
at the input when no window that is kept needs it.

Windows are dropped in batches as long as the gap allows, since only a whole batch leaves input that nobody needs. At
least one unit is kept after a batch. From then on the next one begins with the same chance at each unit. The chance
makes up the fraction asked for in the long run, and has no memory, so a new rate holds from the next unit on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, cast

from headgate.errors import FlowError
from headgate.progress.place import Punctuation, read, written
from headgate.shed.subset.dropped import WindowRun
from headgate.shed.subset.needs import Range, first_window, merged, needed
from headgate.shed.subset.rules import Grid, fan_out, highest_drop, pipeline
from headgate.windows import Number, Sliding


@dataclass(frozen=True, slots=True)
class Ledger:
    """The fates of one query's windows, those of its outermost aggregate.

    Windows that begin in one of the ranges of `drops` are dropped, the others are kept. The record says nothing of
    the grid it was decided on, so queries can be decided together in one batch and apart in the next.
    """

    name: str
    windows: tuple[Sliding, ...]
    """In the order that tuples meet them: the outermost is the last."""
    gap: int
    decided: Number
    """The fates of windows that begin before it are fixed. Later ones are kept for now: their tuples are needed."""
    until: Number
    """Where the batch ends that is being dropped; `decided` or before if there is none."""
    drops: tuple[Range, ...] = ()
    asked: float = 0.0
    rate: float = 0.0
    """The fraction that is dropped: what was asked for, or the most that the gap allows."""

    @classmethod
    def begun(cls, name: str, windows: Sequence[Sliding], gap: int, at: Number) -> Ledger:
        """Give the ledger of a query none of whose windows from `at` on has a tuple; all before are kept.

        >>> Ledger.begun("swings", [Sliding(600, 60, "ts")], gap=10, at=0).kept(-3)
        True
        """
        pipeline(windows, gap)  # An error here rather than with the first decision.
        return cls(name, tuple(windows), gap, at, at)

    @property
    def grid(self) -> Grid:
        """The grid at the query's input when it is decided by itself."""
        return pipeline(self.windows, self.gap)

    def kept(self, k: int) -> bool:
        """Give whether window k of the outermost aggregate is answered."""
        start = self.windows[-1].bounds(k)[0]
        later = bisect_right(self.drops, start, key=lambda dropped: dropped[0])
        return later == 0 or self.drops[later - 1][1] <= start

    def dropped(self, since: Number | None = None) -> list[WindowRun]:
        """Give the windows that are dropped and begin at `since` or later, as the ledger still has them.

        >>> (ledger,) = decide([Ledger.begun("swings", [Sliding(10, 5, "ts")], gap=3, at=0)], up_to=100, drop=0.5)
        >>> ledger.dropped(), ledger.dropped(since=70)
        ([(0, 2), (4, 6), (14, 16)], [(14, 16)])
        """
        window = self.windows[-1]
        ends = ((low if since is None else max(low, since), high) for low, high in self.drops)
        runs = ((first_window(window, low), first_window(window, high) - 1) for low, high in ends)
        return [(first, last) for first, last in runs if first <= last]

    def needed(self, low: Number, high: Number, level: int = 0) -> tuple[Range, ...]:
        """Give the ranges within [low, high) that kept windows need, merged and half-open.

        At level 0 they are ranges of the input. At level i they are ranges of `window_start` of the i-th aggregate's
        answers: the windows that it has to compute. At the last level, those that are delivered.
        """
        return needed(self.windows[level:], self.drops, low, high)

    def suspend(self, up_to: Number) -> Ledger:
        """Give the ledger with every window dropped that is not decided and begins before `up_to`.

        It breaks the gap: it is for queries that are suspended, and said to be.

        >>> ledger = Ledger.begun("swings", [Sliding(5, 5, "ts")], gap=1, at=0).suspend(18)
        >>> ledger.drops, ledger.decided
        (((0, 20),), 20)
        """
        end = max(self.decided, self.grid.next(up_to))
        drops = merged((*self.drops, (self.decided, end)))
        return replace(self, decided=end, until=end, drops=drops, asked=1.0, rate=1.0)

    def forget(self, p: Punctuation) -> Ledger:
        """Give the ledger without what punctuation on the input has passed: windows that are closed for good.

        The last range stays, since the next batch has to keep away from it.
        """
        if p is None or not self.drops:
            return self
        extent = self.grid.extent
        *old, last = self.drops
        return replace(self, drops=(*(d for d in old if d[1] + extent > p), last))

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {
            "drops": [[written(first), written(past)] for first, past in self.drops],
            "decided": written(self.decided),
            "until": written(self.until),
            "asked": self.asked,
            "rate": self.rate,
        }

    @classmethod
    def restored(cls, name: str, windows: Sequence[Sliding], gap: int, state: dict[str, Any]) -> Ledger:
        """Give the ledger that was in this state."""
        drops = tuple((_place(first), _place(past)) for first, past in state["drops"])
        decided, until = _place(state["decided"]), _place(state["until"])
        return cls(name, tuple(windows), gap, decided, until, drops, state["asked"], state["rate"])

    def __str__(self) -> str:
        """Give the rate in words, and why it is not what was asked for.

        >>> (ledger,) = decide([Ledger.begun("swings", [Sliding(5, 5, "ts")], gap=3, at=0)], up_to=5, drop=0.9)
        >>> str(ledger)
        'swings drops 75.0% of its windows, not 90.0%: more would break a gap'
        """
        said = f"{self.name} drops {self.rate:.1%} of its windows"
        return said if self.rate == self.asked else f"{said}, not {self.asked:.1%}: more would break a gap"


def decide(ledgers: Sequence[Ledger], up_to: Number, drop: float) -> list[Ledger]:
    """Give the ledgers with the fates of all windows that begin before `up_to`, a fraction `drop` of them dropped.

    Ledgers that are given together are decided together: the same stretches are dropped of all of them, by the grid
    they have in common. What is decided stays; only the rest of a batch is given up at a rate of 0, or where a query
    joins in that is in none. Fates depend on names, windows and rates alone, not on how often they are asked for.

    >>> (ledger,) = decide([Ledger.begun("swings", [Sliding(10, 5, "ts")], gap=3, at=0)], up_to=100, drop=0.5)
    >>> ledger.drops, ledger.needed(0, 60)
    (((0, 15), (20, 35), (70, 85)), ((0, 5), (15, 25), (35, 60)))
    """
    if not 0 <= drop <= 1:
        raise FlowError(f"drop={drop} for {', '.join(ledger.name for ledger in ledgers)}: give a fraction from 0 to 1")
    grid = fan_out([ledger.grid for ledger in ledgers])
    rate = min(drop, highest_drop(grid.gap))
    at = grid.next(max(ledger.decided for ledger in ledgers))
    until = min(ledger.until for ledger in ledgers) if rate else at
    # Each query has had a window since it was last dropped if a whole unit has been kept since.
    rested = max((ledger.drops[-1][1] + grid.slide for ledger in ledgers if ledger.drops), default=at)
    drops: list[Range] = []
    while at < up_to and rate:
        if at >= rested and _coin(ledgers, grid, at) < _chance(rate, grid.gap):
            until = at + grid.gap * grid.slide
        if at + grid.slide <= until:
            drops.append((at, at + grid.slide))
            rested = at + 2 * grid.slide
        at += grid.slide
    at = max(at, grid.next(up_to))
    return [
        replace(ledger, decided=at, until=max(at, until), drops=merged((*ledger.drops, *drops)), asked=drop, rate=rate)
        for ledger in ledgers
    ]


def keep_ranges(ledgers: Sequence[Ledger], low: Number, high: Number, level: int = 0) -> tuple[Range, ...]:
    """Give the ranges within [low, high) that any of these queries needs of the input that they share.

    With a level, of the answers that they share: the levels below are then the same aggregates for all of them.

    >>> hour = Ledger.begun("hour", [Sliding(60, 60, "ts")], gap=1, at=0).suspend(120)
    >>> half = Ledger.begun("half", [Sliding(30, 30, "ts")], gap=1, at=0).suspend(60)
    >>> keep_ranges([hour, half], 0, 200), keep_ranges([hour], 0, 200)
    (((60, 200),), ((120, 200),))
    """
    return merged(found for ledger in ledgers for found in ledger.needed(low, high, level))


def _chance(rate: float, gap: int) -> float:
    """The chance that a batch begins at a unit.

    In the long run a batch of `gap` is followed by one kept unit and 1 / chance - 1 more, which has to make the rate.
    """
    return min(1.0, rate / (gap * (1 - rate)))


def _coin(ledgers: Sequence[Ledger], grid: Grid, at: Number) -> float:
    """A number from 0 to 1 that is always the same for these queries and this unit."""
    names = sorted(ledger.name for ledger in ledgers)
    text = "\0".join([*names, str((at - grid.origin) // grid.slide)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64


def _place(mark: int | str) -> Number:
    return cast(Number, read(mark))
