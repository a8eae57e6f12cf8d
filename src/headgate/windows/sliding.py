"""Sliding and tumbling windows over time, any number, rows, or the rows of each partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from headgate.windows.arithmetic import gcd
from headgate.windows.axis import check_length, number_of, tail
from headgate.windows.cut import EqualCut
from headgate.windows.on_axis import OnAxis
from headgate.windows.type import WindowType

if TYPE_CHECKING:
    from headgate.windows.axis import AxisId, Number


@dataclass(frozen=True, slots=True)
class Sliding(OnAxis):
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
    def type(self) -> WindowType:
        """The panes: each as long as the gcd of range and slide, so that they are as long as can be.

        >>> panes = Sliding(10, 4, "ts").type
        >>> panes.cut.length, panes.per_window, panes.per_slide
        (2, 5, 2)
        """
        return _type(self.range, self.slide, self.origin)

    @property
    def ends(self) -> tuple[object, ...]:
        """The slide, and the rest of the range by it."""
        return self.slide, self.range % self.slide

    @property
    def as_sliding(self) -> Sliding:
        """The window itself."""
        return self

    @property
    def tumbling(self) -> bool:
        """Whether each value is in exactly one window.

        >>> Sliding(5, 5, "ts").tumbling, Sliding(10, 5, "ts").tumbling
        (True, False)
        """
        return self.range == self.slide

    def bounds(self, w: AxisId) -> tuple[Number, Number]:
        """Give the first value of window `w` and the first one past it.

        >>> Sliding(10, 5, "row_num", partition=("src",)).bounds((2, ("a",)))
        (10, 20)
        """
        start = self.origin + number_of(w) * self.slide
        return start, start + self.range

    def __str__(self) -> str:
        """Give the specification as the language writes it.

        >>> str(Sliding(1000, 10, "row_num", partition=("src",)))
        '[RANGE 1000 rows, SLIDE 10 rows, WA row_num, PA src]'
        """
        unit = self.rows()
        parts = [f"RANGE {self.range}{unit}", f"SLIDE {self.slide}{unit}", f"WA {self.attr}"]
        return f"[{', '.join(parts + tail(self.origin, self.partition))}]"


@lru_cache
def _type(range_: Number, slide: Number, origin: Number) -> WindowType:
    length = gcd(range_, slide)
    return WindowType(EqualCut(length, origin), int(range_ / length), int(slide / length))
