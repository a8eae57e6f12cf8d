"""Where a piece of SQL that Spark fails at comes from: the queries in whose text it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headgate.plan.logical.nodes import Aggregate, Node
from headgate.plan.logical.spelling import Spelt

if TYPE_CHECKING:
    from headgate.plan.stream.stages import Continuous, Stage

#: The columns of aggregates and keys have names that the planner gives, other ones in each plan.
_GIVEN = re.compile(r"`_(?:agg|key)\d+`|`?_hg\w*`?")
#: Any column in the text of an expression.
_COLUMN = r"(?:`(?:[^`]|``)+`|\w+)"


def written_in(fragment: str, queries: Mapping[str, Continuous]) -> list[str]:
    """The queries with an expression that holds a fragment of SQL; of one that reads another, only the other."""
    # What is a key or an answer here may be called by a name of the user's in the plan.
    parts = [re.escape(part) for part in _GIVEN.split(fragment)]
    for column in (_GIVEN.pattern, _COLUMN):
        wanted = re.compile(f"(?:{column})".join(parts))
        found = [name for name, query in queries.items() if any(map(wanted.search, _texts(query)))]
        if found:
            return innermost(found, queries)
    return []


def innermost(names: Sequence[str], queries: Mapping[str, Continuous]) -> list[str]:
    """Of some queries those that read none of the others."""
    return [name for name in names if not any(queries[o].plan in _below(queries[name].plan) for o in names)]


def as_written(fragment: str) -> str | None:
    """A fragment of SQL for a message; None if it has names that nobody but the planner knows.

    >>> as_written("1 / `v`"), as_written("1 / _hg_a1_0")
    ('1 / `v`', None)
    """
    return None if _GIVEN.search(fragment) else fragment


def may_overflow(queries: Mapping[str, Continuous]) -> list[str]:
    """The queries whose sums may be too large for their type, however small the values are."""
    return [name for name, query in queries.items() if any(map(_sums, _aggregates(query.plan)))]


def _sums(aggregate: Aggregate) -> bool:
    return any(call.function.name in ("sum", "avg") for call in aggregate.calls)


def _aggregates(node: Node) -> Iterator[Aggregate]:
    for each in (node, *_below(node)):
        if isinstance(each, Aggregate):
            yield each


def _below(node: Node) -> list[Node]:
    return [each for below in node.inputs for each in (below, *_below(below))]


def _texts(query: Continuous) -> Iterator[str]:
    """The SQL of all expressions of a query, over the columns of what they stand over and over those of the streams."""
    for node in (query.plan, *_below(query.plan)):
        yield from map(Spelt, _expressions(node))
    for stage in query.stages:
        yield from map(Spelt, _over_streams(stage))


def _over_streams(stage: Stage) -> Iterator[exp.Expr]:
    for feed in (*stage.feeds, *((stage.above,) if stage.above is not None else ())):
        yield from (feed.where,) if feed.where is not None else ()
        yield from feed.columns.values()
        if stage.aggregate is not None and feed is not stage.above:
            yield from map(feed.of, _expressions(stage.aggregate))


def _expressions(value: Any) -> Iterator[exp.Expr]:
    """The expressions of a node, without those of the nodes below it."""
    if isinstance(value, exp.Expr):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions(each)
    elif is_dataclass(value):
        for field in fields(value):
            inner = getattr(value, field.name)
            if not isinstance(inner, Node):
                yield from _expressions(inner)
