"""Windows of a type from outside, by the call that names them in a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.windows.on_axis import OnAxis
from headgate.windows.sliding import Sliding

if TYPE_CHECKING:
    from headgate.windows.type import WindowType


@dataclass(frozen=True, slots=True)
class Called(OnAxis):
    """The windows that a function of a query stands for, such as months(ts, 3).

    >>> from headgate.windows import EqualCut, WindowType
    >>> fives = Called("fives(v)", WindowType(EqualCut(5)), "v")
    >>> fives.windows([{"v": 12}, {"v": 3}]), fives.bounds(2)
    ([0, 2], (10, 15))
    """

    call: str
    type: WindowType
    attr: str
    partition: tuple[str, ...] = ()

    @property
    def as_sliding(self) -> Sliding | None:
        """The same windows by range and slide, if all have one length.

        >>> from headgate.windows import EqualCut, WindowType
        >>> Called("fives(v)", WindowType(EqualCut(5), 2, 1), "v").as_sliding
        Sliding(range=10, slide=5, attr='v', origin=0, partition=())
        """
        length, type_ = self.type.cut.length, self.type
        if length is None or type_.growing:
            return None
        size, slide = length * type_.per_window, length * type_.per_slide
        return Sliding(size, slide, self.attr, type_.cut.start(0), self.partition)

    @property
    def ends(self) -> tuple[object, ...]:
        """The cut, the panes of a slide, and how many are left of a window by it."""
        if (sliding := self.as_sliding) is not None:
            return sliding.ends
        return repr(self.type.cut), self.type.per_slide, self.type.per_window % self.type.per_slide

    def __str__(self) -> str:
        """Give the call."""
        return self.call
