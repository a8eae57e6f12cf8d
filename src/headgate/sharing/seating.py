"""Seating: which tables of partials there are, and which of them each query takes.

Queries over the same streams and keys share a table where the panes of one fit into those of the other. A query over
fewer keys takes the table of one over more. The groups of that are merged into its own where windows close: tuples are
many, and groups are few. Where all queries of a table have the same filter, it is a plain filter.

Queries come and go while there are rows of a table on disk. So what its columns are called, its keys and its panes are
part of the manifest, and a query that comes later takes the table as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from headgate.aggregates import AggregateFunction, Kept, Partial, Scaling
from headgate.aggregates.builtin import COUNT_ROWS
from headgate.bounded.lower import lower
from headgate.bounded.rollup import WINDOW_ID
from headgate.plan.logical.nodes import WINDOW_END, WINDOW_START, Call
from headgate.plan.stream.feeds import Feed
from headgate.plan.stream.stages import Stage
from headgate.sharing.columns import FeedKeys, Guard, TableColumn, over_stream, tuple_count, word
from headgate.sharing.layout import another, table_on_disk
from headgate.sharing.table import Member, Table
from headgate.shed.estimate.estimators import TOTAL, estimator
from headgate.shed.estimate.quantiles import Quantile, Quantiles
from headgate.shed.estimate.sql import Estimated, Estimates
from headgate.sql.partials import call_holes
from headgate.sql.text import bound, ddl, position, text

_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)


def shared_tables(
    stages: Sequence[Stage],
    frames: Mapping[str, DataFrame],
    first: int = 0,
    layouts: Sequence[Mapping[str, Any]] = (),
    shed: Mapping[str, float | None] | None = None,
) -> list[Table]:
    """The tables of some aggregating stages; `frames` are DataFrames with the columns of the streams.

    The number of the first new table is given. Stages that have a table on disk, by its layout, keep it. Of queries in
    `shed`, tuples may be left out; those with a confidence are estimated from samples.
    """
    tables: list[Table] = []
    known = {name for layout in layouts for name in layout["stages"]}
    for stage in sorted(stages, key=lambda s: (s.name in known, _fineness(s)), reverse=True):
        own = [layout for layout in layouts if stage.name in layout["stages"]]
        _Seat(stage, frames, first, own, shed or {}).take(tables)
    for table in tables:
        table.count_tuples()
    return tables


def _fineness(stage: Stage) -> int:
    """How finely a query groups: a table for the finest has room for the others."""
    assert stage.aggregate is not None
    return len(stage.aggregate.keys)


class _Seat:
    """Finds or makes the tables for one query."""

    def __init__(
        self,
        stage: Stage,
        frames: Mapping[str, DataFrame],
        first: int,
        layouts: Sequence[Mapping[str, Any]],
        shed: Mapping[str, float | None],
    ) -> None:
        assert stage.aggregate is not None
        assert stage.choice is not None
        self.stage, self.node, self.window, self._first = stage, stage.aggregate, stage.window, first
        self._layouts = {layout["purpose"]: layout for layout in layouts}
        self.tuples = lower(self.node.input, frames)
        self.attributes = tuple(_attribute(feed, self.window.attr) for feed in stage.feeds)
        self.feeds = tuple(
            FeedKeys(f.stream, tuple(text(f.of(k.expression)) for k in self.node.keys), position(frames[f.stream], a))
            for f, a in zip(stage.feeds, self.attributes, strict=True)
        )
        self.key_types = self._types([text(k.expression) for k in self.node.keys])
        slides = self.window.type.overlapping and not self.window.growing
        self.eager = self.window.type if slides and stage.choice.strategy == "eager" else None
        self.cut = self.window.type.cut if slides and not self.eager else self.window.type.slides
        where = tuple(text(f.where) if f.where is not None else "" for f in stage.feeds)
        self.guard = Guard(where, self.window.ends, stage.query if stage.query in shed else "")
        self._confidence = shed.get(stage.query)

    def take(self, tables: list[Table]) -> None:
        """Adds the query to a table that fits, or to a new one; what is not bounded has tables of its own."""
        if "" in self._layouts:
            number = self._layouts[""]["number"]
            table = next((t for t in tables if t.number == number), None)
        else:
            table = next((t for t in tables if self._fits(t)), None)
        if table is None:
            tables.append(table := self._table(tables, self.feeds, self.key_types, ""))
        if not table.on_disk:
            shared = table.cut.common(self.cut)
            assert shared is not None, "a table that fits has panes that all can be made of"
            table.cut = shared
        keys = self._keys_in(table)
        if keys is None or (table.on_disk and not self._has_types(table, keys)):
            raise another(self.stage.query, "the keys")
        table.spell(self.feeds)
        member = Member(self.stage, self.guard, keys)
        table.members.append(member)
        if self._confidence is not None:
            member.estimates = Estimates(self._column(table, Call("", COUNT_ROWS), TOTAL, T.DoubleType()).name)
        for call in self.node.calls:
            if call.kept is Kept.PARTIALS:
                member.finals[call.name] = self._final(table, call, call.function)
                if member.estimates is not None:
                    self._estimate(table, member.estimates, call, call.function)
        if self.node.window is not None:
            bounds = self.window.type.bounds_sql(WINDOW_ID)
            for name, place in zip((WINDOW_START, WINDOW_END), bounds, strict=True):
                member.finals[name] = bound(self.tuples, self.window.attr, place)
        for calls in self._holistic():
            tables.append(values := self._values(tables, calls))
            if member.estimates is not None and values.quantiles is not None:
                for quantile in values.quantiles.calls:
                    member.estimates.add_column(quantile.call, quantile.type)
        for call in self.node.calls:
            if call.kept is Kept.STATE:
                tables.append(self._states(tables, call))

    def _has_types(self, table: Table, keys: Sequence[str]) -> bool:
        types = dict(zip(table.keys, table.key_types, strict=True))
        return tuple(types[key] for key in keys) == self.key_types

    def _table(
        self, tables: Sequence[Table], feeds: tuple[FeedKeys, ...], types: tuple[T.DataType, ...], purpose: str
    ) -> Table:
        if purpose in self._layouts:
            return table_on_disk(self._layouts[purpose], feeds, self.stage)
        number = self._first + sum(not table.on_disk for table in tables)
        timed = isinstance(self.tuples.schema[self.window.attr].dataType, _TIMES)
        axis = "time" if timed else f"{feeds[0].stream}.{self.attributes[0]}"
        if self.window.growing:
            axis = f"{axis} of table {number}"  # What it has come to decides which of its windows there are.
        return Table(number, feeds, types, self.cut, self.eager, axis)

    def _fits(self, table: Table) -> bool:
        keys = self._keys_in(table)
        if table.values or table.state or keys is None or self.window.growing:
            return False
        # Groups that close by their keys may do so one by one.
        if self.node.window is None or any(
            m.stage.aggregate.window is None for m in table.members if m.stage.aggregate
        ):
            return False
        types = [m.stage.window.type for m in table.members if not m.stage.window.growing]
        finer = len(keys) < len(table.keys)
        if not types or (finer and self._has_own_tables) or (table.eager is None) != (self.eager is None):
            return False
        own = self.window.type
        # Windows that leave tuples out, or hold each tuple once, have panes of no use to others.
        if self.eager or any(t.gaps for t in (*types, own)):
            return all(t == own for t in types)
        shared = table.cut.common(self.cut)
        if shared is None or not (shared == table.cut or (shared == self.cut and not table.on_disk)):
            return False
        # Fine groups are many: they may not be kept for longer, nor be read more often, than for their own sake.
        theirs, mine = [t.within(shared) for t in types], own.within(shared)
        longest, shortest = max(t.per_window for t in theirs), min(t.per_slide for t in theirs)
        return not finer or (mine.per_window <= longest and mine.per_slide >= shortest)

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
        return not all(c.kept is Kept.PARTIALS for c in self.node.calls)

    def _final(self, table: Table, call: Call, function: AggregateFunction) -> str:
        holes = call_holes(call, self.node.attribute)
        names = {
            p.name: self._column(table, call, p, self._types([p.sql.format(**holes)])[0]).name
            for p in function.partials
        }
        final = function.final.format(**names)
        if function.native:
            final = f"CAST({final} AS {self._types([function.native.format(**holes)])[0].simpleString()})"
        return final

    def _estimate(self, table: Table, estimates: Estimates, call: Call, function: AggregateFunction) -> None:
        """Adds what the call needs to be estimated from a sample."""
        assert self._confidence is not None
        if function.name == "count" and len(call.arguments) > 1:
            given = exp.and_(*(exp.paren(a.copy()).is_(exp.null()).not_() for a in call.arguments))
            call = replace(call, arguments=(exp.case().when(given, exp.Literal.number(1)),))
        how, holes = estimator(function, self._confidence), call_holes(call, self.node.attribute) | {"w": "1D"}
        types = self._types([p.sql.format(**holes) for p in how.partials])
        columns = [self._column(table, call, p, type_) for p, type_ in zip(how.partials, types, strict=True)]
        names = {p.name: column.name for p, column in zip(how.partials, columns, strict=True)}
        if function.native:
            type_ = self._types([function.native.format(**holes)])[0]
        elif function.scaling in (Scaling.LEAST, Scaling.GREATEST):
            type_ = self._types([holes["x"]])[0]
        else:
            type_ = T.LongType() if function.name == "count" else T.DoubleType()
        estimates.add(call.name, Estimated(how, names, tuple(map(ddl, types))), type_)

    def _column(self, table: Table, call: Call, partial: Partial, type_: T.DataType) -> TableColumn:
        calls = tuple(over_stream(call, f) for f in self.stage.feeds)
        wanted = TableColumn("", partial.sql, calls, self.attributes, partial.merge, type_, self.guard, partial.whole)
        for known in table.columns:
            if known.guard == self.guard and known.meaning == wanted.meaning:
                return known
        named = table.named(wanted)
        if wanted.meaning in table.known and not named.name.endswith(f"_{word(type_)}"):
            raise another(self.stage.query, "its values")
        table.columns.append(named)
        return table.columns[-1]

    def _holistic(self) -> Iterable[list[Call]]:
        """The holistic calls, those with the same arguments and filter together."""
        found: dict[tuple[str, ...], list[Call]] = {}
        for call in self.node.calls:
            if call.kept is Kept.VALUES:
                where = text(call.where) if call.where is not None else ""
                found.setdefault((where, *(text(a) for a in call.arguments)), []).append(call)
        return found.values()

    def _values(self, tables: Sequence[Table], calls: list[Call]) -> Table:
        first = calls[0]
        one = first.arguments[0] if len(first.arguments) == 1 else exp.func("struct", *first.arguments)
        present = exp.and_(*(exp.paren(a.copy()).is_(exp.null()).not_() for a in first.arguments))
        where = present if first.where is None else exp.and_(present, exp.paren(first.where.copy()))
        feeds = tuple(
            FeedKeys(k.stream, (*k.keys, text(f.of(one))), k.place)
            for k, f in zip(self.feeds, self.stage.feeds, strict=True)
        )
        purpose = ", ".join(call.name for call in calls)
        table = self._table(tables, feeds, (*self.key_types, *self._types([text(one)])), purpose)
        table.values = tuple(calls)
        table.members.append(Member(self.stage, self._guard(where), tuple(table.keys[:-1])))
        if self._confidence is None:
            table.columns.append(table.named(tuple_count(self.guard, len(feeds))))
        else:
            table.quantiles = self._weighted(table, calls, self._confidence)
        return table

    def _weighted(self, table: Table, calls: Sequence[Call], confidence: float) -> Quantiles:
        """Adds the moments of weights that quantiles over a table of values need, instead of a count."""
        plain = replace(calls[0], where=None)  # The table has only tuples that meet the condition.
        quantiles = tuple(Quantile.of(call, confidence) for call in calls)
        partials = dict.fromkeys(p for quantile in quantiles for p in quantile.partials)
        return Quantiles(
            quantiles,
            {p.name: self._column(table, plain, p, T.DoubleType()).name for p in partials},
        )

    def _states(self, tables: Sequence[Table], call: Call) -> Table:
        table = self._table(tables, self.feeds, self.key_types, call.name)
        table.state = call
        table.members.append(Member(self.stage, self.guard, tuple(table.keys)))
        return table

    def _guard(self, where: exp.Expr) -> Guard:
        """The query's guard with one more condition."""
        conditions = []
        for feed in self.stage.feeds:
            more = feed.of(where)
            conditions.append(text(more if feed.where is None else exp.and_(feed.where, more)))
        return replace(self.guard, where=tuple(conditions))

    def _types(self, sql: Sequence[str]) -> tuple[T.DataType, ...]:
        return tuple(f.dataType for f in self.tuples.select(*(F.expr(s) for s in sql)).schema) if sql else ()


def _attribute(feed: Feed, attribute: str) -> str:
    column = feed.columns[attribute]
    assert isinstance(column, exp.Column), "only a column that is passed on as it is progresses"
    return column.name
