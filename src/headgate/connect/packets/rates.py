"""How fast packets arrive over time: in steps, in bursts, or as a sine."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headgate.connect.packets.checks import pairs_of, require

Floats: TypeAlias = NDArray[np.float64]


class Rate(ABC):
    """How fast rows arrive: the number that has arrived by each time, as straight lines that repeat for ever."""

    @abstractmethod
    def _knots(self) -> tuple[Floats, Floats]:
        """Seconds, and the rows that have arrived by then, from (0, 0) to the end of the first round."""

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        return self._knots()

    def rows_by(self, seconds: ArrayLike) -> Floats:
        """How many rows have arrived by a time. Row n has arrived when this is n + 1 or more."""
        times, rows = self._curve
        return _follow(np.asarray(seconds, dtype=np.float64), times, rows)

    def time_of(self, row: ArrayLike) -> Floats:
        """The time by which so many rows have arrived: the inverse of `rows_by`. It is the end of any pause."""
        times, rows = self._curve
        return _follow(np.asarray(row, dtype=np.float64), rows, times)


def _follow(x: Floats, xs: Floats, ys: Floats) -> Floats:
    """The height at x of the line through the points (xs, ys), which repeats after its end and never falls."""
    around = np.floor(x / xs[-1])
    rest = np.clip(x - around * xs[-1], 0, xs[-1])
    piece = np.searchsorted(xs[:-1], rest, side="right") - 1
    with np.errstate(divide="ignore"):  # A jump has no slope, and is never the piece that is chosen.
        slopes = np.diff(ys) / np.diff(xs)
    # Rounding must not lift the end of a piece above where the next one begins.
    within = np.minimum(ys[piece] + (rest - xs[piece]) * slopes[piece], ys[piece + 1])
    reached: Floats = np.minimum(around * ys[-1] + within, (around + 1) * ys[-1])
    return reached


@dataclass(frozen=True)
class Steps(Rate):
    """Rates one after the other, as (seconds, rows per second); the last one holds for ever.

    >>> steps = Steps([(10, 100), (5, 0), (10, 400)])
    >>> [float(steps.rows_by(seconds)) for seconds in (5, 10, 15, 100)]
    [500.0, 1000.0, 1000.0, 35000.0]
    >>> float(steps.time_of(1400))
    16.0
    """

    steps: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        require(bool(self.steps), "rate must have a step, such as (60, 1000)")
        for seconds, rate in pairs_of("rate", self.steps):
            require(0 < seconds < math.inf, f"rate must have steps of more than 0 seconds, not of {seconds}")
            require(0 <= rate < math.inf, f"rate must not be below 0, and is {rate}")
        require(self.steps[-1][1] > 0, "rate must end with a step above 0, which then holds for ever")

    def _knots(self) -> tuple[Floats, Floats]:
        seconds, rates = np.array(self.steps, dtype=np.float64).T
        seconds[-1] = 1e12  # Longer than any stream, and in microseconds still a whole number of 64 bits.
        return _sums(seconds), _sums(seconds * rates)


@dataclass(frozen=True)
class Bursts(Rate):
    """A base rate with a burst of `factor` times the rate: the last `lasting` seconds of `every` so many seconds.

    >>> bursts = Bursts(base=100, factor=10, every=60, lasting=5)
    >>> [float(bursts.rows_by(seconds)) for seconds in (55, 60, 115)]
    [5500.0, 10500.0, 16000.0]
    """

    base: float
    factor: float
    every: float
    lasting: float

    def __post_init__(self) -> None:
        require(0 < self.base < math.inf, f"rate must have a base above 0, and it is {self.base}")
        require(0 < self.factor < math.inf, f"rate must have a factor above 0, and it is {self.factor}")
        require(0 < self.lasting < self.every < math.inf, "rate must have bursts that are shorter than `every`")

    def _knots(self) -> tuple[Floats, Floats]:
        seconds = np.array([self.every - self.lasting, self.lasting])
        return _sums(seconds), _sums(seconds * self.base * np.array([1, self.factor]))


@dataclass(frozen=True)
class Diurnal(Rate):
    """A rate that follows a sine of `period` seconds around `base`, up and down by the share `amplitude`.

    >>> day = Diurnal(base=100, amplitude=0.5, period=86400)
    >>> [int(day.rows_by(hours * 3600)) for hours in (12, 24)]
    [5695098, 8640000]
    """

    base: float
    amplitude: float
    period: float = 86400.0

    def __post_init__(self) -> None:
        require(0 < self.base < math.inf, f"rate must have a base above 0, and it is {self.base}")
        require(0 <= self.amplitude <= 1, f"rate must have an amplitude from 0 to 1, and it is {self.amplitude}")
        require(0 < self.period < math.inf, f"rate must have a period above 0, and it is {self.period}")

    def _knots(self) -> tuple[Floats, Floats]:
        # The curve has no closed inverse. With 1024 straight pieces it is off by a millionth of a period.
        angle = np.linspace(0, 2 * np.pi, 1025)
        turns = angle / (2 * np.pi)
        risen = turns + self.amplitude * (1 - np.cos(angle)) / (2 * np.pi)
        return turns * self.period, risen * (self.base * self.period)


PROFILES: dict[str, type[Rate]] = {"Steps": Steps, "Bursts": Bursts, "Diurnal": Diurnal}


def _sums(amounts: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(amounts)])
