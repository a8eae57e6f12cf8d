"""What an aggregate keeps of sampled tuples, and how it becomes an estimate with limits.

A tuple that is kept with probability p weighs w = 1/p. All that is kept of the tuples are moments, which add up over
panes and batches, and the smallest and the largest value. NULL as a limit says that there is none: the answer may be
anything on that side.

Limits are true for the answer of a group that is delivered, whatever the rates were and however they changed. They
cannot know of values unlike all that were kept: if one tuple in a thousand is a million times as large as the others,
and none of these was kept, nothing tells.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.aggregates import AggregateFunction, Merge, Partial, Scaling, aggregate_named
from headgate.errors import FlowError
from headgate.plan.logical import render
from headgate.plan.stream.stages import Continuous, Stage
from headgate.shed.estimate.intervals import (
    MEANS,
    SUMS,
    Spread,
    Step,
    count_limits,
    nonzero,
    normal_quantile,
    number,
    total_limits,
)

#: A variance has an upper limit where the sample is as large as this, and the tail of its squares no heavier.
_ENOUGH_TUPLES, _HEAVY_SQUARES = 30, 0.7
#: A smaller part than this of two sums of squares is no difference between them, but rounding.
_ROUNDING = "1e-15"


@dataclass(frozen=True, slots=True)
class Estimator:
    """The partials of an aggregate over a sample, and its estimate with both limits.

    In the partials `{w}` is the weight that all their tuples have, a double, and `{x}` and `{f}` are as in any partial:
    tuples of different weights are never in one partial row, so that what each tuple goes through is no more than what
    exact answers and squares take. In the other
    texts, the names of partials and of steps before are holes, and `{top}` is the largest weight that a tuple of the
    window may have had. That has to come from the rates of the window, not from the tuples that were kept: the tuples
    of a group that fell into a moment of heavy shedding may all be gone. Where it is 1, nothing was shed, and the
    limits are the answer.

    For large values that differ by little, fill `{x}` with their distance from a number near to them, so that their
    squares keep their digits: a variance stays the same, and an average with its limits is shifted by that number.
    """

    partials: tuple[Partial, ...]
    steps: tuple[Step, ...]
    value: str
    low: str
    high: str
    squared: str = ""
    """The squares of the values over the square of their sum, on which the error of a sum depends."""


@dataclass(frozen=True, slots=True)
class QuantileShares:
    """A quantile lies between those at these shares of the weight. NULL if the sample is too small to tell."""

    partials: tuple[Partial, ...]
    low: str
    high: str


def samplable(name: str, distinct: bool = False) -> bool:
    """Whether an aggregate can be estimated from a sample.

    >>> samplable("sum"), samplable("count", distinct=True), samplable("mode")
    (True, False, False)
    """
    function = aggregate_named(name)
    return function is not None and function.scaling is not None and not distinct


def check_estimated(query: Continuous, join: Stage | None = None) -> None:
    """Raises an error if a query cannot be answered from a sample: of streams, or of the pairs of a join."""
    what, otherwise = f"query {query.name} cannot be estimated", "answer it exactly, hg.exact()"
    first, *others = query.stages if join is None else query.stages[-1:]
    if others or first.holds or (first.own is not None and first.aggregate is None):
        raise FlowError(
            f"{what}: only tuples of streams, or an aggregate over them or over a join, can be sampled; {otherwise}"
        )
    aggregate = first.aggregate
    if aggregate is None:
        return
    for call in aggregate.calls:
        if not samplable(call.function.name, call.distinct):
            asked = render.call(call, aggregate.input)
            raise FlowError(f"{what}: there is no rule by which {asked} follows from a sample; {otherwise}")


def estimator(function: AggregateFunction, confidence: float) -> Estimator:
    """How a built-in aggregate is estimated, with limits that hold the answer with this confidence.

    >>> from headgate.aggregates import builtin
    >>> [p.name for p in estimator(builtin("sum"), 0.99).partials]
    ['n', 'w2', 's1', 's2', 'a1', 'a2', 'lo', 'hi']
    >>> estimator(builtin("min"), 0.99).low
    'CASE WHEN {top} = 1 THEN {lo} END'
    """
    normal_quantile(confidence)
    match function.scaling:
        case Scaling.COUNT:
            return _count(function.arity != 0, confidence)
        case Scaling.SUM:
            return _sum(confidence)
        case Scaling.MEAN:
            return _average(confidence)
        case Scaling.SPREAD:
            return _deviation(function.name, confidence)
        case Scaling.LEAST:
            return Estimator((_LO,), (), "{lo}", "CASE WHEN {top} = 1 THEN {lo} END", "{lo}")
        case Scaling.GREATEST:
            return Estimator((_HI,), (), "{hi}", "{hi}", "CASE WHEN {top} = 1 THEN {hi} END")
    raise FlowError(
        f"{function.name} cannot be estimated from partials of a sample: answer it exactly, or from subsets"
    )


def quantile_shares(fraction: float, confidence: float) -> QuantileShares:
    """The quantiles of the kept values, by weight, between which that of all values lies.

    Of the kept values a hypergeometric number is below the quantile of all, and the shares are its limits: by its
    deviation, its skewness as far as that makes them wider, half a kept tuple, and the two places that a quantile lies
    between. Rates are taken to have changed without regard to the values.

    >>> quantile_shares(1.5, 0.99)
    Traceback (most recent call last):
    headgate.errors.FlowError: fraction=1.5: give a number from 0 to 1, such as 0.5 for the median
    """
    if not 0 <= fraction <= 1:
        raise FlowError(f"fraction={fraction}: give a number from 0 to 1, such as 0.5 for the median")
    z = normal_quantile(confidence)
    deviation = f"{number(z * (fraction * (1 - fraction)) ** 0.5)} * sqrt({{w2}} + {{top}} * ({{top}} - 1))"
    # Where most tuples are kept, it is the few that were dropped that make it skew, to the other side.
    skewness = f"{number((z * z - 1) * (1 - 2 * fraction) / 6)} * ({{top}} - 2)"
    below = f"{deviation} - least({skewness}, 0) + {number(fraction)} + 0.5e0 * {{top}}"
    above = f"{deviation} + greatest({skewness}, 0) + {number(1 - fraction)} + 0.5e0 * {{top}}"
    low, high = f"({number(fraction)} - ({below}) / {{w1}})", f"({number(fraction)} + ({above}) / {{w1}})"
    return QuantileShares(
        (_W1, _W2),
        f"CASE WHEN {{top}} = 1 THEN {number(fraction)} WHEN {low} > 0 THEN {low} END",
        f"CASE WHEN {{top}} = 1 THEN {number(fraction)} WHEN {high} < 1 THEN {high} END",
    )


def _moment(name: str, weight: str, of: str, whole: str) -> Partial:
    return Partial(name, f"{weight} * {of}{{f}}", Merge.SUM, whole)


_X, _ERROR = "CAST({x} AS DOUBLE)", "{w} * ({w} - 1)"
_NOTHING = "sum(0D){f}"
_N = Partial("n", "count({x}){f}", Merge.SUM)
_W1 = _moment("w1", "{w}", "count({x})", "CAST(count({x}){f} AS DOUBLE)")
_W2 = _moment("w2", _ERROR, "count({x})", _NOTHING)
# Every tuple goes through these: products cost less than powers.
_POWERS = {i: f"sum({' * '.join([_X] * i)})" for i in (1, 2, 3, 4)}
_S1, _S2 = (_moment(f"s{i}", "{w}", _POWERS[i], f"{_POWERS[i]}{{f}}") for i in (1, 2))
_A1, _A2, _A3, _A4 = (_moment(f"a{i}", _ERROR, power, _NOTHING) for i, power in _POWERS.items())
_LO, _HI = Partial("lo", "min({x}){f}", Merge.MIN), Partial("hi", "max({x}){f}", Merge.MAX)
#: How many tuples those that were taken stand for.
TOTAL = _moment("w1", "{w}", "count(*)", "CAST(count(*){f} AS DOUBLE)")
_ROWS = (Partial("n", "count(*){f}", Merge.SUM), TOTAL, _moment("w2", _ERROR, "count(*)", _NOTHING))

_SQUARED_SUM = f"{{s2}} / {nonzero('pow({s1}, 2)')}"
_MEAN = Step("mean", f"{{s1}} / {nonzero('{w1}')}")
#: Squared distances from the mean, with weights w(w - 1).
_SQUARED = Step("squared", "greatest({a2} - 2 * {mean} * {a1} + pow({mean}, 2) * {w2}, 0)")


def _sampled(exact: str, limit: str) -> str:
    """A limit, if tuples may have been dropped."""
    return f"CASE WHEN {{top}} = 1 THEN {exact} ELSE {limit} END"


def _count(of_values: bool, confidence: float) -> Estimator:
    """The weights add up to the number of tuples; a group may be delivered with none of those that count."""
    partials, value = (_N, _W1, _W2) if of_values else _ROWS, "coalesce({w1}, 0)"
    return Estimator(partials, count_limits(confidence), value, _sampled(value, "{low}"), _sampled(value, "{high}"))


def _sum(confidence: float) -> Estimator:
    """Values with their weights; a dropped tuple counts as 0, which is therefore in the range of values."""
    spread = Spread("0e0", "{a1}", "{a2}", "least({lo}, 0)", "greatest({hi}, 0)")
    # Of zeros nothing can be said but that they are there.
    low, high = (f"CASE WHEN {{furthest}} > 0 THEN {{s1}} {error} END" for error in ("- {below}", "+ {above}"))
    return Estimator(
        (_N, _W2, _S1, _S2, _A1, _A2, _LO, _HI),
        total_limits(spread, SUMS, confidence),
        "{s1}",
        _sampled("{s1}", low),
        _sampled("{s1}", high),
        _SQUARED_SUM,
    )


def _average(confidence: float) -> Estimator:
    """The total of values over the total of weights; without two different values, nothing tells how they spread."""
    spread = Spread("{mean}", "{a1}", f"greatest({{squared}}, {_ROUNDING} * {{a2}})", "{lo}", "{hi}")
    low, high = (
        f"CASE WHEN {{lo}} < {{hi}} THEN {{mean}} {error} / {{w1}} END" for error in ("- {below}", "+ {above}")
    )
    return Estimator(
        (_N, _W1, _W2, _S1, _S2, _A1, _A2, _LO, _HI),
        (_MEAN, _SQUARED, *total_limits(spread, MEANS, confidence)),
        "{mean}",
        _sampled("{mean}", low),
        _sampled("{mean}", high),
        _SQUARED_SUM,
    )


def _deviation(name: str, confidence: float) -> Estimator:
    """A variance is the mean of squared distances from the mean, and its limits are those of a mean.

    The squares of a heavy tail have one that is twice as heavy, and no upper limit that would be of use.
    """
    steps = (
        _MEAN,
        _SQUARED,
        # The mean of a sample is nearer to its tuples than that of all tuples: its own variance is what is missing.
        Step("weight", nonzero("{w1}")),
        Step("variance", "greatest({s2} / {weight} - pow({mean}, 2), 0) + {squared} / pow({weight}, 2)"),
        Step(
            "fourth",
            "{a4} - 4 * {mean} * {a3} + 6 * pow({mean}, 2) * {a2} - 4 * pow({mean}, 3) * {a1} + pow({mean}, 4) * {w2}",
        ),
        Step("largest", "pow(greatest({hi} - {mean}, {mean} - {lo}), 2)"),
    )
    spread = Spread(
        "{variance}",
        "{squared}",
        f"greatest({{fourth}} - 2 * {{variance}} * {{squared}} + pow({{variance}}, 2) * {{w2}}, {_ROUNDING} * {{a4}})",
        "0e0",
        "greatest({largest}, {variance})",
    )
    enough = f"{{tuples}} >= {_ENOUGH_TUPLES} AND {{tail_above}} <= {number(_HEAVY_SQUARES)}"
    low = "CASE WHEN {lo} < {hi} THEN greatest({variance} - {below} / {w1}, 0) ELSE 0 * {variance} END"
    high = f"CASE WHEN {{lo}} < {{hi}} AND {enough} THEN {{variance}} + {{above}} / {{w1}} END"
    texts = ["{variance}", _sampled("{variance}", low), _sampled("{variance}", high)]
    if name.endswith("samp"):
        texts = [f"CASE WHEN {{w1}} > 1 THEN ({text}) * {{w1}} / ({{w1}} - 1) END" for text in texts]
    if name.startswith("stddev"):
        texts = [f"sqrt({text})" for text in texts]
    value, low, high = texts
    partials = (_N, _W1, _W2, _S1, _S2, _A1, _A2, _A3, _A4, _LO, _HI)
    return Estimator(partials, (*steps, *total_limits(spread, MEANS, confidence)), value, low, high)
