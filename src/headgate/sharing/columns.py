"""The columns of a table of partials: what tuples make them of, and how they are called.

A query's filter becomes a condition of its partials, and each condition has a count of its tuples, because a group that
holds tuples of one query may hold none of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import types as T

from headgate.aggregates import Merge
from headgate.aggregates.builtin import COUNT_ROWS
from headgate.plan.logical.nodes import Call
from headgate.plan.logical.spelling import normal
from headgate.plan.stream.feeds import Feed
from headgate.sql.partials import call_holes
from headgate.sql.text import text


@dataclass(frozen=True)
class Guard:
    """Which tuples a query counts: its filter by feed ("" for none), and what makes a tuple late for it."""

    where: tuple[str, ...]
    lateness: tuple[object, ...]
    """Where windows end: a tuple is late for all windows that end at the same places, or for none."""
    shed: str = ""
    """The query whose policy says which of them are left out, if it has one that does."""


@dataclass(frozen=True)
class TableColumn:
    """A partial column: how the tuples of each feed make it, and how it merges."""

    name: str
    template: str
    calls: tuple[Call, ...]
    """The call that the column is for, over the columns of each feed's stream."""
    attributes: tuple[str, ...]
    merge: Merge
    type: T.DataType
    guard: Guard
    whole: str = ""
    """The template where every tuple is taken, if that is another one."""

    @property
    def meaning(self) -> str:
        """What it holds: a column of the same meaning can take its place."""
        sql = "; ".join(self._sql(i, (), "1D", normal) for i in range(len(self.calls)))
        shed = f" shed for {self.guard.shed}" if self.guard.shed else ""
        where = tuple(map(normal, self.guard.where))
        return f"{sql} of {where}{shed} late by {', '.join(map(str, self.guard.lateness))}"

    def sql(self, feed: int, conditions: Sequence[str], weight: str | None = None) -> str:
        """The Spark aggregate that reduces tuples of a feed to the column, of those that meet the conditions.

        A tuple stands for so many as its weight says, if some are left out.
        """
        return self._sql(feed, conditions, weight, str)

    def _sql(self, feed: int, conditions: Sequence[str], weight: str | None, spelling: Callable[[str], str]) -> str:
        call = self.calls[feed]
        met = [*([spelling(text(call.where))] if call.where is not None else []), *conditions]
        holes = call_holes(call, self.attributes[feed], spelling)
        holes["f"] = f" FILTER (WHERE {' AND '.join(f'({c})' for c in met)})" if met else ""
        if weight is None:
            return (self.whole or self.template).format(**holes, w="1D")
        return self.template.format(**holes, w=weight)


@dataclass(frozen=True)
class FeedKeys:
    """How a stream comes into a table: its keys and its place on the axis, as Spark SQL over its columns."""

    stream: str
    keys: tuple[str, ...]
    place: str


def slots(prefix: str, types: Sequence[T.DataType]) -> list[str]:
    """Column names by type, so that tables with the same types have the same columns.

    >>> slots("k", [T.StringType(), T.IntegerType(), T.StringType()])
    ['k0_string', 'k0_int', 'k1_string']
    """
    seen: dict[str, int] = {}
    names = []
    for type_ in types:
        kind = word(type_)
        names.append(f"{prefix}{seen.setdefault(kind, 0)}_{kind}")
        seen[kind] += 1
    return names


def over_stream(call: Call, feed: Feed) -> Call:
    """A call in terms of the stream's columns."""
    where = feed.of(call.where) if call.where is not None else None
    return replace(call, arguments=tuple(feed.of(a) for a in call.arguments), where=where)


def tuple_count(guard: Guard, feeds: int) -> TableColumn:
    """The number of tuples that meet a condition."""
    calls = tuple(Call("", COUNT_ROWS) for _ in range(feeds))
    return TableColumn("", "count(*){f}", calls, ("",) * feeds, Merge.SUM, T.LongType(), guard)


def word(type_: T.DataType) -> str:
    """A type as part of a column's name."""
    return re.sub(r"\W+", "_", type_.simpleString(), flags=re.ASCII).strip("_")
