"""What a batch costs: seconds from amounts of work, learned from the batches themselves."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Amounts = Mapping[str, float]
"""Named numbers of things that a batch did: tuples read, tuples aggregated, groups closed, and so on."""

Vector = NDArray[np.float64]

#: Batches until predictions are trusted.
_CALIBRATION = 8
#: The first batches after a start run in cold code. A batch counts by the square of its number up to this one.
_WARM = 10
#: How long batches are kept, in half-lives.
_MEMORY = 4
#: The pull towards the prior, on shares of a batch's time, where a batch that is as predicted within noise counts 1.
_PULL = 0.1
#: The part of a batch that is put down to no amount as long as nothing is known.
_FIXED = 0.1
#: An amount costs this part of what the prior says, at the level of the batches, at least. Where they do not tell costs
#: apart, one may seem to be all of it; but of what costs nothing a plan would take any amount.
_LEAST = 0.2
#: Errors beyond so many usual ones count less; no model is expected to be better than the second number.
_HUBER, _EXACT = 1.5, 0.03
_ROUNDS = 5
#: Less than this of an amount is none of it, and says nothing about its cost.
_SOME = 1e-9
#: So many batches in a row that are off by this much (a logarithm), all to one side, are no outliers: the machine
#: runs at another pace.
_LASTING, _FAR = 3, 0.25
#: How much the last batch's error counts in the recent one.
_RECENT = 0.1


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Seconds that every batch takes, and seconds for one of each amount.

    >>> Coefficients(0.5, {"tuples read": 2e-6}).seconds({"tuples read": 1_000_000})
    2.5
    """

    fixed: float
    each: Mapping[str, float]

    def __post_init__(self) -> None:
        _check(self.fixed, "the fixed cost")
        for name, cost in self.each.items():
            _check(cost, f"the cost of {name}")

    def seconds(self, amounts: Amounts) -> float:
        """Give how long a batch with these amounts takes. What has no coefficient costs nothing."""
        return self.fixed + sum(self.each.get(name, 0.0) * amount for name, amount in amounts.items())

    def explain(self) -> str:
        """Give the coefficients as text, the dearest first.

        >>> print(Coefficients(0.31, {"tuples read": 1.2e-7, "groups closed": 3e-5}).explain())
        0.31 s a batch
        30 s for a million groups closed
        0.12 s for a million tuples read
        >>> print(Coefficients(0.31, {"batches that close windows": 0.9}).explain())
        0.31 s a batch
        0.9 s more for each of the batches that close windows
        """
        dearest = sorted(self.each.items(), key=lambda item: (-item[1], item[0]))
        return "\n".join([f"{_seconds(self.fixed)} a batch", *(_priced(name, cost) for name, cost in dearest)])


def _priced(name: str, cost: float) -> str:
    if name.startswith("batches "):
        return f"{_seconds(cost)} more for each of the {name}"
    return f"{_seconds(cost * 1e6)} for a million {name}"


def _seconds(seconds: float) -> str:
    """Seconds with three digits that count, and never an exponent.

    >>> _seconds(907_123.4), _seconds(0.00001234)
    ('907,000 s', '0.0000123 s')
    """
    if seconds >= 1000:
        digits = 10 ** (math.floor(math.log10(seconds)) - 2)
        return f"{round(seconds / digits) * digits:,} s"
    if seconds < 1e-4:
        return f"{Decimal(f'{seconds:.3g}'):f} s"
    return f"{seconds:.3g} s"


@dataclass(frozen=True, slots=True)
class Observation:
    """What a batch did, how long it would take at the present pace, and how much that is to be believed.

    `off` is how far the prediction was off, as a logarithm.
    """

    amounts: dict[str, float]
    seconds: float
    trust: float = 1.0
    off: float = 0.0


