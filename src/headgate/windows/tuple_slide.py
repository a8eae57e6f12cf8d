"""Slide-by-tuple windows: every n-th tuple ends a window that reaches back over a range of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from headgate.errors import WindowError
from headgate.windows.axis import ROW_NUM, check_length, value_of
from headgate.windows.category import Category

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.windows.axis import Number, Tuple


@dataclass(frozen=True, slots=True)
class TupleSlide:
    """The window (w - range, w] that ends at every `slide`-th tuple, where w is its `range_attr` and the id.

    Tuples are counted from 0, in arrival order ("row_num") or in the order of `range_attr` ("rank", where
    the arrival number decides between equals).

    >>> T = [{"ts": 9, "row_num": 0}, {"ts": 4, "row_num": 1}, {"ts": 12, "row_num": 2}]
    >>> TupleSlide(5, "ts", 2, "row_num").windows(T), TupleSlide(5, "ts", 2, "rank").windows(T)
    ([9, 12], [4, 12])
    """

    range: Number
    range_attr: str
    slide: Number
    order: Literal["row_num", "rank"]
    skipped: int = 0
    """How many tuples come before those at hand, in the order of `range_attr`."""

    by: ClassVar[Literal["tuple"]] = "tuple"
    """Tuples say where windows end."""
    holds: ClassVar[bool] = True
    """The tuples themselves are needed."""
    growing: ClassVar[bool] = False
    partition: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_length("RANGE", self.range, self.range_attr)
        check_length("SLIDE", self.slide, ROW_NUM)
        if self.order not in ("row_num", "rank"):
            raise WindowError(f"SATTR of the window is {self.order}: give row_num or rank({self.range_attr})")

    @property
    def attribute(self) -> str:
        """The attribute that the range is measured on."""
        return self.range_attr

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that have a say in which windows a tuple is in."""
        return (self.range_attr, ROW_NUM) if self.order == ROW_NUM else (self.range_attr,)

    @property
    def category(self) -> Category:
        """What `wids` needs to know: the tuples yet to come, since any of them may end another window.

        >>> TupleSlide(5, "ts", 1, "row_num").category
        <Category.FORWARD_CONTEXT_AWARE: 'forward-context aware'>
        """
        return Category.FORWARD_CONTEXT_AWARE

    def bounds(self, w: Number) -> tuple[Number, Number]:
        """Give where window `w` begins and ends; the start is outside of the window, the end is inside.

        >>> TupleSlide(5, "ts", 1, "row_num").bounds(12)
        (7, 12)
        """
        return w - self.range, w

    def answers_after(self, value: Number) -> Number:
        """Give where the first answer still to come begins, once all tuples below a value have come.

        >>> TupleSlide(5, "ts", 1, "row_num").answers_after(12)
        7
        """
        return value - self.range

    def windows(self, tuples: Sequence[Tuple]) -> list[Number]:
        """Give the distinct `range_attr` values of every `slide`-th tuple, in order (thesis Eq. 5.13, 5.16).

        >>> T = [{"ts": 9, "row_num": 0}, {"ts": 4, "row_num": 1}, {"ts": 9, "row_num": 2}]
        >>> TupleSlide(5, "ts", 1, "row_num").windows(T)
        [4, 9]
        """
        places = [
            (value, t[ROW_NUM])
            for t in tuples
            if (value := value_of(t, self.range_attr)) is not None and t[ROW_NUM] is not None
        ]
        if self.order == "row_num":
            ends = [value for value, number in places if number % self.slide == 0]
        else:
            ends = [value for value, _ in sorted(places)[-self.skipped % int(self.slide) :: int(self.slide)]]
        return sorted(set(ends))

    def extent(self, w: Number, tuples: Sequence[Tuple]) -> list[Tuple]:
        """Give the tuples of window `w` (thesis Eq. 5.14).

        >>> TupleSlide(5, "ts", 1, "row_num").extent(12, [{"ts": 7}, {"ts": 8}, {"ts": 12}, {"ts": 13}])
        [{'ts': 8}, {'ts': 12}]
        """
        start, end = self.bounds(w)
        values = [(value_of(t, self.range_attr), t) for t in tuples]
        return [t for value, t in values if value is not None and start < value <= end]

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> list[Number]:
        """Give the ids of the windows that hold `t` (thesis Eq. 5.15).

        >>> T = [{"ts": 9, "row_num": 0}, {"ts": 4, "row_num": 1}, {"ts": 12, "row_num": 2}]
        >>> TupleSlide(5, "ts", 1, "row_num").wids(T[0], T)
        [9, 12]
        """
        value = value_of(t, self.range_attr)
        return [w for w in self.windows(tuples) if value is not None and value <= w < value + self.range]

    def __str__(self) -> str:
        """Give the specification as the language writes it.

        >>> str(TupleSlide(300, "ts", 5, "rank"))
        '[RANGE 300, RATTR ts, SLIDE 5 rows, SATTR rank(ts)]'
        """
        order = f"rank({self.range_attr})" if self.order == "rank" else self.order
        return f"[RANGE {self.range}, RATTR {self.range_attr}, SLIDE {self.slide} rows, SATTR {order}]"
