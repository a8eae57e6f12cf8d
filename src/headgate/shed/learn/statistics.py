"""What the streams are like just now: arrival rates, selectivities, and the values that are aggregated."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Any

#: A figure so many deviations off what was expected is a jump. So is one that follows another on the same side: the
#: second is nearer, as the first has drawn the expectation with it.
_JUMP, _BEFORE, _AGAIN = 3.0, 2.0, 1.0
#: No figure is expected to be steadier than this part of itself, and a first one is taken to be much less steady.
_STEADY, _FIRST = 0.05, 0.15
#: A sample of so many tuples counts half as much as a large one.
_SMALL = 100.0


@dataclass(frozen=True, slots=True)
class Smoothed:
    """A figure followed from batch to batch: smooth while it is steady, at once where it jumps.

    `deviation` is how far a batch's figure is from the one expected, as a rule. `evidence` is the weight of the
    batches that the value rests on, older ones forgotten. `outside` is how many deviations the last figure was off.

    >>> steady = Smoothed.first(100.0)
    >>> round(steady.then(110.0, keep=0.5).value), round(steady.then(300.0, keep=0.5).value)
    (107, 300)
    """

    value: float
    deviation: float
    evidence: float
    outside: float = 0.0

    @classmethod
    def first(cls, figure: float, *, weight: float = 1.0, noise: float = 0.0) -> Smoothed:
        """Give the state after the first figure."""
        return cls(figure, max(_FIRST * abs(figure), noise), weight)

    def then(self, figure: float, *, keep: float, weight: float = 1.0, noise: float = 0.0) -> Smoothed:
        """Give the state after one more figure, of which `noise` is the deviation that sampling alone explains.

        `weight` is 1 for a figure as good as they get, and less for a small sample; `keep` is the part of the
        evidence that is left after a batch.
        """
        usual = max(self.deviation, _STEADY * abs(self.value), noise)
        far = figure - self.value
        off = far / usual if usual else math.copysign(math.inf, far) if far else 0.0
        # Clipped, so that one jump does not hide the next with a large deviation.
        clipped = min(abs(far), _JUMP * usual)
        part = weight * (1 - keep)
        # Not by squares, which are too large to be numbers where values are half as large as numbers get.
        deviation = math.hypot(math.sqrt(1 - part) * self.deviation, math.sqrt(part) * clipped)
        twice = off * self.outside > 0 and abs(self.outside) > _BEFORE and abs(off) > _AGAIN
        if abs(off) > _JUMP or twice:
            return Smoothed(figure, deviation, weight)
        evidence = keep * self.evidence + weight
        return Smoothed(self.value + far * weight / evidence, deviation, evidence, off)


@dataclass(frozen=True, slots=True)
class Arrived:
    """The tuples of a stream in a batch: how many, and how many of them were looked at to say so.

    A number that is known without a look at the tuples, such as that of a range of offsets, has been seen whole.
    """

    tuples: float
    seen: int

    def __post_init__(self) -> None:
        _check("arrived", tuples=self.tuples, seen=self.seen)
        if self.tuples > 0 and self.seen == 0:
            raise ValueError(f"arrived: tuples={self.tuples} of which none was seen: leave out what is not known")


@dataclass(frozen=True, slots=True)
class Passed:
    """The tuples that a segment took in and gave out in a batch, and how many of those taken were really there."""

    taken: float
    given: float
    seen: int

    def __post_init__(self) -> None:
        _check("passed", taken=self.taken, given=self.given, seen=self.seen)


@dataclass(frozen=True, slots=True)
class Summed:
    """The values that an aggregate took in for one group in a batch: their number, sum and sum of squares.

    >>> both = Summed(2, 10.0, 52.0, seen=2) + Summed(2, 10.0, 58.0, seen=2)
    >>> both.mean, both.variance
    (5.0, 2.5)
    """

    n: float
    total: float
    squares: float
    seen: int

    def __post_init__(self) -> None:
        _check("summed", n=self.n, seen=self.seen)

    def __add__(self, other: Summed) -> Summed:
        return Summed(self.n + other.n, self.total + other.total, self.squares + other.squares, self.seen + other.seen)

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return self.total / self.n

    @property
    def variance(self) -> float:
        """Their variance; what rounding makes negative is zero."""
        return max(self.squares / self.n - self.mean * self.mean, 0.0)

    @property
    def tells(self) -> bool:
        """Whether there are values, and no infinity or NaN among them, of which nothing could be learned."""
        return self.n > 0 and self.seen > 0 and math.isfinite(self.total) and math.isfinite(self.squares)


@dataclass(frozen=True, slots=True)
class Rate:
    """How much of a stream arrives; nothing is known of a second until the time between two batches is."""

    a_batch: float
    a_second: float | None


@dataclass(frozen=True, slots=True)
class Values:
    """The values of an aggregate, of one group or all: how many a batch has, their mean and their deviation."""

    n: float
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class _Followed:
    """The values of one group from batch to batch."""

    n: Smoothed
    mean: Smoothed | None = None
    variance: Smoothed | None = None


class Statistics:
    """Follows the figures that planners need, after the statistics manager of Babcock, Datar and Motwani.

    It is fed once a batch, with figures that may come from a sample and are scaled up already. What an old
    batch said counts half after `half_life` batches; a step is followed within two. Of each aggregate only
    the `groups` heaviest groups are kept.

    >>> statistics = Statistics(half_life=4)
    >>> for arrived in (1000, 1010, 990, 3000):
    ...     statistics.observe(seconds=5.0, streams={"Main": Arrived(arrived, seen=arrived)})
    >>> statistics.rate("Main")
    Rate(a_batch=3000.0, a_second=600.0)
    """

    def __init__(self, *, half_life: float = 3.0, groups: int = 500) -> None:
        if not half_life > 0 or groups < 1:
            raise ValueError(f"half_life={half_life}, groups={groups}: give more than zero of both")
        self._keep = 0.5 ** (1 / half_life)
        self._limit = groups
        self._batches: dict[str, Smoothed] = {}
        self._seconds: dict[str, Smoothed] = {}
        self._segments: dict[str, Smoothed] = {}
        self._wholes: dict[str, _Followed] = {}
        self._groups: dict[str, dict[str, _Followed]] = {}

    def observe(
        self,
        *,
        seconds: float | None = None,
        streams: Mapping[str, Arrived] | None = None,
        segments: Mapping[str, Passed] | None = None,
        aggregates: Mapping[str, Mapping[str | None, Summed]] | None = None,
    ) -> None:
        """Take in the figures of a batch whose tuples arrived within `seconds`, if that is known.

        What is not named was not looked at, and stays as it was. An aggregate's values are given by group,
        under None where it has no groups; a group that is not named had no values.
        """
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"a batch of {seconds} seconds: give more than zero, or None where it is not known")
        for name, arrived in (streams or {}).items():
            scale = arrived.tuples / arrived.seen if arrived.seen else 1.0
            self._batches[name] = self._counted(self._batches.get(name), arrived.tuples, scale, 1.0)
            if seconds is not None:
                self._seconds[name] = self._counted(self._seconds.get(name), arrived.tuples, scale, seconds)
        for name, passed in (segments or {}).items():
            if passed.taken > 0 and passed.seen > 0:
                self._segments[name] = self._selected(self._segments.get(name), passed)
        for name, summed in (aggregates or {}).items():
            self._observe_values(name, summed)

    def rate(self, stream: str) -> Rate | None:
        """Give the arrival rate of a stream, or None while nothing is known of it."""
        if stream not in self._batches:
            return None
        second = self._seconds.get(stream)
        return Rate(self._batches[stream].value, second.value if second else None)

    def selectivity(self, segment: str) -> float | None:
        """Give the tuples that a segment gives out for each that it takes in, or None while that is not known."""
        followed = self._segments.get(segment)
        return followed.value if followed else None

    def values(self, aggregate: str) -> Values | None:
        """Give what all values of an aggregate are like, or None while that is not known."""
        followed = self._wholes.get(aggregate)
        return _values(followed) if followed else None

    def groups(self, aggregate: str) -> dict[str, Values]:
        """Give what the values of an aggregate's heaviest groups are like, the heaviest first."""
        told = ((name, _values(followed)) for name, followed in self._groups.get(aggregate, {}).items())
        return dict(sorted(((g, v) for g, v in told if v), key=lambda item: -item[1].n))

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {
            "batches": {name: asdict(s) for name, s in self._batches.items()},
            "seconds": {name: asdict(s) for name, s in self._seconds.items()},
            "segments": {name: asdict(s) for name, s in self._segments.items()},
            "wholes": {name: asdict(f) for name, f in self._wholes.items()},
            "groups": {a: {name: asdict(f) for name, f in groups.items()} for a, groups in self._groups.items()},
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], *, half_life: float = 3.0, groups: int = 500) -> Statistics:
        """Give the statistics that were in this state."""
        statistics = cls(half_life=half_life, groups=groups)
        statistics._batches = {name: Smoothed(**s) for name, s in state["batches"].items()}
        statistics._seconds = {name: Smoothed(**s) for name, s in state["seconds"].items()}
        statistics._segments = {name: Smoothed(**s) for name, s in state["segments"].items()}
        statistics._wholes = {name: _followed(f) for name, f in state["wholes"].items()}
        statistics._groups = {a: {n: _followed(f) for n, f in kept.items()} for a, kept in state["groups"].items()}
        return statistics

    def _observe_values(self, aggregate: str, summed: Mapping[str | None, Summed]) -> None:
        whole = reduce(add, summed.values(), Summed(0, 0.0, 0.0, 0))
        # A group of a sample is short of tuples by chance, and how much so only the whole batch can tell.
        scale = whole.n / whole.seen if whole.seen else 1.0
        self._wholes[aggregate] = self._valued(self._wholes.get(aggregate), whole, scale)
        named = {group: values for group, values in summed.items() if group is not None}
        known = self._groups.get(aggregate, {})
        nothing = Summed(0, 0.0, 0.0, 0)
        followed = {
            group: self._valued(known.get(group), named.get(group, nothing), scale)
            for group in {**known, **named}  # in a fixed order, so that a replay keeps the same ones
        }
        if followed:
            heaviest = heapq.nlargest(self._limit, followed.items(), key=lambda item: item[1].n.value)
            self._groups[aggregate] = dict(heaviest)

    def _counted(self, known: Smoothed | None, tuples: float, scale: float, seconds: float) -> Smoothed:
        """Follow a number of tuples, each of those seen standing for `scale`, as so many in a unit of time.

        Tuples come by chance and are sampled by chance. Both are judged by the number expected, as judged by
        the number found a large figure would count for more than a small one.
        """
        expected = max(known.value * seconds if known else tuples, scale) or 1.0
        weight = 1 / (1 + _SMALL * max(scale - 1, 0.0) / expected)
        noise = math.sqrt(expected * scale) / seconds
        return self._follow(known, tuples / seconds, weight, noise)

    def _selected(self, known: Smoothed | None, passed: Passed) -> Smoothed:
        figure = passed.given / passed.taken
        expected = max(known.value if known else figure, 1 / passed.seen)
        return self._follow(known, figure, _trust(passed.seen), math.sqrt(expected / passed.seen))

    def _valued(self, known: _Followed | None, summed: Summed, scale: float) -> _Followed:
        n = self._counted(known.n if known else None, summed.n, scale, 1.0)
        mean, variance = (known.mean, known.variance) if known else (None, None)
        if not summed.tells:
            return _Followed(n, mean, variance)
        expected = variance.value if variance else summed.variance
        weight = _trust(summed.seen)
        return _Followed(
            n,
            self._follow(mean, summed.mean, weight, math.sqrt(expected / summed.seen)),
            self._follow(variance, summed.variance, weight, expected * math.sqrt(2 / summed.seen)),
        )

    def _follow(self, known: Smoothed | None, figure: float, weight: float, noise: float) -> Smoothed:
        if known is None:
            return Smoothed.first(figure, weight=weight, noise=noise)
        return known.then(figure, keep=self._keep, weight=weight, noise=noise)


def _trust(seen: int) -> float:
    """The weight of a sample: by its tuples while these are few, and then by what one batch can tell."""
    return seen / (seen + _SMALL)


def _values(followed: _Followed) -> Values | None:
    if followed.mean is None or followed.variance is None:
        return None
    return Values(followed.n.value, followed.mean.value, math.sqrt(max(followed.variance.value, 0.0)))


def _followed(state: Mapping[str, Any]) -> _Followed:
    mean, variance = (Smoothed(**state[name]) if state[name] else None for name in ("mean", "variance"))
    return _Followed(Smoothed(**state["n"]), mean, variance)


def _check(what: str, **numbers: float) -> None:
    for name, number in numbers.items():
        if not 0 <= number < math.inf:
            raise ValueError(f"{what}: {name}={number} is not a number of tuples: give zero or more")
