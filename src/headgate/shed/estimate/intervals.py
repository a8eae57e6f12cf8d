"""Confidence limits from moments of a sample, as SQL: for counts, and for sums and means of any values.

Each tuple was kept with a probability of its own and weighs one over it. The texts have holes: `{top}` is the largest
weight that a tuple of the window may have had, kept or not; the others are the moments that `estimators` keeps of the
tuples, and the names of the steps before. They are double arithmetic that Spark and DuckDB read alike, and no step
divides by zero: it is NULL instead.

What nobody has seen can only be guessed, so two guards protect every limit. One more tuple than was kept is
counted, at the lowest rate of the window: tuples of a moment of heavy shedding may all have been lost. And limits
widen with the tail: where the largest value makes up much of the sum of squares, larger ones are likely among the
tuples that were dropped. How far they widen was fitted by simulation, so that values with a tail as heavy as that of
a Pareto distribution of index 1.5, or lognormal ones with sigma 2, are covered too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from headgate.errors import FlowError


@dataclass(frozen=True, slots=True)
class Step:
    """A named expression over moments and the steps before it, so that none is written, or evaluated, twice."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Widening:
    """How much wider limits are than normal ones: for few tuples, for a heavy tail, and for both together."""

    few: float
    tail: float
    tail_power: float
    both: float
    both_power: float


SUMS = Widening(few=3, tail=6, tail_power=4, both=7, both_power=0.25)
#: Without the number of tuples, which is uncertain too, the spread of few values is all there is.
MEANS = Widening(few=5, tail=3, tail_power=2.75, both=42, both_power=0.82)


def nonzero(sql: str) -> str:
    """A number, and NULL in place of zero.

    It is `nullif`, of which Spark would make steps of its own, in another order each time: other code for the same.

    >>> nonzero("{n}")
    '(CASE WHEN {n} <> 0 THEN {n} END)'
    """
    return f"(CASE WHEN {sql} <> 0 THEN {sql} END)"


#: The least part that is outside of any limits.
_OUTSIDE = 1e-12
#: The squared error that one tuple at the lowest rate makes, for a value of one; and how many tuples at that rate would
#: tell as much as those kept, with the one more.
_LOWEST_RATE = (
    Step("unit", nonzero("{top} * ({top} - 1)")),
    Step("tuples", "({w2} + {unit}) / {unit}"),
)


def normal_quantile(confidence: float) -> float:
    """The standard deviations to both sides that hold this share of a normal distribution.

    >>> round(normal_quantile(0.99), 3)
    2.576
    """
    if not 0 < confidence < 1:
        raise FlowError(f"confidence={confidence}: give a number between 0 and 1, such as 0.99")
    return float(stats.norm.ppf((1 + confidence) / 2))


def widened(confidence: float, variance: float) -> float:
    """The confidence whose limits are as wide as those of this one with so many times the variance.

    >>> round(widened(0.95, 2), 4)
    0.9944
    """
    outside = 2 * stats.norm.sf(normal_quantile(confidence) * variance**0.5)
    return float(1 - max(outside, _OUTSIDE))


def number(value: float) -> str:
    """A number as a double in SQL: without an exponent, it would be a decimal.

    >>> number(0.25)
    '2.5e-01'
    """
    return np.format_float_scientific(value, trim="0")


def count_limits(confidence: float) -> tuple[Step, ...]:
    """The steps to the limits `low` and `high` of a number of tuples, from the moments n, w1 and w2 of those kept.

    The number of tuples that were dropped has a gamma distribution with the mean and variance seen (after Fay and
    Feuer, Confidence intervals for directly standardized rates), whose quantiles are taken by the cube root of Wilson
    and Hilferty. Those kept are certain. A group of which nothing was kept is not delivered, so one with a small
    sample was lucky: the lower limit takes part of a tuple away for this.
    """
    z = normal_quantile(confidence)
    return (
        Step("dropped", "coalesce({w1}, 0) - {n}"),
        Step("variance", "coalesce({w2}, 0)"),
        Step("shape", f"pow({{dropped}}, 2) / {nonzero('{variance}')}"),
        Step("lucky", f"greatest({{shape}} - 1 / sqrt({nonzero('{shape}')}), 1e-9)"),
        Step("least", f"{{variance}} / {nonzero('{dropped}')} * {_gamma_quantile('lucky', -z)}"),
        Step("low", "{n} + greatest({least} - 0.5e0, 0)"),
        Step("more", nonzero("{dropped} + {top} - 1")),
        Step("wider", "{variance} + {top} * ({top} - 1)"),
        Step("larger", f"pow({{more}}, 2) / {nonzero('{wider}')}"),
        Step("high", f"{{n}} + {{wider}} / {{more}} * {_gamma_quantile('larger', z)} + 0.5e0"),
    )