class CostModel:
    """Learns the coefficients of a batch's duration, and predicts with them.

    `prior` gives what the amounts cost in relation to one another, from a calibration; recent batches tell the
    level, and the relation wherever amounts vary apart from one another. Without it, amounts share alike.

    >>> model = CostModel()
    >>> for million in [1, 2, 3] * 10:
    ...     model.observe({"tuples read": million * 1e6}, seconds=0.5 + 0.2 * million)
    >>> model.calibrated, round(model.predict({"tuples read": 5e6}), 1)
    (True, 1.5)
    """

    def __init__(self, prior: Coefficients | None = None, *, half_life: float = 24.0) -> None:
        if not half_life > 0:
            raise ValueError(f"half_life={half_life}: give more than zero batches")
        self.coefficients = prior or Coefficients(0.0, {})
        self.error: float | None = None
        """How far off recent predictions were, as a part of what they predicted, each made before its batch."""
        self._prior = prior or Coefficients(0.0, {})
        self._half_life = half_life
        self._window: deque[Observation] = deque(maxlen=max(math.ceil(_MEMORY * half_life), _CALIBRATION))
        self._batches = 0
        self._since_start = 0

    @property
    def calibrated(self) -> bool:
        """Whether there were batches enough for predictions to be trusted."""
        return self._batches >= _CALIBRATION

    def predict(self, amounts: Amounts) -> float:
        """Give how long a batch with these amounts will take; a first guess until the model is calibrated."""
        return self.coefficients.seconds(amounts)

    def observe(self, amounts: Amounts, seconds: float) -> None:
        """Take in what a batch did and how long it took, and learn from it."""
        for name, amount in amounts.items():
            _check(amount, f"the amount of {name}")
        if not 0 < seconds < math.inf:
            raise ValueError(f"a batch took {seconds} seconds: give a duration above zero")
        predicted = self.predict(amounts)
        if self.calibrated:
            error = min(abs(seconds / predicted - 1), 1.0) if predicted > 0 else 1.0
            self.error = error if self.error is None else self.error + _RECENT * (error - self.error)
        self._batches += 1
        self._since_start += 1
        trust = min(self._since_start / _WARM, 1.0) ** 2
        off = math.log(seconds) - math.log(predicted) if predicted > 0 else 0.0
        self._window.append(Observation(dict(amounts), seconds, trust, off))
        self._window = deque(_at_one_pace(self._window), self._window.maxlen)
        self._prior = _extended(self._prior, amounts)
        self.coefficients = fitted(self._window, self._prior, self._half_life)

    def explain(self) -> str:
        """Give what the model has learned as text, and how far to trust it."""
        if not self.calibrated:
            trust = f"not to be trusted yet: {self._batches} of {_CALIBRATION} batches of calibration"
        elif self.error is None:
            trust = "calibrated, with no prediction to judge it by yet"
        else:
            trust = f"predictions are off by {self.error:.0%}"
        return f"{self.coefficients.explain()}\n{trust}"

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {
            "prior": asdict(self._prior),
            "coefficients": asdict(self.coefficients),
            "error": self.error,
            "batches": self._batches,
            "window": [asdict(batch) for batch in self._window],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], *, half_life: float = 24.0) -> CostModel:
        """Give the model that was in this state. The next batches are the first of a new start, in cold code."""
        model = cls(Coefficients(**state["prior"]), half_life=half_life)
        model.coefficients = Coefficients(**state["coefficients"])
        model.error = state["error"]
        model._batches = state["batches"]
        model._window.extend(Observation(**batch) for batch in state["window"])
        return model


