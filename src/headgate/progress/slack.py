"""The rule `slack_rows`: a place is certain once as many rows have followed it as a tuple may be late.

No tuple is below one that came more than `slack` rows before it. So after N rows, no later tuple is below any of the
first N - slack. The order of the rows in a batch is not known, so only what holds for every order is certain. The
ascending order promises least: if only the first m rows of a batch are that far back, its m-th lowest place is certain
and nothing more. (If any order of a batch keeps the promise, the ascending one does.) Of a batch by itself, all but
the `slack` highest rows are certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from headgate.plan.logical.render import counted
from headgate.progress.place import read, written
from headgate.progress.rule import Needs, ProgressRule, Seen
from headgate.windows import Number

#: Batches are merged until they hold this part of the slack, and as many places are known of each: a few hundred
#: numbers suffice for any slack.
_PARTS = 64
#: No more than this many of the highest rows of a batch are told apart.
_RANKED = 100_000


def ranks(slack: int) -> list[int]:
    """Give the ranks, 1 for the highest, of the places that have to be known of a batch.

    >>> ranks(3), len(ranks(5_000)), ranks(5_000)[-1]
    ([1, 2, 3, 4], 65, 5001)
    """
    last = min(slack + 1, _RANKED)
    return sorted({1, last, *range(1 + _step(slack), last, _step(slack))})


def _step(slack: int) -> int:
    return slack // _PARTS + 1


class Ranked(NamedTuple):
    """A place that at least this many rows of a batch are not below."""

    rank: int
    value: Number


class Waiting(NamedTuple):
    """The rows (first, last] that too few rows have followed yet, with their highest places, the highest first."""

    values: tuple[Ranked, ...]
    first: int
    last: int


@dataclass(frozen=True)
class SlackRows(ProgressRule):
    """A tuple is never below one that came more than this many rows before it.

    >>> rule = SlackRows(3)
    >>> state, bound = rule.step(rule.start(), Seen(rows=100, highest=99, ranked=(99, 98, 97, 96)))
    >>> bound
    96
    """

    slack: int

    @property
    def needs(self) -> Needs:
        """The highest places, as far down as a tuple may be late."""
        return Needs(ranks=ranks(self.slack))

    def start(self) -> Any:
        """No rows so far."""
        return {"rows": 0, "waiting": []}

    def step(self, state: Any, seen: Seen) -> tuple[Any, Number | None]:
        """The bound is the highest place that enough rows have followed."""
        waiting = [Waiting(_read(values), first, last) for values, first, last in state["waiting"]]
        batches = Batches(self.slack, state["rows"], waiting)
        bound = batches.add(seen)
        rest = [[_written(batch), batch.first, batch.last] for batch in batches.waiting]
        return {"rows": batches.rows, "waiting": rest}, bound

    def describe(self) -> str:
        """As a script writes it."""
        return f"SLACK {counted(self.slack, 'rows')}"


@dataclass
class Batches:
    """The batches that tuples up to `slack` rows late may still overtake.

    >>> batches = Batches(slack=3)
    >>> batches.add(Seen(2, 10, ranked=[10, 9])), batches.add(Seen(2, 7, ranked=[7, 6])), batches.add(Seen(1, 8))
    (None, 9, 10)
    """

    slack: int
    rows: int = 0
    waiting: list[Waiting] = field(default_factory=list)

    def add(self, seen: Seen) -> Number | None:
        """Take in a batch; give the highest place that it makes certain, or None."""
        first, self.rows = self.rows, self.rows + seen.rows
        highest = seen.ranked or ([] if seen.highest is None else [seen.highest])
        values = tuple(map(Ranked, ranks(self.slack), highest))
        if self.waiting:
            # Below a place that waits already, a new one makes no difference: its time comes later.
            before = self.waiting[-1]
            values = tuple(v for v in values if v.value > before.values[0].value)
            if values and self.rows - before.first <= self.slack // _PARTS:
                # As if both were one batch: these places are all above those.
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
        """The highest place of a batch that enough rows have followed, in whatever order they came."""
        rank = self.slack - (self.rows - batch.last) + 1
        return next((value for known, value in batch.values if known >= rank), None)


def _above(batch: Waiting, bound: Number | None) -> Waiting:
    return batch if bound is None else batch._replace(values=tuple(v for v in batch.values if v.value > bound))


def _written(batch: Waiting) -> list[list[Any]]:
    return [[rank, written(value)] for rank, value in batch.values]


def _read(values: Any) -> tuple[Ranked, ...]:
    # Old checkpoints have the highest place alone.
    ranked = values if isinstance(values, list) else [[1, values]]
    return tuple(Ranked(rank, cast(Number, read(value))) for rank, value in ranked)
