"""The aggregates that queries can call, by name: those of SQL, and those that were registered."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate import given
from headgate.aggregates.aggregator import STEPS, Aggregator
from headgate.aggregates.builtin import builtin, builtin_names
from headgate.aggregates.function import AggregateFunction, Merge, Partial
from headgate.errors import BindError

_HOLE = re.compile(r"\{(\w*)\}")
_REGISTRY: dict[str, AggregateFunction] = {}


@given.checked("hg.register_aggregate", BindError)
def register_aggregate(
    name: str, aggregator: Aggregator | AggregateFunction, returns: str, bounded: bool = True
) -> AggregateFunction:
    """Makes an aggregate known to queries under `name`; `returns` is the Spark SQL type of its answer.

    An `hg.Aggregate` says by Spark SQL what is kept of tuples. Any other object has the four steps in Python: init,
    incr, merge and final. Give `bounded=False` when its state grows with the number of tuples.

    >>> class Product:
    ...     def init(self): return 1.0
    ...     def incr(self, state, x): return state * x
    ...     def merge(self, left, right): return left * right
    ...     def final(self, state): return state
    >>> register_aggregate("product", Product(), returns="double").kept
    <Kept.STATE: 'state'>
    >>> squares = AggregateFunction(partials=(Partial("s", "sum({x} * {x}){f}", Merge.SUM),), final="{s}")
    >>> register_aggregate("sum_of_squares", squares, returns="double").kept
    <Kept.PARTIALS: 'partials'>
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise BindError(f"{given.shown(name)} is no name for an aggregate: use letters, digits and underscores")
    if builtin(name):
        raise BindError(f"{name} is a built-in aggregate: choose another name")
    given.flag(f"aggregate {name}: bounded", bounded, BindError)
    if isinstance(aggregator, AggregateFunction):
        function = _of_sql(name, aggregator)
    else:
        _check_steps(name, aggregator)
        function = AggregateFunction(arity=None, aggregator=aggregator, constant=bounded)
    _check_type(f"aggregate {name}: returns", returns)
    registered = replace(function, name=name.lower(), returns=returns)
    _REGISTRY[name.lower()] = registered
    return registered


def _check_steps(name: str, aggregator: object) -> None:
    if isinstance(aggregator, type):
        raise BindError(f"aggregate {name} is the class {aggregator.__name__}: give an object, {aggregator.__name__}()")
    if missing := [step for step in STEPS if not callable(getattr(aggregator, step, None))]:
        raise BindError(f"aggregate {name} lacks the method {', '.join(missing)}")


def _of_sql(name: str, function: AggregateFunction) -> AggregateFunction:
    """The same with its partials checked: what Spark could not read would fail only when a query runs."""
    if function.aggregator is not None or function.scaling is not None:
        raise BindError(f"aggregate {name}: give partials and final; only built-in aggregates say how they scale")
    for partial in function.partials:
        if "{f}" not in partial.sql:
            raise BindError(
                f"aggregate {name}: partial {partial.name} is {partial.sql!r}: put {{f}}, where a FILTER clause goes,"
                " after each aggregate in it"
            )
    names = {p.name for p in function.partials} if function.partials else {"x", "n", "p"}
    if not function.final or not {*_HOLE.findall(function.final)} <= names:
        known = ", ".join(f"{{{n}}}" for n in sorted(names))
        raise BindError(f"aggregate {name}: final is {function.final!r}: make it of {known}")
    if not function.partials and not function.direct:
        raise BindError(f"aggregate {name} has no partials: say with direct how Spark computes it over tuples")
    partials = tuple(replace(p, merge=_merge(name, p)) for p in function.partials)
    return replace(function, partials=partials)


def _merge(name: str, partial: Partial) -> Merge:
    return Merge(given.one_of(f"aggregate {name}: partial {partial.name}: merge", partial.merge, Merge, BindError))


def _check_type(what: str, returns: object) -> None:
    instead = "the Spark SQL type of the answer, such as 'double'"
    try:
        exp.DataType.build(given.text(what, returns, instead, BindError), dialect="spark", udt=False)
    except SqlglotError:
        raise given.refused(what, returns, instead, BindError) from None


def aggregate_named(name: str) -> AggregateFunction | None:
    """The aggregate of this name (any case), or None.

    >>> aggregate_named("VARIANCE").name
    'var_samp'
    """
    return builtin(name) or _REGISTRY.get(name.lower())


def aggregate_names() -> frozenset[str]:
    """The names of all aggregates that a query can call, in lower case."""
    return builtin_names() | _REGISTRY.keys()