def fitted(batches: Sequence[Observation], prior: Coefficients, half_life: float) -> Coefficients:
    """Give the coefficients that explain these batches best, the last ones above all.

    They are the non-negative least squares of relative errors. Durations scatter in proportion to their length,
    so relative errors weigh the same for short and long batches. A batch far off (a collection of garbage, a
    compaction) counts less. Where amounts go together nothing tells their costs apart: there a weak pull leads
    to the prior, brought to the level of the batches.

    >>> alike = [Observation({"read": x, "written": x}, seconds=4 * x) for x in (1.0, 2.0, 3.0)]
    >>> found = fitted(alike, Coefficients(0.0, {"read": 3.0, "written": 1.0}), half_life=10)
    >>> round(found.fixed, 2), {name: round(cost, 2) for name, cost in found.each.items()}
    (0.0, {'read': 3.0, 'written': 1.0})
    """
    names = list(prior.each)
    amounts = np.array([[1.0, *(batch.amounts.get(name, 0.0) for name in names)] for batch in batches])
    amounts[amounts <= _SOME] = 0.0
    seconds = np.array([batch.seconds for batch in batches])
    ages = np.arange(len(batches) - 1, -1, -1)
    weights = np.array([batch.trust for batch in batches]) * 0.5 ** (ages / half_life)
    expected = np.array([prior.fixed, *prior.each.values()])
    expected *= _level(seconds, amounts @ expected, weights)
    # Shares of a usual batch stand in for coefficients: numbers of one size, for a million tuples as for ten groups.
    usual = np.average(seconds, weights=weights)
    there = weights @ (amounts > 0)
    unit = np.where(there > 0, usual * there / np.where(there > 0, weights @ amounts, 1.0), 1.0)
    shares = amounts * unit
    least = _LEAST * expected / unit * (np.arange(len(unit)) > 0)  # Every batch has one fixed cost, whatever it is.
    pull = math.sqrt(_PULL) * np.eye(len(unit) + 2)
    pulled = math.sqrt(_PULL) * np.concatenate([expected / unit - least, [0.0, 0.0]])
    # Machines get slower and faster. Without a trend of its own, one up and one down, a slow machine that had to
    # shed more would look like one on which shedding does not pay.
    trend = np.outer(ages / half_life, [1.0, -1.0])
    found, drift = expected, np.zeros(len(seconds))
    for _ in range(_ROUNDS):
        predicted = np.maximum(amounts @ found, _EXACT * usual)
        errors = seconds / predicted - 1 - drift
        believed = np.sqrt(weights * _believed(errors, weights))
        rows = np.hstack([shares / predicted[:, None], trend]) * believed[:, None]
        left = seconds / predicted * believed - rows[:, :-2] @ least
        try:
            solution, _ = nnls(np.vstack([rows, pull]), np.concatenate([left, pulled]))
        except (RuntimeError, ValueError):
            break  # Numbers too far apart, or too many rounds: what was found so far is as good as it gets.
        if not np.isfinite(solution).all():
            break
        found, drift = (least + solution[:-2]) * unit, trend @ solution[-2:]
    return Coefficients(float(found[0]), dict(zip(names, found[1:].tolist(), strict=True)))


def _at_one_pace(batches: Sequence[Observation]) -> list[Observation]:
    """The batches, earlier ones brought to the pace of the last few if these show that it has changed.

    That is so if all of them took much longer than predicted, or all much less. What the amounts cost in relation
    to one another is learned from early batches as before.
    """
    earlier, last = list(batches)[:-_LASTING], list(batches)[-_LASTING:]
    low, high = min(batch.off for batch in last), max(batch.off for batch in last)
    change = low if low > _FAR else high if high < -_FAR else 0.0
    return [*(replace(batch, seconds=batch.seconds * math.exp(change)) for batch in earlier), *last]


def _level(seconds: Vector, predicted: Vector, weights: Vector) -> float:
    """What the prior has to be multiplied with, so that half of the batches take longer than it says."""
    told = predicted > 0
    return _median(seconds[told] / predicted[told], weights[told]) if told.any() else 1.0


def _believed(errors: Vector, weights: Vector) -> Vector:
    """The weights that keep errors far beyond the usual one from pulling harder than those at its edge (Huber)."""
    usual = max(_median(np.abs(errors), weights) * 1.4826, _EXACT)  # The deviation, were they normal.
    return np.asarray(1 / np.maximum(np.abs(errors) / (_HUBER * usual), 1.0))


def _median(numbers: Vector, weights: Vector) -> float:
    """The number that half of the weight lies below."""
    order = np.argsort(numbers)
    below = np.cumsum(weights[order])
    return float(numbers[order][np.searchsorted(below, below[-1] / 2)])


def _extended(prior: Coefficients, amounts: Amounts) -> Coefficients:
    """The prior with amounts not met before: each is taken to cost as much of this batch as the others do."""
    new = [name for name, amount in amounts.items() if amount > _SOME and name not in prior.each]
    known = [prior.each[name] * amount for name, amount in amounts.items() if name in prior.each and amount > _SOME]
    # Only relations count: where there is nothing to relate to, the unit is a batch.
    fixed = prior.fixed if prior.each else prior.fixed or _FIXED
    share = sum(known) / len(known) if known else (fixed or _FIXED) * (1 / _FIXED - 1) / max(len(new), 1)
    return Coefficients(fixed, {**prior.each, **{name: share / amounts[name] for name in new}})


def _check(number: float, what: str) -> None:
    if not 0 <= number < math.inf:
        raise ValueError(f"{what} is {number}: give a finite number, zero or more")
