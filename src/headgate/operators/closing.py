"""The windows that punctuation has closed: from the partial rows of their panes to the answers of all queries.

Panes arrive in pieces, one for each batch and task, and are merged here for the first time. A pane goes into each of
the closing windows that hold it. Where these overlap so much that most panes are in all of them, those are merged to
one row a group first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from headgate.aggregates import UserAggregate
from headgate.operators import user
from headgate.operators.aggregate import joined, over_values
from headgate.operators.ingest import PANE, STATE, TABLE
from headgate.operators.partials import ROWS, Additive, PartialColumn, merge
from headgate.operators.rollup import WINDOW_ID, roll_up
from headgate.operators.sql import floor_div, quoted, text
from headgate.operators.tables import Member, Table
from headgate.plan.feeds import Feed
from headgate.plan.nodes import SAMPLING_RATE, Aggregate
from headgate.windows import Panes

_SPEC = "_hg_spec"
#: From this many panes on that all closing windows hold, they are merged first, which costs a shuffle.
_COMMON = 16


@dataclass(frozen=True)
class Closing:
    """The windows of a query that close: those numbered from `first` to `last`."""

    first: int
    last: int


def answers(state: DataFrame, tables: Sequence[Table], closings: Mapping[str, Closing]) -> DataFrame | None:
    """The answers of the closing windows: a struct column for each query, NULL in the rows of the others."""
    branches = []
    for table in tables:
        members = [m for m in table.members if m.query.name in closings and not table.values and not table.state]
        if members:
            branches += _of_table(state, table, members, tables, closings)
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), branches) if branches else None


def _of_table(
    state: DataFrame,
    table: Table,
    members: Sequence[Member],
    tables: Sequence[Table],
    closings: Mapping[str, Closing],
) -> list[DataFrame]:
    specs = list(dict.fromkeys(_spec(table, m, closings) for m in members))
    windows = _merged(state, table, specs)
    branches, together = [], []
    for member in members:
        number = specs.index(_spec(table, member, closings))
        extra = [t for t in tables if (t.values or t.state) and t.members[0].query is member.query]
        if not extra:
            together.append((member, number))
            continue
        own = windows.where(f"{_SPEC} = {number}")
        for other in extra:
            own = _with_extra(own, state, table, other, _spec(other, other.members[0], closings))
        branches.append(_structs(own, table, [(member, number)]))
    return [*branches, *([_structs(windows, table, together)] if together else [])]


_Spec = tuple[Panes, Closing]


def _spec(table: Table, member: Member, closings: Mapping[str, Closing]) -> _Spec:
    return table.panes(member.query.window), closings[member.query.name]


def _merged(state: DataFrame, table: Table, specs: Sequence[_Spec]) -> DataFrame:
    """The partials of the closing windows of a table, as (keys, _hg_spec, _hg_wid, columns)."""
    columns = [PartialColumn(c.name, c.template, c.merge) for c in table.columns]
    additive = Additive.of(columns)
    rows = _rows(state, table, specs).select(TABLE, *table.keys, PANE, *(c.name for c in columns))
    rows = additive.spread(rows, table.keys or [TABLE])
    if any(_rolled_up(*spec) for spec in specs):
        whole = additive.gather(merge(rows, [*table.keys, PANE], additive))
        return reduce(DataFrame.unionByName, (_by_roll_up(whole, table, columns, i, *s) for i, s in enumerate(specs)))
    common = _common(specs)
    if common is not None:
        first, last = common
        low, high = _by_batch(table, first), _by_batch(table, last)
        lumped = F.expr(f"CASE WHEN {PANE} >= {low} AND {PANE} <= {high} THEN {low} ELSE {PANE} END")
        rows = merge(rows.withColumn(PANE, lumped), [TABLE, *table.keys, PANE], additive)
    windows = _in_windows(rows, table, specs)
    return additive.gather(merge(windows, [*table.keys, _SPEC, WINDOW_ID], additive))


def _rolled_up(panes: Panes, closing: Closing) -> bool:
    """Whether so many windows close at once, as at the end of a bounded stream, that each pane is in many of them."""
    overlap = panes.per_window // panes.per_slide
    return overlap >= _COMMON and closing.last - closing.first >= overlap


def _rows(state: DataFrame, table: Table, specs: Sequence[_Spec]) -> DataFrame:
    first = min(closing.first * panes.per_slide for panes, closing in specs)
    last = max(closing.last * panes.per_slide + panes.per_window - 1 for panes, closing in specs)
    return state.where(
        f"{TABLE} = {table.number} AND {PANE} >= {_by_batch(table, first)} AND {PANE} <= {_by_batch(table, last)}"
    )


def _by_roll_up(
    panes: DataFrame, table: Table, columns: Sequence[PartialColumn], number: int, spec: Panes, closing: Closing
) -> DataFrame:
    windows = roll_up(panes, table.keys, columns, spec, running=False, cut=not table.keys)
    return windows.where(f"{WINDOW_ID} BETWEEN {closing.first}L AND {closing.last}L").withColumn(_SPEC, F.lit(number))


def _common(specs: Sequence[_Spec]) -> tuple[int, int] | None:
    """The panes that are in all of the closing windows, if it pays to merge them first."""
    first = max(closing.last * panes.per_slide for panes, closing in specs)
    last = min(closing.first * panes.per_slide + panes.per_window - 1 for panes, closing in specs)
    windows = sum(closing.last - closing.first + 1 for _, closing in specs)
    return (first, last) if windows > 1 and last - first + 1 >= _COMMON else None


def _in_windows(rows: DataFrame, table: Table, specs: Sequence[_Spec]) -> DataFrame:
    """Each row once for each closing window that holds its pane."""
    if len(specs) == 1 and specs[0][0].per_window == specs[0][0].per_slide == 1:
        return rows.select("*", F.lit(0).alias(_SPEC), F.col(PANE).alias(WINDOW_ID))
    spans = []
    for i, (panes, closing) in enumerate(specs):
        first = f"{floor_div(f'{PANE} - {panes.per_window}L', panes.per_slide)} + 1"
        first = f"greatest({first}, {_by_batch(table, closing.first)})"
        last = f"least({floor_div(PANE, panes.per_slide)}, {_by_batch(table, closing.last)})"
        spans.append((i, first, last))
    if len(specs) == 1:
        i, first, last = spans[0]
        windows = F.explode(F.expr(f"CASE WHEN {first} <= {last} THEN sequence({first}, {last}) END"))
        return rows.select("*", F.lit(i).alias(_SPEC), windows.alias(WINDOW_ID))
    structs = ", ".join(f"struct({i} AS {_SPEC}, {first} AS _first, {last} AS _last)" for i, first, last in spans)
    return (
        rows.select("*", F.inline(F.expr(f"array({structs})")))
        .where("_first <= _last")
        .select("*", F.explode(F.expr("sequence(_first, _last)")).alias(WINDOW_ID))
    )


def _by_batch(table: Table, number: int) -> str:
    """A number that changes from batch to batch, in a form that leaves the code that Spark generates the same.

    A plain number would be part of the code, which would have to be compiled, and got warm with, at every batch.
    """
    return f"element_at(map({table.number}, {number}L), {TABLE})"


def _with_extra(windows: DataFrame, state: DataFrame, table: Table, extra: Table, spec: _Spec) -> DataFrame:
    """The windows with the answers of calls that have a table of their own, holistic or user-defined."""
    keys = table.keys
    if extra.state is not None:
        function = extra.state.function
        assert isinstance(function, UserAggregate)
        rows = _in_windows(_rows(state, extra, [spec]).select(TABLE, *keys, PANE, STATE), extra, [spec])
        lists = rows.groupBy(*keys, WINDOW_ID).agg(F.collect_list(STATE).alias("_hg_states"))
        answer = user.merged_states(function, "_hg_states").alias(extra.state.name)
        return joined(windows, lists.select(*keys, WINDOW_ID, answer), keys)
    counts = _merged(state, extra, [spec])
    value = extra.keys[-1]
    named = counts.withColumnsRenamed({value: "_hg_value", extra.columns[0].name: ROWS})
    own = named.withColumnsRenamed(dict(zip(extra.keys[:-1], keys, strict=True)))
    calls = [F.expr(over_values(c)).alias(c.name) for c in extra.values]
    answers = joined(windows, own.groupBy(*keys, WINDOW_ID).agg(*calls), keys)
    # A window without any value has no row here, yet the count of its values is zero.
    return answers.fillna(0, [c.name for c in extra.values if c.function.name == "count"])


def _structs(windows: DataFrame, table: Table, members: Sequence[tuple[Member, int]]) -> DataFrame:
    """The answers of queries over the merged partials of their windows, one struct for each."""
    values: dict[str, Column] = {}
    structs: list[Column] = []
    for i, (member, number) in enumerate(members):
        node, above = member.query.aggregate, member.query.above
        assert node is not None
        assert above is not None
        fields = {f.name: f"_hg_a{i}_{j}" for j, f in enumerate(node.fields)}
        values |= {fields[name]: column for name, column in _values(member, table, node).items()}
        named = Feed(above.stream, None, {name: exp.column(alias) for name, alias in fields.items()})
        columns = [f"{text(named.of(e))} AS {quoted(name)}" for name, e in above.columns.items()]
        conditions = [f"{_SPEC} = {number}"]
        conditions += [f"{member.rows} > 0"] if member.rows else []
        conditions += [text(named.of(above.where))] if above.where is not None else []
        struct = f"struct({', '.join([*columns, f'1.0D AS {SAMPLING_RATE}'])})"
        met = " AND ".join(f"({c})" for c in conditions)
        structs.append(F.expr(f"CASE WHEN {met} THEN {struct} END").alias(member.query.name))
    answered = windows.select("*", *(c.alias(name) for name, c in values.items())).select(*structs)
    return answered.where(" OR ".join(f"{quoted(m.query.name)} IS NOT NULL" for m, _ in members))


def _values(member: Member, table: Table, node: Aggregate) -> dict[str, Column]:
    """The columns of the aggregate's answer over the merged partials."""
    found = {k.name: F.col(key) for k, key in zip(node.keys, table.keys, strict=True)}
    for call in node.calls:
        found[call.name] = F.expr(member.finals[call.name]) if call.name in member.finals else F.col(quoted(call.name))
    return found | {name: F.expr(sql) for name, sql in member.finals.items() if name not in found}
