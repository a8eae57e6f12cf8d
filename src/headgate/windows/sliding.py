"""Sliding and tumbling windows over time, any number, rows, or the rows of each partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.windows.axis import (
    ROW_NUM,
    check_length,
    counts_rows_of_partition,
    key_of,
    make_id,
    number_of,
    position,
    positions,
    sorted_ids,
    tail,
)
from headgate.windows.category import Category

if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence

    from headgate.windows.axis import AxisId, Number, Tuple


@dataclass(frozen=True, slots=True)
class Sliding:
    """The window of length `range` that moves by `slide`.

    Id k covers [origin + k*slide, origin + k*slide + range). With a `partition`, the id is (k, key),
    and over "row_num" each partition counts its own rows from 0.

    >>> every_minute = Sliding(range=600, slide=60, attr="ts")
    >>> every_minute.wids({"ts": 605}, [])
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    >>> every_minute.bounds(10)
    (600, 1200)
    """

    range: Number
    slide: Number
    attr: str
    origin: Number = 0
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_length("RANGE", self.range, self.attr)
        check_length("SLIDE", self.slide, self.attr)

    @property
    def tumbling(self) -> bool:
        """Whether each value is in exactly one window.

        >>> Sliding(5, 5, "ts").tumbling, Sliding(10, 5, "ts").tumbling
        (True, False)
        """
        return self.range == self.slide

    @property
    def category(self) -> Category:
        """What `wids` needs to know: the tuple alone; for the rows of a partition, the rows before it too.

        >>> Sliding(10, 5, "row_num", partition=("src",)).category
        <Category.FORWARD_CONTEXT_FREE: 'forward-context free'>
        """
        if counts_rows_of_partition(self.attr, self.partition):
            return Category.FORWARD_CONTEXT_FREE
        return Category.CONTEXT_FREE

    def wid_range(self, value: Number) -> builtins.range:
        """Give the numbers k of the windows that hold a value; none in a gap, where `slide` exceeds `range`.

        The form of thesis Eq. 5.3 for windows whose start, rather than end, is a multiple of the slide.

        >>> Sliding(10, 5, "ts").wid_range(12), Sliding(2, 10, "ts").wid_range(5)
        (range(1, 3), range(1, 1))
        """
        offset = value - self.origin
        return range((offset - self.range) // self.slide + 1, offset // self.slide + 1)

    def bounds(self, w: AxisId) -> tuple[Number, Number]:
        """Give the first value of window `w` and the first one past it.

        >>> Sliding(10, 5, "row_num", partition=("src",)).bounds((2, ("a",)))
        (10, 20)
        """
        start = self.origin + number_of(w) * self.slide
        return start, start + self.range

    def windows(self, tuples: Sequence[Tuple]) -> list[AxisId]:
        """Give the ids of the windows that hold at least one of the tuples, in order.

        >>> Sliding(2, 10, "v").windows([{"v": 31}, {"v": 5}, {"v": 10}, {"v": None}])
        [1, 3]
        """
        placed = positions(tuples, self.attr, self.partition)
        return sorted_ids(make_id(k, key_of(t, self.partition)) for place, t in placed for k in self.wid_range(place))

    def extent(self, w: AxisId, tuples: Sequence[Tuple]) -> list[Tuple]:
        """Give the tuples of window `w` (thesis Eq. 5.2, 5.5).

        >>> Sliding(10, 5, "v").extent(1, [{"v": 4}, {"v": 5}, {"v": 14}, {"v": 15}])
        [{'v': 5}, {'v': 14}]
        """
        start, end = self.bounds(w)
        return [
            t
            for place, t in positions(tuples, self.attr, self.partition)
            if start <= place < end and make_id(number_of(w), key_of(t, self.partition)) == w
        ]

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> list[AxisId]:
        """Give the ids of the windows that hold `t` (thesis Eq. 5.3, 5.6).

        >>> T = [{"src": "a", "row_num": 7}, {"src": None, "row_num": 8}, {"src": "a", "row_num": 9}]
        >>> Sliding(2, 1, "row_num", partition=("src",)).wids(T[2], T)
        [(0, ('a',)), (1, ('a',))]
        """
        place = position(t, tuples, self.attr, self.partition)
        numbers = range(0) if place is None else self.wid_range(place)
        return [make_id(k, key_of(t, self.partition)) for k in numbers]

    def __str__(self) -> str:
        """Give the specification as the language writes it.

        >>> str(Sliding(1000, 10, "row_num", partition=("src",)))
        '[RANGE 1000 rows, SLIDE 10 rows, WA row_num, PA src]'
        """
        unit = " rows" if self.attr == ROW_NUM else ""
        parts = [f"RANGE {self.range}{unit}", f"SLIDE {self.slide}{unit}", f"WA {self.attr}"]
        return f"[{', '.join(parts + tail(self.origin, self.partition))}]"
