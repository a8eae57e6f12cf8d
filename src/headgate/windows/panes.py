"""Panes: the longest pieces of the axis that every sliding window is put together from, without a cut."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.windows.axis import Number
    from headgate.windows.sliding import Sliding


@dataclass(frozen=True, slots=True)
class Panes:
    """The axis of a sliding window cut into panes, each as long as the gcd of range and slide.

    Pane p covers [origin + p*length, origin + (p+1)*length). A value is in one pane, however many windows
    overlap there; window k is made of `per_window` panes, and begins `per_slide` panes behind window k - 1.

    >>> from headgate.windows import Sliding
    >>> panes = Panes.of(Sliding(range=10, slide=4, attr="ts"))
    >>> panes.length, panes.per_window, panes.per_slide
    (2, 5, 2)
    >>> panes.pane(9), panes.windows(4), panes.panes(2)
    (4, range(0, 3), range(4, 9))
    """

    length: Number
    per_window: int
    per_slide: int
    origin: Number

    @classmethod
    def of(cls, window: Sliding) -> Panes:
        """Give the panes of a sliding window; where slide exceeds range, some panes lie in the gaps.

        >>> from headgate.windows import Sliding
        >>> Panes.of(Sliding(range=4, slide=6, attr="ts", origin=1))
        Panes(length=2, per_window=2, per_slide=3, origin=1)
        """
        length = gcd(window.range, window.slide)
        return cls(length, int(window.range / length), int(window.slide / length), window.origin)

    def pane(self, value: Number) -> int:
        """Give the pane that holds a value.

        >>> Panes(length=2, per_window=5, per_slide=2, origin=0).pane(-1)
        -1
        """
        return (value - self.origin) // self.length

    def start(self, pane: int) -> Number:
        """Give the first value of a pane.

        >>> Panes(length=2, per_window=5, per_slide=2, origin=1).start(3)
        7
        """
        return self.origin + pane * self.length

    def panes(self, k: int) -> range:
        """Give the panes that window k is made of.

        >>> Panes(length=2, per_window=5, per_slide=2, origin=0).panes(-1)
        range(-2, 3)
        """
        first = k * self.per_slide
        return range(first, first + self.per_window)

    def windows(self, pane: int) -> range:
        """Give the numbers k of the windows that contain a pane; none for a pane in a gap.

        >>> gappy = Panes(length=2, per_window=2, per_slide=3, origin=0)
        >>> [list(gappy.windows(pane)) for pane in range(4)]
        [[0], [0], [], [1]]
        """
        return range((pane - self.per_window) // self.per_slide + 1, pane // self.per_slide + 1)


def gcd(a: Number, b: Number) -> Number:
    """Give the greatest number that divides both without a rest, for whole numbers and fractions.

    >>> gcd(10, 4), gcd(Fraction(1, 2), Fraction(1, 3))
    (2, Fraction(1, 6))
    """
    if isinstance(a, int) and isinstance(b, int):
        return math.gcd(a, b)
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
