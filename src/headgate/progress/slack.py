"""Progress by rows: a value is certain once as many rows have followed it as a tuple may be late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.windows import Number

#: Batches are merged until they hold this part of the slack, so that a few hundred entries suffice for any slack.
_PARTS = 64


class Waiting(NamedTuple):
    """The highest value of the rows (first, last], which not enough rows have followed yet."""

    highest: Number
    first: int
    last: int


@dataclass
class Slack:
    """The batches that may still be overtaken by tuples up to `slack` rows late.

    >>> slack = Slack(slack=3)
    >>> slack.add(rows=2, highest=10), slack.add(rows=2, highest=7), slack.add(rows=1, highest=8)
    (None, None, 10)
    """

    slack: int
    rows: int = 0
    waiting: list[Waiting] = field(default_factory=list)

    def add(self, rows: int, highest: Number | None) -> Number | None:
        """Take in a batch; give the highest value that has become certain by it, or None."""
        first, self.rows = self.rows, self.rows + rows
        # Below a value that waits already, a new one makes no difference when its time comes, later.
        if highest is not None and (not self.waiting or highest > self.waiting[-1].highest):
            if self.waiting and self.rows - self.waiting[-1].first <= self.slack // _PARTS:
                first = self.waiting.pop().first
            self.waiting.append(Waiting(highest, first, self.rows))
        certain = [batch for batch in self.waiting if self.rows - batch.last >= self.slack]
        del self.waiting[: len(certain)]
        return certain[-1].highest if certain else None
