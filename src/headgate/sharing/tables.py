"""Tables of partial aggregates, shared by queries: which there are, and which columns of them each query needs.

Queries over the same streams and keys share a table where the panes of one fit into those of the other. A query over
fewer keys takes the table of one over more, whose groups are then merged into its own where windows close: tuples are
many, and groups are few. A query's filter becomes a condition of its partials, and each condition has a count of its
tuples, because a group that holds tuples of one query may hold none of another. Where all queries of a table agree on
the condition it is a plain filter.

Queries come and go while there are rows of a table on disk. So what its columns are called, its keys and its panes are
part of the manifest, and a query that comes later takes the table as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from headgate.aggregates import AggregateFunction, Kept, Merge, Partial, Scaling
from headgate.aggregates.builtin import COUNT_ROWS
from headgate.bounded.lower import lower
from headgate.bounded.rollup import WINDOW_ID
from headgate.errors import StateError
from headgate.plan.logical.nodes import WINDOW_END, WINDOW_START, Call
from headgate.plan.logical.spelling import normal
from headgate.plan.stream.feeds import Feed
from headgate.plan.stream.stages import Stage
from headgate.shed.estimate.estimators import TOTAL, estimator
from headgate.shed.estimate.quantiles import Quantile, Quantiles
from headgate.shed.estimate.sql import Estimated, Estimates
from headgate.sql.partials import PartialColumn, call_holes
from headgate.sql.text import bound, ddl, position, text
from headgate.windows import Cut, EqualCut, Number, OnAxis, Sliding, WindowType

_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)


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


@dataclass
class Member:
    """A query of a table, with its answers in terms of the table's columns."""

    stage: Stage
    guard: Guard
    keys: tuple[str, ...]
    """The key columns of the table that are the keys of the query, in its order."""
    finals: dict[str, str] = field(default_factory=dict)
    """The answer of each bounded call, and the ends of the window, as Spark SQL."""
    rows: str | None = None
    """The column that counts its tuples, where not every group of the table has some."""
    estimates: Estimates | None = None
    """How its answers are made from a sample, if they are."""


@dataclass
class Table:
    """Partials of groups and panes of one length, for all queries that can use them.

    The last key of a table of *values* is the value of a holistic call, and its only column the number of times that
    it occurs, or, in a sample, its columns are the moments of its weights; the only column of a table of *states* holds
    the states of a user-defined aggregate.
    """

    number: int
    feeds: tuple[FeedKeys, ...]
    key_types: tuple[T.DataType, ...]
    cut: Cut
    eager: WindowType | None
    """With these windows, a tuple is kept once for each window that holds it, and panes are windows."""
    axis: str
    """What places are counted on: only panes of the same axis lie before or behind one another."""
    columns: list[TableColumn] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    values: tuple[Call, ...] = ()
    quantiles: Quantiles | None = None
    """How its values are made into answers, if they come from a sample."""
    state: Call | None = None
    known: Mapping[str, str] = field(default_factory=dict)
    """The columns of its rows on disk: the names by their meanings."""
    on_disk: bool = False
    """Whether there may be rows of it, so that its panes have to stay as they are."""

    def layout(self) -> dict[str, Any]:
        """What has to stay as it is while there are rows of it, as JSON has it."""
        return {
            "number": self.number,
            "feeds": [[f.stream, list(map(normal, f.keys)), f.place] for f in self.feeds],
            "key_types": [ddl(t) for t in self.key_types],
            **self._panes_on_disk(),
            "axis": self.axis,
            "stages": [m.stage.name for m in self.members],
            "purpose": self.purpose,
            "columns": {c.meaning: c.name for c in self.columns},
        }

    def _panes_on_disk(self) -> dict[str, Any]:
        """Panes of one length by that; all others by what their cut is called, which the query says anew."""
        attr, eager = self.members[0].stage.window.attr, self.eager
        if self.cut.length is None:
            return {"cut": repr(self.cut), "eager": [eager.per_window, eager.per_slide] if eager else None}
        length, origin = str(self.cut.length), str(self.cut.start(0))
        if eager is None or eager.cut.length is None:
            return {"length": length, "origin": origin, "eager": None}
        size = str(eager.cut.length * eager.per_window)
        return {"length": length, "origin": origin, "eager": [size, length, attr]}

    @property
    def purpose(self) -> str:
        """What sets it apart from other tables of its stages: the call that it is for, if it is for one only."""
        calls = self.values or ((self.state,) if self.state is not None else ())
        return ", ".join(call.name for call in calls)

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return slots("k", self.key_types)

    @property
    def partials(self) -> list[PartialColumn]:
        """Its columns as those that merge them know them."""
        return [PartialColumn(c.name, c.template, c.merge) for c in self.columns]

    @property
    def growing(self) -> bool:
        """Whether its windows begin before all time, so that no pane is ever done with."""
        return self.members[0].stage.window.growing

    def held(self, place: str) -> str | None:
        """Whether a tuple is in any of its windows, as SQL; None if each one is."""
        return self.members[0].stage.window.type.held_sql(place)

    def reads(self, stream: str) -> bool:
        """Whether tuples of a stream go into it."""
        return any(feed.stream == stream for feed in self.feeds)

    @property
    def guards(self) -> list[Guard]:
        """The different conditions of the queries."""
        return list(dict.fromkeys(m.guard for m in self.members))

    def spell(self, feeds: Sequence[FeedKeys]) -> None:
        """Takes the keys in the words of a query that has them: a layout on disk has only their normal form."""
        said = [{key: key for key in feed.keys} for feed in feeds]
        both = zip(self.feeds, said, strict=True)
        self.feeds = tuple(replace(f, keys=tuple(own.get(key, key) for key in f.keys)) for f, own in both)

    def panes(self, window: OnAxis) -> WindowType:
        """The window of a member in panes of the table; for one that grows, what it grows by."""
        if self.eager is not None or window.growing or window.type.gaps:
            return WindowType(self.cut)
        return window.type.within(self.cut)


