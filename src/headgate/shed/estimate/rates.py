"""The part of its input that each query gets: from what is known of the data to the rates that the load allows.

The error that is minimised is the largest weighted one of all queries that are shed. What a query needs for an error
of at most e is the least rate at which its own is no larger:

- an aggregate, whose weighted error is c / rate with c = weight * constant: c / e, and 1 where c is above e, because
  then any rate below 1 gives more than e, while a query that is not shed has no error at all;
- a set of tuples, whose weighted error is weight * (1 - rate): 1 - e / weight, and 0 where that is negative.

These needs only grow as e falls, and so does the load. So the least e whose needs fit is the optimum, and nothing has
to be tried out about which queries should better be left alone: any plan with an error of at most e gives each query at
least what it needs for e, so it costs no less. The queries not shed are those with the largest c, and under a light
overload that matters much: where all had the same error, it could not be below the largest c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from headgate.errors import FlowError
from headgate.shed.estimate.tree import Kind, Leaf

Rates: TypeAlias = Mapping[str, float]

_FINEST = 1e-9
"""Rates that differ by less are the same: a batch has fewer tuples than would show it."""
_TOLERANCE = 1e-12
"""How near the logarithm of the error comes to that of the optimum."""


def error_constant(tuples: float, mean: float = 1.0, deviation: float = 0.0, confidence: float = 0.99) -> float:
    """The constant C of the a-priori bound: the relative error of a sum is at most C / rate, with this confidence.

    `tuples`, `mean` and `deviation` are those of the values in one window; a count is the sum of ones. After Babcock,
    Datar and Motwani, *Load Shedding for Aggregation Queries*, by Hoeffding's inequality. A bound beyond the answer
    itself says nothing, so the constant ends at 1, which also stands for windows without tuples and sums around 0.

    >>> round(error_constant(10_000), 4), round(error_constant(10_000, mean=2, deviation=4), 4)
    (0.0163, 0.0364)
    >>> error_constant(0)
    1.0
    """
    return float(_constants(tuples, mean, deviation, confidence))


def group_constant(
    tuples: ArrayLike,
    mean: ArrayLike,
    deviation: ArrayLike,
    share: ArrayLike,
    confidence: float = 0.99,
    tail: float = 0.05,
) -> float:
    """The constant of a query with groups, each with its tuples a window, and its share of all tuples of the query.

    All groups are sampled at one rate, so the worst of them sets it. Left out are the smallest groups that together
    hold no more than `tail` of the tuples: they would ask for every tuple, however many others there are. A share
    on its own would not do as the limit, because where there are many groups none has a share worth the name.

    >>> round(group_constant([9_000, 900, 10], 1, 0, share=[0.908, 0.091, 0.001]), 4)  # that of the second
    0.0543
    """
    if not 0 <= tail < 1:
        raise FlowError(f"tail={tail}: give a share of the tuples, from 0 to below 1")
    constants = np.atleast_1d(_constants(tuples, mean, deviation, confidence))
    shares = np.broadcast_to(np.asarray(share, dtype=float), constants.shape)
    if not shares.sum() > 0:
        return 1.0
    order = np.argsort(shares)
    matters = np.cumsum(shares[order]) > tail * shares.sum()
    return float(constants[order][matters].max())


def _constants(tuples: ArrayLike, mean: ArrayLike, deviation: ArrayLike, confidence: float) -> NDArray[np.float64]:
    if not 0 < confidence < 1:
        raise FlowError(f"confidence={confidence}: give a number between 0 and 1, such as 0.99")
    n, m, d = (np.asarray(x, dtype=float) for x in (tuples, mean, deviation))
    with np.errstate(divide="ignore", invalid="ignore"):
        bound: NDArray[np.float64] = np.sqrt((d**2 + m**2) / (2 * n * m**2) * math.log(2 / (1 - confidence)))
    return np.fmin(bound, 1.0)


def error(query: Leaf, rate: float) -> float:
    """The error of a query at a rate, without its weight. For an aggregate, 1 or more means that there is no bound.

    >>> sums = Leaf("sums", constant=0.02)
    >>> error(sums, 0.5), error(sums, 1.0), error(sums, 0.0)
    (0.04, 0.0, inf)
    >>> error(Leaf("alarms", Kind.SET), 0.75)
    0.25
    """
    if query.kind is not Kind.AGGREGATE:
        return 1 - rate
    if rate >= 1:
        return 0.0
    return query.constant / rate if rate else math.inf


def needed(query: Leaf, largest: float) -> float:
    """The least rate at which the weighted error of a query is at most `largest`. A fixed rate stays as it is.

    >>> sums, alarms = Leaf("sums", constant=0.02, weight=2), Leaf("alarms", Kind.SET)
    >>> needed(sums, 0.08), needed(sums, 0.03), needed(alarms, 0.1), needed(Leaf("paid", Kind.EXACT), 0.1)
    (0.5, 1.0, 0.9, 1.0)
    """
    if query.fixed_rate is not None:
        return query.fixed_rate
    if query.kind is Kind.SET:
        return max(0.0, 1 - largest / query.weight)
    wanted = query.weight * query.constant
    return 1.0 if wanted >= largest else wanted / largest


@dataclass(frozen=True)
class Targets:
    """The rate of each query, and how it was found."""

    rates: Rates
    met: bool = True
    """Whether the load can be met. If not, all that can be shed is shed, and the rest is still too much."""
    priority: int | None = None
    """The priority at which queries are shed; those above are not shed, and those below get nothing."""
    largest: float = 0.0
    """The largest weighted error at that priority: 1 / lambda, where rates are lambda * weight * constant."""


def target_rates(queries: Sequence[Leaf], load: Callable[[Rates], float], capacity: float) -> Targets:
    """Give the rates of least error whose load is within the capacity. A load must not fall when a rate rises.

    Priorities come one after the other: a query gets something only if all of higher priority are not shed.

    >>> queries = [Leaf("a", constant=0.02), Leaf("b", constant=0.01), Leaf("c", constant=0.01, priority=-1)]
    >>> found = target_rates(queries, load=lambda rates: sum(rates.values()), capacity=0.9)
    >>> {name: round(rate, 6) for name, rate in found.rates.items()}, found.priority, round(found.largest, 6)
    ({'a': 0.6, 'b': 0.3, 'c': 0.0}, 0, 0.033333)
    """
    nothing = _at(queries, math.inf, math.inf)
    if load(nothing) > capacity:
        return Targets(nothing, met=False)
    rates = nothing
    for priority in sorted({q.priority for q in queries if q.fixed_rate is None}, reverse=True):
        rates = _at(queries, priority, 0.0)
        if load(rates) > capacity:
            largest = _least_error(queries, priority, load, capacity)
            return Targets(_at(queries, priority, largest), priority=priority, largest=largest)
    return Targets(rates)


def _at(queries: Sequence[Leaf], priority: float, largest: float) -> dict[str, float]:
    """The rates that allow for this weighted error at one priority, for none above it and for any below."""
    allowed = {
        q.name: largest if q.priority == priority else 0.0 if q.priority > priority else math.inf for q in queries
    }
    return {q.name: needed(q, allowed[q.name]) for q in queries}


def _least_error(queries: Sequence[Leaf], priority: int, load: Callable[[Rates], float], capacity: float) -> float:
    """The least weighted error at a priority whose load fits; infinity if any sample at all is too much.

    The load may jump where a drop becomes necessary, and then the root is the place of the jump. The result lies on
    the side that fits.
    """
    shed = [q for q in queries if q.priority == priority and q.fixed_rate is None]
    sets = [q.weight for q in shed if q.kind is Kind.SET]
    aggregates = [q.weight * q.constant for q in shed if q.kind is Kind.AGGREGATE]
    low = math.log(min([w * _FINEST for w in sets] + aggregates))
    high = math.log(max(sets + [c / _FINEST for c in aggregates]))

    def excess(logarithm: float) -> float:
        return load(_at(queries, priority, math.exp(logarithm))) - capacity

    if excess(low) <= 0:
        return math.exp(low)
    if excess(high) > 0:
        return math.inf
    return math.exp(brentq(excess, low, high, xtol=_TOLERANCE) + 2 * _TOLERANCE)
