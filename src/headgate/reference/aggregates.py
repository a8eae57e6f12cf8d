"""The aggregates by their definitions, over the whole list of values. Nothing is shared or merged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from headgate.aggregates import Kept
from headgate.errors import BindError
from headgate.plan.logical.nodes import Call
from headgate.reference.scalar import evaluate, truth

Row = Mapping[str, Any]


def aggregate(call: Call, rows: Sequence[Row], attribute: str | None) -> Any:
    """The answer of a call over these tuples. `first` and `last` go by the order of `attribute`."""
    counted = [row for row in rows if call.where is None or truth(call.where, row)]
    if not call.arguments:
        return _user(call, [()] * len(counted)) if call.kept is Kept.STATE else len(counted)
    arguments = [tuple(evaluate(a, row) for a in call.arguments) for row in counted]
    if call.kept is Kept.STATE:
        return _user(call, arguments)
    name = call.function.name
    if name in ("first", "last"):
        assert attribute is not None, "binding lets first and last pass only with a window"
        placed = [(row[attribute], values[0]) for row, values in zip(counted, arguments, strict=True)]
        return _by(placed, name == "first")
    if name in ("min_by", "max_by"):
        return _by([(order, value) for value, order in arguments], name == "min_by")
    whole = [values for values in arguments if None not in values]
    if call.distinct:
        whole = list({_same(v): v for v in whole}.values())
    if name == "count":
        return len(whole)
    values = [values[0] for values in whole]
    if not values:
        return None
    if name == "quantile":
        return _quantiles(values, call.parameter)
    if call.function.registered:
        raise BindError(f"{name} is an aggregate of Spark SQL: the reference evaluator has no definition of it")
    return _FUNCTIONS[name](values)


def order_key(value: Any) -> tuple[bool, bool, Any]:
    """The key to sort values as Spark does: NULL first, NaN last.

    >>> sorted([2.0, math.nan, None, -1.0], key=order_key)
    [None, -1.0, 2.0, nan]
    """
    nan = isinstance(value, float) and math.isnan(value)
    return value is not None, nan, 0 if value is None or nan else value


def _by(pairs: list[tuple[Any, Any]], smallest: bool) -> Any:
    # The order of arrival means nothing, so the value settles a tie; NULL comes before all others.
    ordered = sorted(((o, v) for o, v in pairs if o is not None), key=lambda p: (order_key(p[0]), order_key(p[1])))
    return None if not ordered else ordered[0 if smallest else -1][1]


def _user(call: Call, arguments: Sequence[tuple[Any, ...]]) -> Any:
    aggregator = call.function.aggregator
    assert aggregator is not None
    state = aggregator.init()
    for values in arguments:
        if None not in values:
            state = aggregator.incr(state, *values)
    return aggregator.final(state)


def _same(values: tuple[Any, ...]) -> tuple[Any, ...]:
    # NaN equals NaN here, unlike in Python.
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in values)


def _sum(values: Sequence[Any]) -> Any:
    return math.fsum(values) if isinstance(values[0], float) and all(map(math.isfinite, values)) else sum(values)


def _mean(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Decimal):
        return sum(values) / len(values)
    return _sum([float(v) for v in values]) / len(values)


def _squares(values: Sequence[Any]) -> Fraction | float:
    """The sum of squared distances from the mean, in exact fractions."""
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return sum(((v - mean) ** 2 for v in exact), Fraction(0))


def _var_pop(values: Sequence[Any]) -> float:
    return float(_squares(values) / len(values))


def _var_samp(values: Sequence[Any]) -> float | None:
    return float(_squares(values) / (len(values) - 1)) if len(values) > 1 else None


def _root(function: Callable[[Sequence[Any]], float | None]) -> Callable[[Sequence[Any]], float | None]:
    def root(values: Sequence[Any]) -> float | None:
        variance = function(values)
        return None if variance is None else math.sqrt(variance)

    return root


def _quantile(values: Sequence[Any], fraction: Fraction) -> float:
    """The value at this fraction of the way through the ordered values, interpolated between two of them."""
    ordered = sorted(values, key=order_key)
    place = fraction * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    share = float(place - math.floor(place))
    return float(low) if low == high else (1 - share) * float(low) + share * float(high)


def _quantiles(values: Sequence[Any], parameter: exp.Expr | None) -> float | list[float]:
    assert parameter is not None
    if isinstance(parameter, exp.Array):
        return [_quantile(values, Fraction(p.name)) for p in parameter.expressions]
    return _quantile(values, Fraction(parameter.name))


def _mode(values: Sequence[Any]) -> Any:
    counts = Counter(_same((v,)) for v in values)
    most = max(counts.values())
    return min((v for v in values if counts[_same((v,))] == most), key=order_key)


_FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _sum,
    "avg": _mean,
    "min": lambda values: min(values, key=order_key),
    "max": lambda values: max(values, key=order_key),
    "bool_and": all,
    "bool_or": any,
    "var_pop": _var_pop,
    "var_samp": _var_samp,
    "stddev_pop": _root(_var_pop),
    "stddev_samp": _root(_var_samp),
    "median": lambda values: _quantile(values, Fraction(1, 2)),
    "mode": _mode,
}
