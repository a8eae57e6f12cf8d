"""Window types: how windows are put together from the panes that an axis is cut into."""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.errors import WindowError

if TYPE_CHECKING:
    from headgate.windows.axis import Number
    from headgate.windows.cut import Cut


@dataclass(frozen=True, slots=True)
class WindowType:
    """Windows made of whole panes of a cut.

    Window k is made of `per_window` panes, and begins `per_slide` panes after window k - 1; windows that are *growing*
    begin before all time instead, and end `per_slide` panes after one another. A place is in one pane, however many
    windows overlap there. Without `per_slide`, windows follow one another without a gap.

    >>> from headgate.windows import EqualCut
    >>> windows = WindowType(EqualCut(2), per_window=5, per_slide=2)
    >>> windows.pane(9), windows.windows(4), windows.panes(2), windows.bounds(2)
    (4, range(0, 3), range(4, 9), (8, 18))
    """

    cut: Cut
    per_window: int = 1
    per_slide: int = 0
    growing: bool = False

    def __post_init__(self) -> None:
        if self.per_slide == 0:
            object.__setattr__(self, "per_slide", self.per_window)
        for what, count in (("per_window", self.per_window), ("per_slide", self.per_slide)):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise WindowError(f"{what}={count!r}: give a whole number of panes, 1 or more")
        if self.growing and (self.per_window, self.per_slide) != (1, 1):
            raise WindowError("windows that grow do so pane by pane: leave per_window and per_slide out")

    @property
    def overlapping(self) -> bool:
        """Whether a place may be in several windows."""
        return self.growing or self.per_window > self.per_slide

    @property
    def gaps(self) -> bool:
        """Whether there are places in no window."""
        return not self.growing and self.per_window < self.per_slide

    @property
    def slides(self) -> Cut:
        """The cut by the slide: where windows do not overlap, its pane k holds all of window k."""
        return self.cut.every(self.per_slide)

    @property
    def coarsest(self) -> WindowType:
        """The same windows in the longest panes that they can be made of."""
        parts = math.gcd(self.per_window, self.per_slide)
        return WindowType(self.cut.every(parts), self.per_window // parts, self.per_slide // parts, self.growing)

    def within(self, finer: Cut) -> WindowType:
        """The same windows in panes of a cut that this one is made of."""
        parts = self.cut.parts_in(finer)
        assert parts is not None, f"{self.cut} is not made of {finer}"
        return WindowType(finer, self.per_window * parts, self.per_slide * parts, self.growing)

    def pane(self, place: Number) -> int:
        """Give the pane that holds a place."""
        return self.cut.pane(place)

    def start(self, pane: int) -> Number:
        """Give the first place of a pane."""
        return self.cut.start(pane)

    def panes(self, k: int) -> builtins.range:
        """Give the panes that window k is made of; of one that grows, those that are new in it."""
        first = k * self.per_slide
        return range(first, first + self.per_window)

    def windows(self, pane: int) -> builtins.range:
        """Give the windows that contain a pane, or that it is new in; none for a pane in a gap."""
        return range((pane - self.per_window) // self.per_slide + 1, pane // self.per_slide + 1)

    def bounds(self, k: int) -> tuple[Number | None, Number]:
        """Give the first place of window k, None if it grows, and the first one past it."""
        panes = self.panes(k)
        return None if self.growing else self.cut.start(panes.start), self.cut.start(panes.stop)

    def closed_at(self, place: Number) -> int:
        """Give the last window that ends at a place or before it."""
        return (self.cut.pane(place) - self.per_window) // self.per_slide

    def begun_at(self, place: Number) -> int:
        """Give the last window that begins at a place or before it; of those that grow, the first that holds it."""
        return self.cut.pane(place) // self.per_slide

    def next_at(self, place: Number) -> int:
        """Give the first window that begins at a place or after it."""
        pane = self.cut.pane(place)
        return -(-(pane + (self.cut.start(pane) < place)) // self.per_slide)

    def holding_sql(self, place: str) -> tuple[str, str]:
        """The first and the last window that hold a place, as Spark SQL."""
        return self.cut.holding_sql(place, self.per_window, self.per_slide)

    def held_sql(self, place: str) -> str | None:
        """Whether any window holds a place, as Spark SQL; None if that is so for every place."""
        return self.cut.held_sql(place, self.per_window, self.per_slide) if self.gaps else None

    def bounds_sql(self, k: str) -> tuple[str, str]:
        """Where a window begins and ends, by its number, as Spark SQL."""
        start, end = self.cut.bounds_sql(k, self.per_window, self.per_slide)
        return "CAST(NULL AS BIGINT)" if self.growing else start, end
