"""Aggregates that users write in Python: an object with init, incr, merge and final."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate import given
from headgate.aggregates.builtin import builtin, builtin_names
from headgate.errors import BindError


@runtime_checkable
class Aggregator(Protocol):
    """The four steps of an aggregate. A state may be any picklable value; `incr` and `merge` return the new one."""

    def init(self) -> Any:
        """The state of no tuples at all."""

    def incr(self, state: Any, *args: Any) -> Any:
        """The state after one more tuple. Called only when no argument is NULL."""

    def merge(self, left: Any, right: Any) -> Any:
        """The state of two disjoint sets of tuples together."""

    def final(self, state: Any) -> Any:
        """The answer."""


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """A registered user-defined aggregate."""

    name: str
    aggregator: Aggregator
    returns: str
    bounded: bool
    differential: bool = False
    """Without a step that takes tuples away, a window is never made from the one before it."""


_STEPS = ("init", "incr", "merge", "final")
_REGISTRY: dict[str, UserAggregate] = {}


@given.checked("hg.register_aggregate", BindError)
def register_aggregate(name: str, aggregator: Aggregator, returns: str, bounded: bool = True) -> UserAggregate:
    """Makes `aggregator` known to queries under `name`; `returns` is the Spark SQL type of its answer.

    Give `bounded=False` when the state grows with the number of tuples.

    >>> class Product:
    ...     def init(self): return 1.0
    ...     def incr(self, state, x): return state * x
    ...     def merge(self, left, right): return left * right
    ...     def final(self, state): return state
    >>> register_aggregate("product", Product(), returns="double").name
    'product'
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise BindError(f"{given.shown(name)} is no name for an aggregate: use letters, digits and underscores")
    if builtin(name):
        raise BindError(f"{name} is a built-in aggregate: choose another name")
    if isinstance(aggregator, type):
        raise BindError(f"aggregate {name} is the class {aggregator.__name__}: give an object, {aggregator.__name__}()")
    if missing := [step for step in _STEPS if not callable(getattr(aggregator, step, None))]:
        raise BindError(f"aggregate {name} lacks the method {', '.join(missing)}")
    _check_type(f"aggregate {name}: returns", returns)
    given.flag(f"aggregate {name}: bounded", bounded, BindError)
    registered = UserAggregate(name.lower(), aggregator, returns, bounded)
    _REGISTRY[name.lower()] = registered
    return registered


def _check_type(what: str, returns: object) -> None:
    instead = "the Spark SQL type of the answer, such as 'double'"
    try:
        exp.DataType.build(given.text(what, returns, instead, BindError), dialect="spark", udt=False)
    except SqlglotError:
        raise given.refused(what, returns, instead, BindError) from None


def user_aggregate(name: str) -> UserAggregate | None:
    """The user-defined aggregate registered under this name (any case), or None."""
    return _REGISTRY.get(name.lower())


def aggregate_names() -> frozenset[str]:
    """The names of all aggregates that a query can call, in lower case."""
    return builtin_names() | _REGISTRY.keys()
