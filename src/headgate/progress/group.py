"""The progress of one group of a stream, by the stream's rule. Without BY, the whole stream is one group."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from headgate.errors import ProgressError
from headgate.progress.place import Punctuation, furthest, read, written
from headgate.progress.rule import Seen
from headgate.progress.stream import StreamProgress
from headgate.windows import Number

#: What the state of a rule is called in a checkpoint; before there was this word, only slack had a state.
_STATE, _OLD_STATE = "rule", ("rows", "waiting")


class Group:
    """How far a group has come, and when it was last heard of.

    >>> from headgate.progress import progress
    >>> group = Group(progress("v", within=5))
    >>> group.observe(Seen(rows=2, highest=12), now=100)
    >>> group.bound, group.last
    (7, 100)
    """

    def __init__(self, progress: StreamProgress) -> None:
        self.progress = progress
        self.bound: Punctuation = None
        self.last = 0
        self._state = progress.rule.start()

    def observe(self, seen: Seen, now: int) -> None:
        """Take in what a batch showed of the group."""
        self.last = now
        self._state, bound = self.progress.rule.step(self._state, seen)
        self.bound = furthest((self.bound, self._place(bound)))

    def _place(self, bound: object) -> Number | None:
        """What a rule says, as a place on the axis: a rule of a user may well give a float."""
        if bound is None or (isinstance(bound, int | Fraction) and not isinstance(bound, bool)):
            return bound
        if isinstance(bound, float) and math.isfinite(bound):
            return Fraction(bound) if self.progress.numeric else math.floor(bound)
        raise ProgressError(
            f"progress on {self.progress.attr}: its rule {type(self.progress.rule).__name__} gave {bound!r} as the"
            " place that no later tuple is below: give a number, or None"
        )

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {"bound": written(self.bound), "last": self.last, _STATE: self._state}

    @classmethod
    def restored(cls, progress: StreamProgress, state: dict[str, Any], same_rule: bool = True) -> Group:
        """Give the group that was in this state. A rule of another kind begins anew, from the bound there was."""
        group = cls(progress)
        group.bound, group.last = read(state["bound"]), state["last"]
        if same_rule:
            group._state = state[_STATE] if _STATE in state else {word: state[word] for word in _OLD_STATE}
        return group
