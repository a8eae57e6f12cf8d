"""The ingest of a micro-batch: tuples are reduced to the partial rows of all tables, in one job.

A stream is also looked at as a whole: how many tuples came, how far they got, how many have no place. These figures are
partials too, carried by one table of the stream and observed behind its aggregation, where rows are few; in front of it
they would cost as much as the aggregation.

Nothing in the expressions over tuples changes from batch to batch. Spark would compile other literals to other classes,
which the JVM has to get warm with anew. So late tuples are not looked for here: the lowest place tells whether there
are any, and if so, the batch is ingested once more without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from headgate.aggregates import UserAggregate
from headgate.operators import user
from headgate.operators.sql import floor_div, literal, position, quoted
from headgate.operators.tables import Table, over_stream
from headgate.plan.nodes import Call
from headgate.windows import Number

TABLE, PANE = "_hg_table", "_hg_pane"
_START, _AT = "_hg_start", "_hg_at"
_FIGURE = "_hg_figure_"
FIGURES = ("rows", "lowest", "highest", "punctuated", "bad")
#: How far each group of a stream got, for the rules that ask: rows of no table.
NO_TABLE, GROUP, GROUP_FIGURES = -1, "_hg_group", ("rows", "highest", "punctuated")
STATE = "p0_binary"
_MERGES = {"rows": F.sum, "lowest": F.min, "highest": F.max, "punctuated": F.max, "bad": F.sum}


@dataclass(frozen=True)
class Watch:
    """What to look for in a stream: how its tuples are placed, which are marked, and by what they are told apart."""

    stream: str
    attribute: str | None
    punctuated_by: str | None = None
    by: str | None = None


def ingested(
    batches: Mapping[str, Sequence[DataFrame]],
    tables: Sequence[Table],
    watches: Sequence[Watch],
    late: Mapping[str, Number],
) -> DataFrame:
    """The partial rows of all tables for the tuples of a batch, with the figures of the streams beside them.

    A stream may come in pieces, which are reduced apart. `late` gives for queries the place below which tuples are left
    out.
    """
    branches = [b for watch in watches for df in batches[watch.stream] for b in _branches(df, watch, tables, late)]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), branches)


def _branches(df: DataFrame, watch: Watch, tables: Sequence[Table], late: Mapping[str, Number]) -> list[DataFrame]:
    carrier = _carrier(tables, watch.stream)
    branches = [
        _reduced(df, table, i, late, watch if (table.number, i) == carrier else None)
        for table in tables
        for i, feed in enumerate(table.feeds)
        if feed.stream == watch.stream
    ]
    if carrier is None:
        branches.append(df.agg(*_figures(df, watch)))
    if watch.by is not None:
        branches.append(_by_group(df, watch))
    return branches


def observations(rows: DataFrame, watches: Sequence[Watch]) -> list[Column]:
    """What to observe of ingested rows: the figures of each stream, and how many panes there are and where."""
    figures = [_MERGES[name](figure(w.stream, name)).alias(figure(w.stream, name)) for w in watches for name in FIGURES]
    if PANE not in rows.columns:
        return figures
    return [F.min(_AT).alias("first"), F.max(_AT).alias("last"), F.count(PANE).alias("panes"), *figures]


def figure(stream: str, name: str) -> str:
    """The column that holds a figure of a stream."""
    return f"{_FIGURE}{name}_{stream}"


def partial_rows(rows: DataFrame) -> DataFrame | None:
    """What is kept of the ingested rows, without what was observed: partials and how far groups got, if any."""
    if TABLE not in rows.columns:
        return None
    kept = f"{PANE} IS NOT NULL OR {TABLE} = {NO_TABLE}" if PANE in rows.columns else f"{TABLE} IS NOT NULL"
    return rows.where(kept).select(*(c for c in rows.columns if c != _AT and not c.startswith(_FIGURE)))


def _carrier(tables: Sequence[Table], stream: str) -> tuple[int, int] | None:
    """The table and feed that the figures of a stream go along with: one that sees each tuple once."""
    return next(
        (
            (table.number, i)
            for table in tables
            for i, feed in enumerate(table.feeds)
            if feed.stream == stream and table.state is None and table.eager is None
        ),
        None,
    )


def _reduced(df: DataFrame, table: Table, i: int, late: Mapping[str, Number], carries: Watch | None) -> DataFrame:
    """The partial rows that the tuples of a feed make, with the figures of the stream where they are carried along."""
    feed, window = table.feeds[i], table.members[0].query.window
    conditions = {m.guard: _conditions(m.guard.where[i], feed.place, late.get(m.query.name)) for m in table.members}
    counts = _any_of(conditions.values())
    if window.range < window.slide:
        offset = f"pmod({feed.place} - {literal(window.origin)}, {literal(window.slide)})"
        counts.append(f"{offset} < {literal(window.range)}")
    keys = dict(zip(table.keys, feed.keys, strict=True))
    start = _start(table, feed.place)
    if carries is None:
        df = df.where(" AND ".join([f"({feed.place}) IS NOT NULL", *counts]))
    elif counts:
        # The tuples that no query counts are looked at as well: they are one group without a pane.
        counted = " AND ".join(counts)
        keys = {name: f"CASE WHEN {counted} THEN {sql} END" for name, sql in keys.items()}
        start = f"CASE WHEN {counted} THEN {start} END"
    grouping = [F.expr(sql).alias(name) for name, sql in keys.items()]
    if table.eager is not None:
        df, grouping = df.select("*", *grouping, F.explode(F.expr(start)).alias(_START)), [F.col(n) for n in keys]
        start = _START
    grouped = df.groupBy(*grouping, F.expr(start).alias(_START))
    figures = [] if carries is None else [figure(carries.stream, name) for name in FIGURES]
    if table.state is not None:
        reduced = _states(grouped, [*keys, _START], over_stream(table.state, table.members[0].query.feeds[i]))
        partials = [STATE]
    else:
        several = len(conditions) > 1
        columns = [
            F.expr(c.sql(i, conditions[c.guard] if several else ())).cast(c.type).alias(c.name) for c in table.columns
        ]
        reduced = grouped.agg(*columns, *(_figures(df, carries) if carries is not None else []))
        partials = [c.name for c in table.columns]
    number = floor_div(f"{_START} - {literal(table.origin)}", table.length)
    return reduced.select(
        F.lit(table.number).alias(TABLE),
        F.expr(number).alias(PANE),
        F.expr(f"CAST({_START} AS DOUBLE)").alias(_AT),
        *keys,
        *partials,
        *figures,
    )


def _any_of(conditions: Iterable[Sequence[str]]) -> list[str]:
    """What a tuple has to meet to be counted by any query: nothing if one of them counts all."""
    every = [" AND ".join(f"({c})" for c in met) for met in conditions]
    return [] if "" in every else ["(" + " OR ".join(f"({c})" for c in dict.fromkeys(every)) + ")"]


def _conditions(where: str, place: str, late_before: Number | None) -> list[str]:
    return ([where] if where else []) + ([f"{place} >= {literal(late_before)}"] if late_before is not None else [])


def _start(table: Table, place: str) -> str:
    """Where the pane of a tuple starts; where the panes are windows that overlap, all of their starts."""
    length = literal(table.length)
    last = f"{place} - pmod({_less(place, table.origin)}, {length})"
    if table.eager is None:
        return last
    beyond = f"{place} - {literal(table.eager.range)}"
    first = f"{beyond} - pmod({_less(beyond, table.origin)}, {length}) + {length}"
    return f"sequence({first}, {last}, {length})"


def _less(place: str, origin: Number) -> str:
    return f"{place} - {literal(origin)}" if origin else place


def _states(grouped: GroupedData, group: Sequence[str], call: Call) -> DataFrame:
    assert isinstance(call.function, UserAggregate)
    collected = grouped.agg(user.collected(call).alias("_hg_tuples"))
    return collected.select(*group, user.state(call.function, "_hg_tuples", len(call.arguments)).alias(STATE))


def _by_group(df: DataFrame, watch: Watch) -> DataFrame:
    """How far each group of a stream got, as rows of a table of their own."""
    assert watch.by is not None
    groups = df.groupBy(F.expr(f"CAST({quoted(watch.by)} AS STRING)").alias(GROUP))
    sql = _figure_sql(df, watch)
    return groups.agg(*(F.expr(sql[name]).alias(f"{GROUP}_{name}") for name in GROUP_FIGURES)).select(
        "*", F.lit(NO_TABLE).alias(TABLE), F.lit(watch.stream).alias(f"{GROUP}_stream")
    )


def _figures(df: DataFrame, watch: Watch) -> list[Column]:
    return [F.expr(sql).alias(figure(watch.stream, name)) for name, sql in _figure_sql(df, watch).items()]


def _figure_sql(df: DataFrame, watch: Watch) -> dict[str, str]:
    place = position(df, watch.attribute) if watch.attribute else "CAST(NULL AS BIGINT)"
    marked = quoted(watch.punctuated_by) if watch.punctuated_by else "false"
    return {
        "rows": "count(*)",
        "lowest": f"min({place})",
        "highest": f"max({place})",
        "punctuated": f"max({place}) FILTER (WHERE {marked})",
        "bad": f"count(*) - count({place})" if watch.attribute else "0L",
    }