def _gamma_quantile(shape: str, z: float) -> str:
    """The quantile of a gamma distribution of scale 1 where a normal one has z."""
    return f"{{{shape}}} * pow(greatest(1 - 1 / (9 * {{{shape}}}) + {number(z / 3)} / sqrt({{{shape}}}), 0), 3)"


@dataclass(frozen=True, slots=True)
class Spread:
    """How values lie around a centre, each an SQL text: what the limits of their total are made from.

    `first` and `squares` are sums over kept tuples with weights w(w - 1), of the values and of their squared
    distances from the centre. No value was seen below `floor` or above `ceiling`.
    """

    centre: str
    first: str
    squares: str
    floor: str
    ceiling: str


def total_limits(spread: Spread, widening: Widening, confidence: float) -> tuple[Step, ...]:
    """The steps to how far a total may be `above` and `below` its estimate.

    `tail_above` and `tail_below` on the way are how heavy the tails are, from 0 to 1.
    """
    return (
        *_LOWEST_RATE,
        Step("centre", spread.centre),
        Step("first", spread.first),
        Step("squares", spread.squares),
        Step("floor", spread.floor),
        Step("ceiling", spread.ceiling),
        Step("furthest", "greatest({ceiling} - {centre}, {centre} - {floor})"),
        # The tuple that was not seen is as the others on average, among which the furthest counts once more.
        Step("unseen", "({squares} + {unit} * pow({furthest}, 2)) / {tuples}"),
        Step("deviation", "sqrt({squares} + {unseen})"),
        *_side("above", "{ceiling} - {centre}", "{first} - {floor} * {w2}", widening, confidence),
        *_side("below", "{centre} - {floor}", "{ceiling} * {w2} - {first}", widening, confidence),
    )


def _side(side: str, reach: str, mass: str, widening: Widening, confidence: float) -> tuple[Step, ...]:
    """The steps to one side, to which values were seen to reach so far, and on which they have this mass.

    The squared reach against the mean square stays the same for bounded values, however many, and grows with their
    number for heavy tails: so its logarithm is compared with that of the number. The furthest was found among all that
    were kept, and squares count as at the lowest rate, so it is the geometric mean of both numbers.

    Where there is a tail, errors are on a logarithmic scale, against the total of what was dropped if all had come
    at the lowest rate: the sum of a heavy tail is off by factors.
    """
    few = "{tuples} / ({n} + 1)"
    for_few = f"{number(widening.few)} * {few} / {nonzero('{n}')}"
    for_both = f"{number(widening.both)} * {few} / pow({nonzero('{n}')}, {number(widening.both_power)})"
    for_tail = f"({number(widening.tail)} + {for_both}) * pow({{tail_{side}}}, {number(widening.tail_power)})"
    return (
        Step(f"reach_{side}", f"greatest({reach}, 0)"),
        Step(
            f"peak_{side}",
            f"{{reach_{side}}} * {{furthest}} / {nonzero('{squares} / {unit} + pow({furthest}, 2)')}",
        ),
        Step(
            f"tail_{side}",
            f"greatest((ln(greatest({{peak_{side}}} * {{tuples}}, 1e-300)) + 1)"
            " / (0.5e0 * ln({tuples} * ({n} + 1)) + 1), 0)",
        ),
        Step(f"width_{side}", f"{number(normal_quantile(confidence))} * {{deviation}} * (1 + {for_few} + {for_tail})"),
        Step(
            f"whole_{side}",
            f"greatest({mass}, abs({{first}} - {{centre}} * {{w2}})) / {{top}}"
            " + ({top} - 1) * ({ceiling} - {floor})",
        ),
        Step(f"mass_{side}", nonzero(f"{{whole_{side}}}")),
        Step(
            side,
            f"CASE WHEN {{reach_{side}}} > 0 THEN {{mass_{side}}} * (exp({{width_{side}}} / {{mass_{side}}}) - 1)"
            f" ELSE {{width_{side}}} END",
        ),
    )
