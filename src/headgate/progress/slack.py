"""Progress by rows: a value is certain once as many rows have followed it as a tuple may be late.

The promise is that a tuple is never below one that came more than `slack` rows before it. So behind N rows, no tuple to
come is below any of the first N - slack of them. In which order the rows of a batch came is not known: what is certain
is what holds for each order, and no order holds the highest of the first rows lower than an ascending one does.
(If any order within batches keeps the promise, the ascending one does.) So of a batch of which only the first m rows
are that far back, the m-th lowest value is certain, and no more: in a batch of its own, all but the `slack` highest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.windows import Number

#: Batches are merged until they hold this part of the slack, and of a batch as many values are known: a few hundred
#: numbers suffice for any slack.
_PARTS = 64
#: Of a batch, no more than so many of its highest rows can be told apart.
_RANKED = 100_000


def ranks(slack: int) -> list[int]:
    """Give the ranks, 1 for the highest, of the values that have to be known of a batch.

    >>> ranks(3), len(ranks(5_000)), ranks(5_000)[-1]
    ([1, 2, 3, 4], 65, 5001)
    """
    last = min(slack + 1, _RANKED)
    return sorted({1, last, *range(1 + _step(slack), last, _step(slack))})


def _step(slack: int) -> int:
    return slack // _PARTS + 1


class Ranked(NamedTuple):
    """A value that this many rows of a batch, or more, are not below."""

    rank: int
    value: Number


class Waiting(NamedTuple):
    """The rows (first, last] that not enough rows have followed yet, with the highest values, the highest one first."""

    values: tuple[Ranked, ...]
    first: int
    last: int


@dataclass
class Slack:
    """The batches that may still be overtaken by tuples up to `slack` rows late.

    >>> slack = Slack(slack=3)
    >>> slack.add(rows=2, highest=[10, 9]), slack.add(rows=2, highest=[7, 6]), slack.add(rows=1, highest=[8])
    (None, 9, 10)
    >>> Slack(slack=3).add(rows=100, highest=[99, 98, 97, 96])
    96
    """

    slack: int
    rows: int = 0
    waiting: list[Waiting] = field(default_factory=list)

    def add(self, rows: int, highest: Sequence[Number]) -> Number | None:
        """Take in a batch, by its values at `ranks`; give the highest value that has become certain by it, or None."""
        first, self.rows = self.rows, self.rows + rows
        values = tuple(map(Ranked, ranks(self.slack), highest))
        if self.waiting:
            # Below a value that waits already, a new one makes no difference when its time comes, later.
            before = self.waiting[-1]
            values = tuple(v for v in values if v.value > before.values[0].value)
            if values and self.rows - before.first <= self.slack // _PARTS:
                # As if they had come in one batch: all are above what came before.
                first = self.waiting.pop().first
        if values:
            self.waiting.append(Waiting(values, first, self.rows))
        found = None
        for batch in self.waiting:
            certain = self._certain(batch)
            found = certain if certain is not None and (found is None or certain > found) else found
        self.waiting = [rest for batch in self.waiting if (rest := _above(batch, found)).values]
        return found

    def _certain(self, batch: Waiting) -> Number | None:
        """The highest value of a batch that enough rows have followed, whatever the order in it."""
        rank = self.slack - (self.rows - batch.last) + 1
        return next((value for known, value in batch.values if known >= rank), None)


def _above(batch: Waiting, bound: Number | None) -> Waiting:
    return batch if bound is None else batch._replace(values=tuple(v for v in batch.values if v.value > bound))
