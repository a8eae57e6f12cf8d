"""What a join holds of the batches before, by which the pairs of the next one can be told.

Formulas of joins speak of windows that are as full as they get under one plan. Plans change, and so do rates: a batch
meets what other plans have kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Batches are taken together that reach over less than this part of a window.
_STRETCHES = 32
#: In how many places of a batch it is looked how far back its tuples reach.
_PLACES = 16

Sides = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The tuples that came to a join from one place to another, by side."""

    low: float
    high: float
    tuples: Sides
    kept: Sides
    """The part of them that is kept."""
    taken: Sides
    """The part of their pairs with later ones that may come out."""

    def met(self, low: float, high: float, window: float) -> float:
        """The part of its pairs with tuples of another stretch in which it comes first, by no more than a window.

        >>> round(Stretch(0, 10, (1, 1), (1, 1), (1, 1)).met(10, 20, window=10), 6)
        0.5
        """
        # Tuples that are all at one place come in any order.
        width, length = (max(end - start, 1e-9 * window) for start, end in ((self.low, self.high), (low, high)))
        places = low + (np.arange(_PLACES) + 0.5) / _PLACES * length
        reached = np.minimum(self.low + width, places) - np.maximum(self.low, places - window)
        return float(np.maximum(reached, 0.0).mean() / width)

    def __add__(self, other: Stretch) -> Stretch:
        (left, right), (more_left, more_right) = self.tuples, other.tuples

        def mean(own: Sides, others: Sides) -> Sides:
            return _mean(left, own[0], more_left, others[0]), _mean(right, own[1], more_right, others[1])

        return Stretch(
            min(self.low, other.low),
            max(self.high, other.high),
            (left + more_left, right + more_right),
            mean(self.kept, other.kept),
            mean(self.taken, other.taken),
        )


def _mean(many: float, part: float, others: float, their_part: float) -> float:
    return (many * part + others * their_part) / (many + others) if many + others else 0.0


@dataclass(frozen=True, slots=True)
class Stock:
    """The stretches that a join holds, in order.

    >>> stock = Stock().then(Stretch(0, 10, (100, 50), (1, 1), (1, 1)), reach=10)
    >>> stock.held, round(stock.filled(0, Stretch(10, 20, (100, 50), (1, 1), (1, 1)), window=10), 3)
    (150.0, 1.0)
    """

    stretches: tuple[Stretch, ...] = ()

    @property
    def held(self) -> float:
        """How many tuples are kept."""
        return float(sum(n * kept for s in self.stretches for n, kept in zip(s.tuples, s.kept, strict=True)))

    def then(self, stretch: Stretch, reach: float) -> Stock:
        """What is held after one more stretch, without what is further back than windows reach."""
        found = [s for s in self.stretches if s.high + reach >= stretch.high]
        if len(found) > 1 and found[-1].high - found[-2].low <= reach / _STRETCHES:
            found[-2:] = [found[-2] + found[-1]]
        return Stock((*found, stretch))

    def filled(self, side: int, new: Stretch, window: float) -> float:
        """How full the window of a side is for a new stretch, in such stretches with all that it takes kept."""
        whole = new.tuples[side] * new.taken[side]
        if not whole:
            return 0.0
        found = new.met(new.low, new.high, window)
        for s in self.stretches:
            part = s.tuples[side] * min(s.taken[side], new.taken[side]) / whole
            found += part * s.met(new.low, new.high, window) if part else 0.0
        return found

    def state(self) -> list[list[Any]]:
        """What is held, as JSON has it."""
        return [[s.low, s.high, s.tuples, s.kept, s.taken] for s in self.stretches]

    @classmethod
    def restored(cls, state: Sequence[Sequence[Any]]) -> Stock:
        """What was held in a state."""
        return cls(tuple(Stretch(low, high, *(tuple(side) for side in sides)) for low, high, *sides in state))
