"""The rules that come with Headgate and say all in one place: `within`, `ordered` and `punctuated_by`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.errors import ProgressError
from headgate.plan.logical import render
from headgate.plan.logical.types import is_numeric, is_time
from headgate.progress.rule import Needs, ProgressRule, Seen
from headgate.progress.span import time_text
from headgate.windows import Number


@dataclass(frozen=True)
class Within(ProgressRule):
    """A tuple is at most this far below the highest one before it.

    >>> Within(5, numeric=True).step(None, Seen(rows=2, highest=12))
    (None, 7)
    """

    distance: Number
    """In the units of the attribute: microseconds for a time."""
    numeric: bool = False
    """Whether the distance was given as a plain number, not as a time."""

    def step(self, state: Any, seen: Seen) -> tuple[Any, Number | None]:
        """The bound follows the highest place at its distance."""
        return state, None if seen.highest is None else seen.highest - self.distance

    def check(self, attr: str, type_: str) -> None:
        """A time needs a distance in time, a number needs a number."""
        if is_time(type_) and self.numeric:
            raise ProgressError(
                f"within={self.distance} for progress on the time {attr} needs a unit, such as '10 seconds'"
            )
        if is_numeric(type_) and not self.numeric:
            raise ProgressError(f"within for progress on {attr} is a time, but {attr} is {type_}: give a number")

    def describe(self) -> str:
        """As a script writes it."""
        return f"WITHIN {render.number(self.distance) if self.numeric else time_text(self.distance)}"


@dataclass(frozen=True)
class Ordered(ProgressRule):
    """A tuple is never below one before it."""

    def step(self, state: Any, seen: Seen) -> tuple[Any, Number | None]:
        """The bound is the highest place."""
        return state, seen.highest

    def describe(self) -> str:
        """As a script writes it."""
        return "ORDERED"


@dataclass(frozen=True)
class PunctuatedBy(ProgressRule):
    """Where a boolean column is true, no later tuple is below that one."""

    column: str

    @property
    def needs(self) -> Needs:
        """The highest of the marked rows."""
        return Needs(marked_by=self.column)

    def step(self, state: Any, seen: Seen) -> tuple[Any, Number | None]:
        """The bound is the highest marked place."""
        return state, seen.marked

    def describe(self) -> str:
        """As a script writes it."""
        return f"PUNCTUATED BY {render.name(self.column)}"
