"""The ingest of a micro-batch: every tuple read once, reduced to the partial rows of all tables, in one job.

A stream is also looked at as a whole: how many tuples came, how far they got, how many are late or have no place. These
figures are partials too, carried by one table of the stream and observed behind its aggregation, where rows are few;
in front of it they would cost as much as the aggregation.
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
_PLACE, _START, _AT = "_hg_x", "_hg_start", "_hg_at"
_FIGURE = "_hg_figure_"
_FIGURES = ("rows", "highest", "punctuated", "late", "bad")
#: How far each group of a stream got, for the rules that ask: rows of no table.
NO_TABLE, GROUP, GROUP_FIGURES = -1, "_hg_group", ("rows", "highest", "punctuated")
STATE = "p0_binary"


@dataclass(frozen=True)
class Watch:
    """What to look for in a stream: how its tuples are placed, which are marked, and by what they are told apart."""

    stream: str
    attribute: str | None
    punctuated_by: str | None = None
    by: str | None = None
    late_before: Number | None = None
    """A tuple below this is late for some query."""


def ingested(
    batches: Mapping[str, DataFrame],
    tables: Sequence[Table],
    watches: Sequence[Watch],
    late: Mapping[str, Number | None],
) -> DataFrame:
    """The partial rows of all tables for the tuples of a batch, with the figures of `observations` beside them.

    `late` gives for each query the place below which its tuples are late.
    """
    branches = []
    for watch in watches:
        if watch.stream not in batches:
            continue
        df, carried = batches[watch.stream], False
        place = position(df, watch.attribute) if watch.attribute else "CAST(NULL AS BIGINT)"
        for table in tables:
            for i, feed in enumerate(table.feeds):
                if feed.stream == watch.stream:
                    carrier = None if carried or table.state else watch
                    branches.append(_reduced(df, table, i, late, carrier))
                    carried = carried or carrier is not None
        if not carried:
            branches.append(df.withColumn(_PLACE, F.expr(place)).agg(*_statistics(watch)))
        if watch.by is not None:
            branches.append(_by_group(df, watch, place))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), branches)


def observations(rows: DataFrame, watches: Sequence[Watch]) -> list[Column]:
    """What to observe of ingested rows: the figures of each stream, and how many panes there are and where."""
    merge = {"highest": F.max, "punctuated": F.max}
    figures = [
        merge.get(name, F.sum)(statistic(watch.stream, name)).alias(statistic(watch.stream, name))
        for watch in watches
        for name in _FIGURES
    ]
    if PANE not in rows.columns:
        return figures
    return [F.min(_AT).alias("first"), F.max(_AT).alias("last"), F.count(PANE).alias("panes"), *figures]


def statistic(stream: str, name: str) -> str:
    """The name of a figure of a stream."""
    return f"{_FIGURE}{name}_{stream}"


def partial_rows(rows: DataFrame) -> DataFrame | None:
    """What is kept of the ingested rows, without what was observed: partials and how far groups got, if any."""
    if TABLE not in rows.columns:
        return None
    kept = f"{PANE} IS NOT NULL OR {TABLE} = {NO_TABLE}" if PANE in rows.columns else f"{TABLE} IS NOT NULL"
    return rows.where(kept).drop(_AT, *(c for c in rows.columns if c.startswith(_FIGURE)))


def _reduced(
    df: DataFrame, table: Table, i: int, late: Mapping[str, Number | None], carrier: Watch | None
) -> DataFrame:
    """The partial rows that the tuples of a feed make, with the figures of the stream where they are carried along."""
    feed, window = table.feeds[i], table.members[0].query.window
    conditions = {m.guard: _conditions(m.guard.where[i], late.get(m.query.name)) for m in table.members}
    counts = _any_of(conditions.values())
    if window.range < window.slide:
        counts.append(f"pmod({_PLACE} - {literal(window.origin)}, {literal(window.slide)}) < {literal(window.range)}")
    keys = dict(zip(table.keys, feed.keys, strict=True))
    start = _start(table)
    tuples = df.withColumn(_PLACE, F.expr(feed.place))
    if carrier is None:
        tuples = tuples.where(" AND ".join([f"{_PLACE} IS NOT NULL", *counts]))
    elif counts:
        # The tuples that no query counts are looked at as well: they are one group without a pane.
        counted = " AND ".join(counts)
        keys = {name: f"CASE WHEN {counted} THEN {sql} END" for name, sql in keys.items()}
        start = f"CASE WHEN {counted} THEN {start} END"
    tuples = tuples.withColumns({**{name: F.expr(sql) for name, sql in keys.items()}, _START: F.expr(start)})
    if table.eager is not None:
        tuples = tuples.withColumn(_START, F.explode_outer(_START))
    grouped = tuples.groupBy(*keys, _START)
    if table.state is not None:
        reduced = _states(grouped, [*keys, _START], over_stream(table.state, table.members[0].query.feeds[i]))
    else:
        several = len(conditions) > 1
        partials = [
            F.expr(c.sql(i, conditions[c.guard] if several else ())).cast(c.type).alias(c.name) for c in table.columns
        ]
        reduced = grouped.agg(*partials, *(_statistics(carrier) if carrier is not None else []))
    number = floor_div(f"{_START} - {literal(table.origin)}", table.length)
    at = F.expr(f"CAST({_START} AS DOUBLE)")
    return reduced.withColumns({TABLE: F.lit(table.number), PANE: F.expr(number), _AT: at}).drop(_START)


def _any_of(conditions: Iterable[Sequence[str]]) -> list[str]:
    """What a tuple has to meet to be counted by any query: nothing if one of them counts all."""
    every = [" AND ".join(f"({c})" for c in met) for met in conditions]
    return [] if "" in every else ["(" + " OR ".join(f"({c})" for c in dict.fromkeys(every)) + ")"]


def _states(grouped: GroupedData, group: Sequence[str], call: Call) -> DataFrame:
    assert isinstance(call.function, UserAggregate)
    collected = grouped.agg(user.collected(call).alias("_hg_tuples"))
    return collected.select(*group, user.state(call.function, "_hg_tuples", len(call.arguments)).alias(STATE))


def _by_group(df: DataFrame, watch: Watch, place: str) -> DataFrame:
    """How far each group of a stream got, as rows of a table of their own."""
    assert watch.by is not None
    groups = df.withColumn(_PLACE, F.expr(place)).groupBy(F.expr(f"CAST({quoted(watch.by)} AS STRING)").alias(GROUP))
    figures = [F.expr(sql).alias(f"{GROUP}_{name}") for name, sql in _figures(watch).items() if name in GROUP_FIGURES]
    return groups.agg(*figures).withColumn(TABLE, F.lit(NO_TABLE)).withColumn(f"{GROUP}_stream", F.lit(watch.stream))


def _conditions(where: str, late_before: Number | None) -> list[str]:
    return ([where] if where else []) + ([f"{_PLACE} >= {literal(late_before)}"] if late_before is not None else [])


def _start(table: Table) -> str:
    """Where the pane of a tuple starts; where the panes are windows that overlap, all of their starts."""
    origin, length = literal(table.origin), literal(table.length)
    if table.eager is None:
        return f"{_PLACE} - pmod({_PLACE} - {origin}, {length})"
    last = f"{_PLACE} - pmod({_PLACE} - {origin}, {length})"
    beyond = f"{_PLACE} - {literal(table.eager.range)}"
    first = f"{beyond} - pmod({beyond} - {origin}, {length}) + {length}"
    return f"sequence({first}, {last}, {length})"


def _statistics(watch: Watch) -> list[Column]:
    return [F.expr(sql).alias(statistic(watch.stream, name)) for name, sql in _figures(watch).items()]


def _figures(watch: Watch) -> dict[str, str]:
    late = f"{_PLACE} < {literal(watch.late_before)}" if watch.late_before is not None else "false"
    marked = quoted(watch.punctuated_by) if watch.punctuated_by else "false"
    return {
        "rows": "count(*)",
        "highest": f"max({_PLACE})",
        "punctuated": f"max({_PLACE}) FILTER (WHERE {marked})",
        "late": f"count(*) FILTER (WHERE {late})",
        "bad": f"count(*) FILTER (WHERE {_PLACE} IS NULL)" if watch.attribute else "count(*) FILTER (WHERE false)",
    }
