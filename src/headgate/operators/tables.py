"""Tables of partial aggregates, shared by queries: which there are, and which columns of them each query needs.

Queries over the same streams and keys share a table where the panes of one fit into those of the other. A query over
fewer keys takes the table of one over more, whose groups are then merged into its own where windows close: tuples are
many, and groups are few. A query's filter becomes a condition of its partials, and each condition has a count of its
tuples, because a group that holds tuples of one query may hold none of another. Where all queries of a table agree on
the condition it is a plain filter, and nothing needs to be counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from headgate.aggregates import AggregateFunction, Merge, UserAggregate
from headgate.aggregates.builtin import COUNT_ROWS
from headgate.operators.lower import lower
from headgate.operators.partials import PartialColumn, call_holes
from headgate.operators.rollup import WINDOW_ID
from headgate.operators.sql import bound, literal, position, text
from headgate.plan.continuous import Continuous
from headgate.plan.feeds import Feed
from headgate.plan.nodes import WINDOW_END, WINDOW_START, Aggregate, Call
from headgate.windows import Number, Panes, Sliding
from headgate.windows.panes import gcd


@dataclass(frozen=True)
class Guard:
    """Which tuples a query counts: its filter by feed ("" for none), and what makes a tuple late for it."""

    where: tuple[str, ...]
    lateness: tuple[Number, Number]
    """Windows with the same slide and the same rest of range by slide end at the same places."""


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

    def sql(self, feed: int, conditions: Sequence[str]) -> str:
        """The Spark aggregate that reduces tuples of a feed to the column, of those that meet the conditions."""
        call = self.calls[feed]
        met = [*([text(call.where)] if call.where is not None else []), *conditions]
        holes = call_holes(call, self.attributes[feed])
        holes["f"] = f" FILTER (WHERE {' AND '.join(f'({c})' for c in met)})" if met else ""
        return self.template.format(**holes)


@dataclass(frozen=True)
class FeedKeys:
    """How a stream comes into a table: its keys and its place on the axis, as Spark SQL over its columns."""

    stream: str
    keys: tuple[str, ...]
    place: str


@dataclass
class Member:
    """A query of a table, with its answers in terms of the table's columns."""

    query: Continuous
    guard: Guard
    keys: tuple[str, ...]
    """The key columns of the table that are the keys of the query, in its order."""
    finals: dict[str, str] = field(default_factory=dict)
    """The answer of each bounded call, and the ends of the window, as Spark SQL."""
    rows: str | None = None
    """The column that counts its tuples, where not every group of the table has some."""


@dataclass
class Table:
    """Partials of groups and panes of one length, for all queries that can use them.

    The last key of a table of *values* is the value of a holistic call, and its only column the number of times that
    it occurs; the only column of a table of *states* holds the states of a user-defined aggregate.
    """

    number: int
    feeds: tuple[FeedKeys, ...]
    key_types: tuple[T.DataType, ...]
    length: Number
    origin: Number
    eager: Sliding | None
    """With this window, a tuple is kept once for each window that holds it, and panes are windows."""
    columns: list[TableColumn] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    values: tuple[Call, ...] = ()
    state: Call | None = None

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return slots("k", self.key_types)

    @property
    def partials(self) -> list[PartialColumn]:
        """Its columns as those that merge them know them."""
        return [PartialColumn(c.name, c.template, c.merge) for c in self.columns]

    @property
    def guards(self) -> list[Guard]:
        """The different conditions of the queries."""
        return list(dict.fromkeys(m.guard for m in self.members))

    def panes(self, window: Sliding) -> Panes:
        """The window of a member in panes of the table."""
        if self.eager is not None or window.range < window.slide:
            return Panes(self.length, 1, 1, self.origin)
        return Panes(self.length, int(window.range / self.length), int(window.slide / self.length), self.origin)


def slots(prefix: str, types: Sequence[T.DataType]) -> list[str]:
    """Column names by type, so that tables with the same types have the same columns.

    >>> slots("k", [T.StringType(), T.IntegerType(), T.StringType()])
    ['k0_string', 'k0_int', 'k1_string']
    """
    seen: dict[str, int] = {}
    names = []
    for type_ in types:
        word = re.sub(r"\W+", "_", type_.simpleString()).strip("_")
        names.append(f"{prefix}{seen.setdefault(word, 0)}_{word}")
        seen[word] += 1
    return names


def _next_slot(table: Table, merge: Merge, type_: T.DataType) -> str:
    """The name of the next column of a table: one that merges the same way in all tables that have it."""
    return slots(merge.value, [*(c.type for c in table.columns if c.merge is merge), type_])[-1]


