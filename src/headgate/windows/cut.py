"""Cuts of an axis into numbered panes: what tells one window type from another."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from headgate.windows.arithmetic import floor_div, gcd, less, literal

if TYPE_CHECKING:
    from headgate.windows.axis import Number


class Cut(ABC):
    """An axis, cut into panes that are numbered in order, without a gap and without an end.

    A place on the axis of a time is in microseconds since 1970 UTC; on any other axis it is the number itself. The same
    two functions are given twice: in Python, with exact numbers, for the planner and for progress; and as Spark SQL
    text, for the tuples. Two cuts are equal if they are of one class and have equal attributes.
    """

    needs_time = False
    """Whether places have to be times."""

    @abstractmethod
    def pane(self, place: Number) -> int:
        """The number of the pane that holds a place."""

    @abstractmethod
    def start(self, pane: int) -> Number:
        """The first place of a pane. `pane(start(p))` is p."""

    @abstractmethod
    def pane_sql(self, place: str) -> str:
        """`pane` as Spark SQL: `place` is an expression of type BIGINT, or DECIMAL for numbers that are not whole."""

    @abstractmethod
    def start_sql(self, pane: str) -> str:
        """`start` as Spark SQL: `pane` is an expression of type BIGINT."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        attributes = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({attributes})"

    # All below follows from the four functions above. A cut of panes of one length has simpler forms.

    @property
    def length(self) -> Number | None:
        """The length of every pane, if all have the same."""
        return None

    @property
    def made_of(self) -> tuple[Cut, int]:
        """The cut that this one is made of, and how many of its panes make up one."""
        return self, 1

    def every(self, count: int) -> Cut:
        """The cut into panes that are each made of so many of these."""
        base, each = self.made_of
        return self if count == 1 else Every(base, each * count)

    def parts_in(self, finer: Cut) -> int | None:
        """How many panes of another cut each pane is made of; None if it is not made of whole ones."""
        (base, own), (other, parts) = self.made_of, finer.made_of
        return own // parts if base == other and own % parts == 0 else None

    def common(self, other: Cut) -> Cut | None:
        """The coarsest cut that both are made of, if there is one."""
        (base, own), (base_of_other, others) = self.made_of, other.made_of
        return base.every(math.gcd(own, others)) if base == base_of_other else None

    def key_sql(self, place: str) -> str:
        """What tuples are grouped by: the same for all places of a pane, and cheap, as every tuple goes through it."""
        return f"CAST({self.pane_sql(place)} AS BIGINT)"

    def number_sql(self, key: str) -> str:
        """The number of a pane from what its tuples are grouped by."""
        return key

    def at_sql(self, key: str) -> str:
        """The start of a pane from what its tuples are grouped by."""
        return self.start_sql(key)

    def holding_sql(self, place: str, per_window: int, per_slide: int) -> tuple[str, str]:
        """The first and the last window that hold a place."""
        pane = self.key_sql(place)
        return f"{floor_div(f'{pane} - {per_window}L', per_slide)} + 1", floor_div(pane, per_slide)

    def held_sql(self, place: str, per_window: int, per_slide: int) -> str:
        """Whether any window holds a place, where windows leave room between them."""
        return f"pmod({self.key_sql(place)}, {per_slide}L) < {per_window}L"

    def bounds_sql(self, window: str, per_window: int, per_slide: int) -> tuple[str, str]:
        """Where a window begins and ends, by its number."""
        first = f"({window} * {per_slide}L)"
        return self.start_sql(first), self.start_sql(f"({first} + {per_window}L)")


class EqualCut(Cut):
    """Panes of one length: pane p covers [origin + p*length, origin + (p+1)*length).

    >>> cut = EqualCut(2, origin=1)
    >>> cut.pane(-1), cut.start(3), cut.pane_sql("x"), cut.key_sql("x")
    (-1, 7, '((x - 1L) - pmod(x - 1L, 2L)) div 2L', 'x - pmod(x - 1L, 2L)')
    """

    def __init__(self, length: Number, origin: Number = 0) -> None:
        self._length, self.origin = length, origin

    @property
    def length(self) -> Number:
        return self._length

    def __repr__(self) -> str:
        return f"EqualCut({self._length}, {self.origin})"

    def pane(self, place: Number) -> int:
        return (place - self.origin) // self._length

    def start(self, pane: int) -> Number:
        return self.origin + pane * self._length

    def pane_sql(self, place: str) -> str:
        return floor_div(less(place, self.origin), self._length)

    def start_sql(self, pane: str) -> str:
        return f"{pane} * {literal(self._length)} + {literal(self.origin)}"

    def every(self, count: int) -> EqualCut:
        return EqualCut(self._length * count, self.origin)

    def parts_in(self, finer: Cut) -> int | None:
        if not isinstance(finer, EqualCut) or (finer.origin - self.origin) % finer._length:
            return None
        return None if self._length % finer._length else int(self._length / finer._length)

    def common(self, other: Cut) -> EqualCut | None:
        if not isinstance(other, EqualCut) or other.origin != self.origin:
            return None
        return EqualCut(gcd(self._length, other._length), self.origin)

    def key_sql(self, place: str) -> str:
        # The start of the pane is one division less for each tuple than its number.
        return f"{place} - pmod({less(place, self.origin)}, {literal(self._length)})"

    def number_sql(self, key: str) -> str:
        return f"({less(key, self.origin)}) div {literal(self._length)}"

    def at_sql(self, key: str) -> str:
        return key

    def holding_sql(self, place: str, per_window: int, per_slide: int) -> tuple[str, str]:
        since, slide = less(place, self.origin), self._length * per_slide
        first = floor_div(f"{since} - {literal(self._length * per_window)}", slide)
        return f"{first} + 1", floor_div(since, slide)

    def held_sql(self, place: str, per_window: int, per_slide: int) -> str:
        slide, length = self._length * per_slide, self._length * per_window
        return f"pmod({less(place, self.origin)}, {literal(slide)}) < {literal(length)}"

    def bounds_sql(self, window: str, per_window: int, per_slide: int) -> tuple[str, str]:
        start = self.every(per_slide).start_sql(window)
        return start, f"{start} + {literal(self._length * per_window)}"


class Every(Cut):
    """Panes that are each made of the same number of another cut's panes.

    >>> pairs = Every(EqualCut(10), 2)
    >>> pairs.pane(25), pairs.start(1), pairs.every(3).made_of
    (1, 20, (EqualCut(10, 0), 6))
    """

    def __init__(self, of: Cut, count: int) -> None:
        self.of, self.count, self.needs_time = of, count, of.needs_time

    def __repr__(self) -> str:
        return f"{self.count} x {self.of!r}"

    @property
    def made_of(self) -> tuple[Cut, int]:
        return self.of, self.count

    def pane(self, place: Number) -> int:
        return self.of.pane(place) // self.count

    def start(self, pane: int) -> Number:
        return self.of.start(pane * self.count)

    def pane_sql(self, place: str) -> str:
        return floor_div(self.of.key_sql(place), self.count)

    def start_sql(self, pane: str) -> str:
        return self.of.start_sql(f"({pane} * {self.count}L)")
