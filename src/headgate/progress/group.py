"""The progress of one group of a stream, by the stream's rule: the whole stream is one group without BY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from headgate.progress.place import Punctuation, furthest, read, written
from headgate.progress.rule import Rule
from headgate.progress.slack import Ranked, Slack, Waiting
from headgate.windows import Number


@dataclass(frozen=True, slots=True)
class Seen:
    """What a batch showed of one group: its rows, and the highest value of the attribute among them.

    `punctuated` is the highest among the rows that the rule's `punctuated_by` marks. `ranked` are the values at the
    ranks that a rule with `slack_rows` asks for, as far down as there are any. NULL has no place.
    """

    rows: int
    highest: Number | None
    punctuated: Number | None = None
    ranked: Sequence[Number] = ()


class Group:
    """How far a group has come, and when it was last heard of.

    >>> from headgate.progress import progress
    >>> group = Group(progress("v", within=5))
    >>> group.observe(Seen(rows=2, highest=12), now=100)
    >>> group.bound, group.last
    (7, 100)
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.bound: Punctuation = None
        self.last = 0
        self._slack = Slack(rule.slack_rows or 0)

    def observe(self, seen: Seen, now: int) -> None:
        """Take in what a batch showed of the group."""
        self.last = now
        self.bound = furthest((self.bound, self._promised(seen)))

    def _promised(self, seen: Seen) -> Number | None:
        """The value that no tuple of a later batch is below, as far as this batch tells."""
        if self.rule.punctuated_by is not None:
            return seen.punctuated
        if self.rule.slack_rows is not None:
            return self._slack.add(seen.rows, seen.ranked or ([] if seen.highest is None else [seen.highest]))
        return None if seen.highest is None else seen.highest - (self.rule.within or 0)

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {
            "bound": written(self.bound),
            "last": self.last,
            "rows": self._slack.rows,
            "waiting": [[_written(batch), batch.first, batch.last] for batch in self._slack.waiting],
        }

    @classmethod
    def restored(cls, rule: Rule, state: dict[str, Any]) -> Group:
        """Give the group that was in this state."""
        group = cls(rule)
        group.bound = read(state["bound"])
        group.last = state["last"]
        group._slack.rows = state["rows"]
        group._slack.waiting = [Waiting(_read(values), first, last) for values, first, last in state["waiting"]]
        return group


def _written(batch: Waiting) -> list[list[Any]]:
    return [[rank, written(value)] for rank, value in batch.values]


def _read(values: Any) -> tuple[Ranked, ...]:
    # Checkpoints of before have the highest value alone.
    ranked = values if isinstance(values, list) else [[1, values]]
    return tuple(Ranked(rank, cast(Number, read(value))) for rank, value in ranked)