def shared_tables(queries: Sequence[Continuous], frames: Mapping[str, DataFrame]) -> list[Table]:
    """The tables of some aggregating queries; `frames` are DataFrames with the columns of the streams."""
    tables: list[Table] = []
    for query in sorted(queries, key=_fineness, reverse=True):
        _Seat(query, frames).take(tables)
    for table in tables:
        _count_tuples(table)
    return tables


def _fineness(query: Continuous) -> int:
    """How finely a query groups: a table for the finest has room for the others."""
    assert query.aggregate is not None
    return len(query.aggregate.keys)


class _Seat:
    """Finds or makes the tables for one query."""

    def __init__(self, query: Continuous, frames: Mapping[str, DataFrame]) -> None:
        assert query.aggregate is not None
        assert query.choice is not None
        self.query, self.node, self.window = query, query.aggregate, query.window
        self.tuples = lower(self.node.input, frames)
        self.attributes = tuple(_attribute(feed, self.node) for feed in query.feeds)
        self.feeds = tuple(
            FeedKeys(f.stream, tuple(text(f.of(k.expression)) for k in self.node.keys), position(frames[f.stream], a))
            for f, a in zip(query.feeds, self.attributes, strict=True)
        )
        self.key_types = self._types([text(k.expression) for k in self.node.keys])
        overlapping = self.window.range > self.window.slide
        self.eager = self.window if overlapping and query.choice.strategy == "eager" else None
        self.length = Panes.of(self.window).length if overlapping and self.eager is None else self.window.slide
        self.guard = Guard(
            tuple(text(f.where) if f.where is not None else "" for f in query.feeds),
            (self.window.slide, self.window.range % self.window.slide),
        )

    def take(self, tables: list[Table]) -> None:
        """Adds the query to a table that fits, or to a new one; what is not bounded has tables of its own."""
        table = next((t for t in tables if self._fits(t)), None)
        if table is None:
            tables.append(table := self._table(len(tables), self.feeds, self.key_types))
        table.length = gcd(table.length, self.length)
        keys = self._keys_in(table)
        assert keys is not None
        member = Member(self.query, self.guard, keys)
        table.members.append(member)
        for call in self.node.calls:
            if isinstance(call.function, AggregateFunction) and call.bounded:
                member.finals[call.name] = self._final(table, call, call.function)
        start = f"{WINDOW_ID} * {literal(self.window.slide)} + {literal(self.window.origin)}"
        for name, place in ((WINDOW_START, start), (WINDOW_END, f"{start} + {literal(self.window.range)}")):
            member.finals[name] = bound(self.tuples, self.window.attr, place)
        for calls in self._holistic():
            tables.append(self._values(len(tables), calls))
        for call in self.node.calls:
            if isinstance(call.function, UserAggregate):
                tables.append(self._states(len(tables), call))

    def _table(self, number: int, feeds: tuple[FeedKeys, ...], types: tuple[T.DataType, ...]) -> Table:
        return Table(number, feeds, types, self.length, self.window.origin, self.eager)

    def _fits(self, table: Table) -> bool:
        keys = self._keys_in(table)
        if table.values or table.state or keys is None:
            return False
        windows = [m.query.window for m in table.members]
        if len(keys) < len(table.keys):
            # Fine groups are many: they may not be kept for longer, nor be read more often, than for their own sake.
            longest, shortest = max(w.range for w in windows), min(w.slide for w in windows)
            if self._has_own_tables or self.window.range > longest or self.window.slide < shortest:
                return False
        if table.origin != self.window.origin or (table.eager is None) != (self.eager is None):
            return False
        # Windows that leave tuples out, or hold each tuple once, have panes of no use to others.
        if self.eager or any(w.range < w.slide for w in (*windows, self.window)):
            return all((w.range, w.slide) == (self.window.range, self.window.slide) for w in windows)
        return gcd(table.length, self.length) == min(table.length, self.length)

    def _keys_in(self, table: Table) -> tuple[str, ...] | None:
        """The key columns of a table that are the query's keys, if it has them all, from the same streams."""
        if [(f.stream, f.place) for f in table.feeds] != [(f.stream, f.place) for f in self.feeds]:
            return None
        found = set()
        for own, other in zip(self.feeds, table.feeds, strict=True):
            if not set(own.keys) <= set(other.keys):
                return None
            found.add(tuple(table.keys[other.keys.index(key)] for key in own.keys))
        return found.pop() if len(found) == 1 else None

    @property
    def _has_own_tables(self) -> bool:
        return not all(isinstance(c.function, AggregateFunction) and c.bounded for c in self.node.calls)

    def _final(self, table: Table, call: Call, function: AggregateFunction) -> str:
        holes = call_holes(call, self.node.attribute)
        names = {
            p.name: self._column(table, call, p.sql, p.merge, self._types([p.sql.format(**holes)])[0]).name
            for p in function.partials
        }
        final = function.final.format(**names)
        if function.native:
            final = f"CAST({final} AS {self._types([function.native.format(**holes)])[0].simpleString()})"
        return final

    def _column(self, table: Table, call: Call, template: str, merge: Merge, type_: T.DataType) -> TableColumn:
        calls = tuple(over_stream(call, f) for f in self.query.feeds)
        wanted = TableColumn("", template, calls, self.attributes, merge, type_, self.guard)
        for known in table.columns:
            if known.guard == self.guard and all(
                known.sql(i, ()) == wanted.sql(i, ()) for i in range(len(self.query.feeds))
            ):
                return known
        table.columns.append(replace(wanted, name=_next_slot(table, merge, type_)))
        return table.columns[-1]

    def _holistic(self) -> Iterable[list[Call]]:
        """The holistic calls, those with the same arguments and filter together."""
        found: dict[tuple[str, ...], list[Call]] = {}
        for call in self.node.calls:
            if isinstance(call.function, AggregateFunction) and not call.bounded:
                where = text(call.where) if call.where is not None else ""
                found.setdefault((where, *(text(a) for a in call.arguments)), []).append(call)
        return found.values()

    def _values(self, number: int, calls: list[Call]) -> Table:
        first = calls[0]
        one = first.arguments[0] if len(first.arguments) == 1 else exp.func("struct", *first.arguments)
        present = exp.and_(*(exp.paren(a.copy()).is_(exp.null()).not_() for a in first.arguments))
        where = present if first.where is None else exp.and_(present, exp.paren(first.where.copy()))
        feeds = tuple(
            FeedKeys(k.stream, (*k.keys, text(f.of(one))), k.place)
            for k, f in zip(self.feeds, self.query.feeds, strict=True)
        )
        table = self._table(number, feeds, (*self.key_types, *self._types([text(one)])))
        table.values = tuple(calls)
        table.members.append(Member(self.query, self._guard(where), tuple(table.keys[:-1])))
        calls_by_feed = tuple(Call("", COUNT_ROWS) for _ in feeds)
        table.columns.append(
            TableColumn(
                _next_slot(table, Merge.SUM, T.LongType()),
                "count(*){f}",
                calls_by_feed,
                self.attributes,
                Merge.SUM,
                T.LongType(),
                self.guard,
            )
        )
        return table

    def _states(self, number: int, call: Call) -> Table:
        table = self._table(number, self.feeds, self.key_types)
        table.state = call
        table.members.append(Member(self.query, self.guard, tuple(table.keys)))
        return table

    def _guard(self, where: exp.Expr) -> Guard:
        """The query's guard with one more condition."""
        conditions = []
        for feed in self.query.feeds:
            more = feed.of(where)
            conditions.append(text(more if feed.where is None else exp.and_(feed.where, more)))
        return Guard(tuple(conditions), self.guard.lateness)

    def _types(self, sql: Sequence[str]) -> tuple[T.DataType, ...]:
        return tuple(f.dataType for f in self.tuples.select(*(F.expr(s) for s in sql)).schema) if sql else ()


def _attribute(feed: Feed, node: Aggregate) -> str:
    assert node.attribute is not None
    column = feed.columns[node.attribute]
    assert isinstance(column, exp.Column), "only a column that is passed on as it is progresses"
    return column.name


def over_stream(call: Call, feed: Feed) -> Call:
    """A call in terms of the stream's columns."""
    where = feed.of(call.where) if call.where is not None else None
    return replace(call, arguments=tuple(feed.of(a) for a in call.arguments), where=where)


def _count_tuples(table: Table) -> None:
    """Where queries differ in what they count, each has to know whether a group holds any tuple of its own."""
    if len(table.guards) == 1 and (table.columns or table.state):
        return
    for member in table.members:
        calls = tuple(Call("", COUNT_ROWS) for _ in table.feeds)
        count = TableColumn("", "count(*){f}", calls, ("",) * len(calls), Merge.SUM, T.LongType(), member.guard)
        known = next((c for c in table.columns if c.guard == member.guard and c.sql(0, ()) == count.sql(0, ())), None)
        if known is None:
            table.columns.append(known := replace(count, name=_next_slot(table, count.merge, count.type)))
        member.rows = known.name
