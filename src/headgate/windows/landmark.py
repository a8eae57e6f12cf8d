"""Landmark windows: each holds everything from the beginning up to its end, which moves by the slide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.windows.axis import check_length, tail
from headgate.windows.cut import EqualCut
from headgate.windows.on_axis import OnAxis
from headgate.windows.type import WindowType

if TYPE_CHECKING:
    from headgate.windows.axis import Number


@dataclass(frozen=True, slots=True)
class Landmark(OnAxis):
    """The window that only grows: id k holds everything before origin + (k+1)*slide.

    >>> growing = Landmark(slide=60, attr="ts")
    >>> T = [{"ts": 5}, {"ts": 130}]
    >>> [(k, len(growing.extent(k, T))) for k in growing.windows(T)]
    [(0, 1), (1, 1), (2, 2)]
    """

    slide: Number
    attr: str
    origin: Number = 0
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_length("SLIDE", self.slide, self.attr)

    @property
    def type(self) -> WindowType:
        """A pane for each slide."""
        return WindowType(EqualCut(self.slide, self.origin), growing=True)

    @property
    def ends(self) -> tuple[object, ...]:
        """The slide, which leaves no rest."""
        return self.slide, self.slide * 0

    @property
    def as_sliding(self) -> None:
        """None: each window is longer than the one before."""

    def __str__(self) -> str:
        """Give the specification as the language writes it.

        >>> str(Landmark(60, "ts"))
        '[RANGE ALL, SLIDE 60, WA ts]'
        """
        parts = ["RANGE ALL", f"SLIDE {self.slide}{self.rows()}", f"WA {self.attr}"]
        return f"[{', '.join(parts + tail(self.origin, self.partition))}]"
