"""The streams that queries may name, with their columns."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from sqlglot import exp

from headgate.aggregates import aggregate_names
from headgate.errors import BindError
from headgate.plan.logical.nodes import Node, Source
from headgate.plan.logical.spark_functions import FUNCTIONS, Kind
from headgate.plan.logical.window_functions import window_names


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest known name, or all of them.

    >>> did_you_mean("scrIP", ["srcIP", "len"])
    'did you mean srcIP?'
    """
    known = list(known)
    if near := nearest(name, known):
        return f"did you mean {near}?"
    return f"there are {', '.join(known)}" if known else "there are none"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was most likely meant, if there is one.

    >>> nearest("cuont", ["sum", "count"])
    'count'
    """
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.65)
    return lower[near[0]] if near else None


def names_read(query: exp.Expr) -> list[str]:
    """The names that a query reads from, each once, without those that its own WITH defines."""
    own = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    return list(dict.fromkeys(t.name for t in query.find_all(exp.Table) if t.name.lower() not in own))


class Catalog:
    """The known streams by name, in upper or lower case. `knows` knows the functions that only Spark has.

    >>> Catalog([Source("Main", ())]).relation("main").name
    'Main'
    """

    def __init__(self, streams: Iterable[Source], knows: Callable[[str], bool] = lambda _: False) -> None:
        self._relations: dict[str, tuple[str, Node]] = {s.name.lower(): (s.name, s) for s in streams}
        self._knows = knows

    def relation(self, name: str) -> Node:
        """The stream (or named SELECT) of this name. A BindError names the nearest if there is none."""
        try:
            return self._relations[name.lower()][1]
        except KeyError:
            hint = did_you_mean(name, (known for known, _ in self._relations.values()))
            raise BindError(f"unknown stream {name}: {hint}") from None

    def extended(self, name: str, node: Node) -> Catalog:
        """A catalog with one more relation. WITH adds one so, for one SELECT."""
        more = Catalog((), self._knows)
        more._relations = {**self._relations, name.lower(): (name, node)}
        return more

    @property
    def functions(self) -> list[str]:
        """The functions that an expression may hold, without those that the user registered in Spark."""
        spark = (name for name, kind in FUNCTIONS.items() if kind in (Kind.SCALAR, Kind.AGGREGATE))
        return [*spark, *aggregate_names(), *window_names()]

    def has_function(self, name: str) -> bool:
        """Whether a function of this lower-case name is Spark's, ours, or known to the maker of the catalog."""
        return name in FUNCTIONS or name in aggregate_names() or name in window_names() or self._knows(name)
