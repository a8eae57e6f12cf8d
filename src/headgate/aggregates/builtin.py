"""The built-in aggregates."""

from __future__ import annotations

from headgate.aggregates.function import AggregateFunction, Domain, Merge, Partial, Scaling

_ROWS = Partial("n", "count(*){f}", Merge.SUM)
_COUNT = Partial("n", "count({x}){f}", Merge.SUM)
# Spark's own variance runs one pass by distances from the mean, so large offsets cost no digits.
_MOMENTS = Partial(
    "m",
    "struct(count({x}){f} AS n, avg(CAST({x} AS DOUBLE)){f} AS mean,"
    " var_pop(CAST({x} AS DOUBLE)){f} * count({x}){f} AS m2)",
    Merge.MOMENTS,
)
_VAR_POP = "CASE WHEN {m}.n > 0 THEN {m}.m2 / {m}.n END"
_VAR_SAMP = "CASE WHEN {m}.n > 1 THEN {m}.m2 / ({m}.n - 1) END"


def _extreme(name: str, merge: Merge, domain: Domain = Domain.ORDERED) -> AggregateFunction:
    scaling = Scaling.LEAST if merge is Merge.MIN else Scaling.GREATEST
    partial = Partial("m", f"{merge.value}({{x}}){{f}}", merge)
    return AggregateFunction(name, domain, 1, (partial,), "{m}", differential=False, scaling=scaling)


def _spread(name: str, final: str) -> AggregateFunction:
    return AggregateFunction(name, Domain.NUMERIC, 1, (_MOMENTS,), final, differential=True, scaling=Scaling.SPREAD)


def _by(name: str, merge: Merge, order: str, arity: int) -> AggregateFunction:
    # Arrival order means nothing, so a tie in the order is settled by the value: the answer is always the same.
    value = f"CASE WHEN {order} IS NOT NULL THEN struct({order} AS o, {{x}} AS v) END"
    partial = Partial("b", f"{merge.value}({value}){{f}}", merge)
    return AggregateFunction(name, Domain.ANY, arity, (partial,), "{b}.v", differential=False)


COUNT_ROWS = AggregateFunction("count", Domain.ANY, 0, (_ROWS,), "{n}", differential=True, scaling=Scaling.COUNT)
COUNT = AggregateFunction("count", Domain.ANY, 1, (_COUNT,), "{n}", differential=True, scaling=Scaling.COUNT)
SUM = AggregateFunction(
    "sum",
    Domain.NUMERIC,
    1,
    (Partial("s", "sum({x}){f}", Merge.SUM),),
    "{s}",
    differential=True,
    native="sum({x})",
    scaling=Scaling.SUM,
)
AVG = AggregateFunction(
    "avg",
    Domain.NUMERIC,
    1,
    (Partial("s", "sum({x}){f}", Merge.SUM), _COUNT),
    "try_divide({s}, {n})",
    differential=True,
    native="avg({x})",
    scaling=Scaling.MEAN,
)
AVG_DOUBLE = AggregateFunction(
    "avg",
    Domain.NUMERIC,
    1,
    # As in Spark, the sum of 64-bit integers is kept as a double: it cannot overflow.
    (Partial("s", "sum(CAST({x} AS DOUBLE)){f}", Merge.SUM), _COUNT),
    "try_divide({s}, {n})",
    differential=True,
    scaling=Scaling.MEAN,
)
MIN = _extreme("min", Merge.MIN)
MAX = _extreme("max", Merge.MAX)
BOOL_AND = _extreme("bool_and", Merge.MIN, Domain.BOOLEAN)
BOOL_OR = _extreme("bool_or", Merge.MAX, Domain.BOOLEAN)
VAR_POP = _spread("var_pop", _VAR_POP)
VAR_SAMP = _spread("var_samp", _VAR_SAMP)
STDDEV_POP = _spread("stddev_pop", f"sqrt({_VAR_POP})")
STDDEV_SAMP = _spread("stddev_samp", f"sqrt({_VAR_SAMP})")
FIRST = _by("first", Merge.MIN, "{t}", 1)
LAST = _by("last", Merge.MAX, "{t}", 1)
MIN_BY = _by("min_by", Merge.MIN, "{y}", 2)
MAX_BY = _by("max_by", Merge.MAX, "{y}", 2)
MEDIAN = AggregateFunction(
    "median",
    Domain.NUMERIC,
    1,
    (),
    "percentile({x}, 0.5D, {n})",
    differential=True,
    direct="percentile({d}{x}, 0.5D){f}",
    scaling=Scaling.RANK,
)
QUANTILE = AggregateFunction(
    "quantile",
    Domain.NUMERIC,
    1,
    (),
    "percentile({x}, {p}, {n})",
    differential=True,
    direct="percentile({d}{x}, {p}){f}",
    parameters=1,
    scaling=Scaling.RANK,
)
MODE = AggregateFunction(
    "mode",
    Domain.ORDERED,
    1,
    (),
    # The most frequent value; among equally frequent ones the smallest.
    "min(struct(-{n} AS n, {x} AS x)).x",
    differential=True,
    direct="mode({x}, true){f}",
)

_NAMES: dict[str, AggregateFunction] = {
    f.name: f
    for f in (
        COUNT, SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP,
        FIRST, LAST, MIN_BY, MAX_BY, MEDIAN, QUANTILE, MODE,
    )
}  # fmt: skip
_ALIASES = {
    "mean": "avg",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "percentile": "quantile",
    "first_value": "first",
    "last_value": "last",
    "percentile_cont": "quantile",
}


def builtin(name: str) -> AggregateFunction | None:
    """The built-in aggregate of this name (any case), or None.

    >>> builtin("VARIANCE").name
    'var_samp'
    """
    name = name.lower()
    return COUNT_ROWS if name == "count_if" else _NAMES.get(_ALIASES.get(name, name))


def builtin_names() -> frozenset[str]:
    """The names of all built-in aggregates."""
    return frozenset((*_NAMES, *_ALIASES, "count_if"))