def slots(prefix: str, types: Sequence[T.DataType]) -> list[str]:
    """Column names by type, so that tables with the same types have the same columns.

    >>> slots("k", [T.StringType(), T.IntegerType(), T.StringType()])
    ['k0_string', 'k0_int', 'k1_string']
    """
    seen: dict[str, int] = {}
    names = []
    for type_ in types:
        word = _word(type_)
        names.append(f"{prefix}{seen.setdefault(word, 0)}_{word}")
        seen[word] += 1
    return names


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
        _count_tuples(table)
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
            raise self._another("the keys")
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

    def _another(self, what: str) -> StateError:
        return StateError(
            f"query {self.stage.query}: {what} have other types in the checkpoint than now, as a column of its streams"
            " does: give that its old type, or let the query begin anew, flow.query(..., anew=True)"
        )

    def _table(
        self, tables: Sequence[Table], feeds: tuple[FeedKeys, ...], types: tuple[T.DataType, ...], purpose: str
    ) -> Table:
        if purpose in self._layouts:
            return self._on_disk(self._layouts[purpose], feeds)
        number = self._first + sum(not table.on_disk for table in tables)
        timed = isinstance(self.tuples.schema[self.window.attr].dataType, _TIMES)
        axis = "time" if timed else f"{feeds[0].stream}.{self.attributes[0]}"
        if self.window.growing:
            axis = f"{axis} of table {number}"  # What it has come to decides which of its windows there are.
        return Table(number, feeds, types, self.cut, self.eager, axis)

    def _on_disk(self, layout: Mapping[str, Any], feeds: Sequence[FeedKeys]) -> Table:
        """The table with such a layout, without any member yet; how places are worked out may have changed since."""
        table = _on_disk(layout, *self._panes_on_disk(layout))
        if [feed.stream for feed in table.feeds] != [feed.stream for feed in feeds]:
            raise self._another("the streams")
        places = [replace(old, place=new.place) for old, new in zip(table.feeds, feeds, strict=True)]
        return replace(table, feeds=tuple(places))

    def _panes_on_disk(self, layout: Mapping[str, Any]) -> tuple[Cut, WindowType | None]:
        """How a table on disk is cut into panes."""
        eager, own = layout["eager"], self.window.type
        if "cut" not in layout:
            origin = _number(layout["origin"])
            window = Sliding(_number(eager[0]), _number(eager[1]), eager[2], origin).type if eager else None
            return EqualCut(_number(layout["length"]), origin), window
        cut = next((c for c in (own.cut, own.slides, own.cut.made_of[0]) if repr(c) == layout["cut"]), None)
        if cut is None:
            raise StateError(
                f"query {self.stage.query}: its panes are {layout['cut']} in the checkpoint, and now they are"
                f" {own.cut}: register the window type as it was, or let the query begin anew, flow.query(...,"
                " anew=True)"
            )
        return cut, WindowType(own.cut, *eager) if eager else None

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
        named = _named(table, wanted)
        if wanted.meaning in table.known and not named.name.endswith(f"_{_word(type_)}"):
            raise self._another("its values")
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
            table.columns.append(_named(table, _count(self.guard, len(feeds))))
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


def over_stream(call: Call, feed: Feed) -> Call:
    """A call in terms of the stream's columns."""
    where = feed.of(call.where) if call.where is not None else None
    return replace(call, arguments=tuple(feed.of(a) for a in call.arguments), where=where)


def _count_tuples(table: Table) -> None:
    """Each query has to know whether a group holds any tuple of its own: others may come to share the table."""
    if table.state is not None or table.values:
        return
    for member in table.members:
        count = _count(member.guard, len(table.feeds))
        known = next((c for c in table.columns if c.meaning == count.meaning), None)
        if known is None:
            table.columns.append(known := _named(table, count))
        member.rows = known.name


def _count(guard: Guard, feeds: int) -> TableColumn:
    """The number of tuples that meet a condition."""
    calls = tuple(Call("", COUNT_ROWS) for _ in range(feeds))
    return TableColumn("", "count(*){f}", calls, ("",) * feeds, Merge.SUM, T.LongType(), guard)


def _named(table: Table, column: TableColumn) -> TableColumn:
    """The column under its name on disk, or else under the next that is free: it merges the same way in all tables."""
    if column.meaning in table.known:
        return replace(column, name=table.known[column.meaning])
    taken = {*table.known.values(), *(c.name for c in table.columns)}
    number = 0
    while (name := f"{column.merge.value}{number}_{_word(column.type)}") in taken:
        number += 1
    return replace(column, name=name)


def _on_disk(layout: Mapping[str, Any], cut: Cut, eager: WindowType | None) -> Table:
    """A table by its layout, without any member yet."""
    feeds = tuple(FeedKeys(stream, tuple(keys), place) for stream, keys, place in layout["feeds"])
    types = tuple(T._parse_datatype_string(t) for t in layout["key_types"])
    table = Table(layout["number"], feeds, types, cut, eager, layout["axis"])
    table.known, table.on_disk = dict(layout["columns"]), True
    return table


def _number(text_: str) -> Number:
    number = Fraction(text_)
    return int(number) if number.denominator == 1 else number


def _word(type_: T.DataType) -> str:
    return re.sub(r"\W+", "_", type_.simpleString(), flags=re.ASCII).strip("_")
