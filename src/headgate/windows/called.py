"""Windows of a type from outside, by the call that names them in a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.windows.on_axis import OnAxis

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
    def ends(self) -> tuple[object, ...]:
        """The cut, the panes of a slide, and how many are left of a window by it."""
        sliding = self.as_sliding
        if sliding is not None:
            return sliding.ends
        return repr(self.type.cut), self.type.per_slide, self.type.per_window % self.type.per_slide

    def __str__(self) -> str:
        """Give the call."""
        return self.call
