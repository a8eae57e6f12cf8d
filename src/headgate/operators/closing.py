"""The windows that punctuation has closed: from the partial rows of their panes to the answers of all queries.

Panes arrive in pieces, one for each batch and task, and are merged here for the first time. A pane goes into each of
the closing windows that hold it. Where these overlap so much that most panes are in all of them, those are merged to
one row a group first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from headgate.aggregates import Merge, UserAggregate
from headgate.operators import user
from headgate.operators.aggregate import joined, over_values
from headgate.operators.ingest import PANE, STATE, TABLE
from headgate.operators.partials import ROWS, Additive, PartialColumn, merging
from headgate.operators.rollup import WINDOW_ID, roll_up
from headgate.operators.sql import THESE, floor_div, queried, quoted, stacked, text
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
    return stacked(branches) if branches else None


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
        own = windows.df.where(f"{_SPEC} = {number}")
        for other in extra:
            own = _with_extra(own, state, table, other, _spec(other, other.members[0], closings))
        branches.append(_structs(_Selected(own), table, [(member, number)]))
    return [*branches, *([_structs(windows, table, together)] if together else [])]


_Spec = tuple[Panes, Closing]


@dataclass(frozen=True)
class _Selected:
    """Rows, and what is selected of them, so that more can be selected of it in one text."""

    rows: DataFrame
    source: str = THESE

    @property
    def df(self) -> DataFrame:
        return self.rows if self.source == THESE else queried(self.rows, f"SELECT * FROM {self.source}")


def _spec(table: Table, member: Member, closings: Mapping[str, Closing]) -> _Spec:
    return table.panes(member.query.window), closings[member.query.name]


def _merged(state: DataFrame, table: Table, specs: Sequence[_Spec]) -> _Selected:
    """The partials of the closing windows of a table, as (keys, _hg_spec, _hg_wid, columns)."""
    columns = table.partials
    additive = Additive.of(columns)
    merged = merging(additive, {c.name: c.type for c in table.columns if c.merge is not Merge.MOMENTS})
    rows, source = state, f"{THESE} WHERE {_held(table, specs)}"
    if additive.centres:
        needed = ", ".join([TABLE, *table.keys, PANE, *(c.name for c in columns)])
        rows = queried(rows, f"SELECT {needed} FROM {source}")
        rows, source = additive.spread(rows, table.keys or [TABLE]), THESE
    if any(_rolled_up(*spec) for spec in specs):
        whole = additive.gather(queried(rows, _grouped([*table.keys, PANE], merged, source)))
        windows = (_by_roll_up(whole, table, columns, i, *s) for i, s in enumerate(specs))
        return _Selected(reduce(DataFrame.unionByName, windows))
    common = _common(specs)
    if common is not None:
        low, high = (_by_batch(table, pane) for pane in common)
        lumped = f"CASE WHEN {PANE} >= {low} AND {PANE} <= {high} THEN {low} ELSE {PANE} END AS {PANE}"
        kept = ", ".join([TABLE, *table.keys, lumped, *(name for name, _ in additive.parts), *additive.centres])
        source = f"({_grouped([TABLE, *table.keys, PANE], merged, f'(SELECT {kept} FROM {source})')})"
    held = f"({_in_windows(source, table, specs)})"
    selected = _Selected(rows, f"({_grouped([*table.keys, _SPEC, WINDOW_ID], merged, held)})")
    return _Selected(additive.gather(selected.df)) if additive.centres else selected


def _grouped(group: Sequence[str], aggregates: Mapping[str, str], source: str) -> str:
    columns = ", ".join([*group, *(f"{sql} AS {name}" for name, sql in aggregates.items())])
    return f"SELECT {columns} FROM {source} GROUP BY {', '.join(group)}"


def _rolled_up(panes: Panes, closing: Closing) -> bool:
    """Whether so many windows close at once, as at the end of a bounded stream, that each pane is in many of them."""
    overlap = panes.per_window // panes.per_slide
    return overlap >= _COMMON and closing.last - closing.first >= overlap


def _held(table: Table, specs: Sequence[_Spec]) -> str:
    """Whether a row of the state is one of a table and in a closing window."""
    first = min(closing.first * panes.per_slide for panes, closing in specs)
    last = max(closing.last * panes.per_slide + panes.per_window - 1 for panes, closing in specs)
    return f"{TABLE} = {table.number} AND {PANE} >= {_by_batch(table, first)} AND {PANE} <= {_by_batch(table, last)}"


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


def _in_windows(source: str, table: Table, specs: Sequence[_Spec]) -> str:
    """Each row of a source once for each closing window that holds its pane."""
    if len(specs) == 1 and specs[0][0].per_window == specs[0][0].per_slide == 1:
        return f"SELECT *, 0 AS {_SPEC}, {PANE} AS {WINDOW_ID} FROM {source}"
    spans = []
    for i, (panes, closing) in enumerate(specs):
        first = f"{floor_div(f'{PANE} - {panes.per_window}L', panes.per_slide)} + 1"
        first = f"greatest({first}, {_by_batch(table, closing.first)})"
        last = f"least({floor_div(PANE, panes.per_slide)}, {_by_batch(table, closing.last)})"
        spans.append((i, first, last))
    if len(specs) == 1:
        i, first, last = spans[0]
        windows = f"explode(CASE WHEN {first} <= {last} THEN sequence({first}, {last}) END)"
        return f"SELECT *, {i} AS {_SPEC}, {windows} AS {WINDOW_ID} FROM {source}"
    structs = ", ".join(f"struct({i} AS {_SPEC}, {first} AS _first, {last} AS _last)" for i, first, last in spans)
    inlined = f"SELECT *, inline(array({structs})) FROM {source}"
    return f"SELECT *, explode(sequence(_first, _last)) AS {WINDOW_ID} FROM ({inlined}) WHERE _first <= _last"


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
        held = f"(SELECT {', '.join([TABLE, *keys, PANE, STATE])} FROM {THESE} WHERE {_held(extra, [spec])})"
        collected = {"_hg_states": f"collect_list({STATE})"}
        lists = queried(state, _grouped([*keys, WINDOW_ID], collected, f"({_in_windows(held, extra, [spec])})"))
        answer = user.merged_states(function, "_hg_states").alias(extra.state.name)
        return joined(windows, lists.select(*keys, WINDOW_ID, answer), keys)
    counts = _merged(state, extra, [spec]).df
    value = extra.keys[-1]
    named = counts.withColumnsRenamed({value: "_hg_value", extra.columns[0].name: ROWS})
    own = named.withColumnsRenamed(dict(zip(extra.keys[:-1], keys, strict=True)))
    calls = [F.expr(over_values(c)).alias(c.name) for c in extra.values]
    answers = joined(windows, own.groupBy(*keys, WINDOW_ID).agg(*calls), keys)
    # A window without any value has no row here, yet the count of its values is zero.
    return answers.fillna(0, [c.name for c in extra.values if c.function.name == "count"])


def _structs(windows: _Selected, table: Table, members: Sequence[tuple[Member, int]]) -> DataFrame:
    """The answers of queries over the merged partials of their windows, one struct for each."""
    values: list[str] = []
    structs: list[str] = []
    for i, (member, number) in enumerate(members):
        node, above = member.query.aggregate, member.query.above
        assert node is not None
        assert above is not None
        fields = {f.name: f"_hg_a{i}_{j}" for j, f in enumerate(node.fields)}
        values += [f"{sql} AS {fields[name]}" for name, sql in _values(member, table, node).items()]
        named = Feed(above.stream, None, {name: exp.column(alias) for name, alias in fields.items()})
        columns = [f"{text(named.of(e))} AS {quoted(name)}" for name, e in above.columns.items()]
        conditions = [f"{_SPEC} = {number}"]
        conditions += [f"{member.rows} > 0"] if member.rows else []
        conditions += [text(named.of(above.where))] if above.where is not None else []
        struct = f"struct({', '.join([*columns, f'1.0D AS {SAMPLING_RATE}'])})"
        met = " AND ".join(f"({c})" for c in conditions)
        structs.append(f"CASE WHEN {met} THEN {struct} END AS {quoted(member.query.name)}")
    answered = f"SELECT {', '.join(structs)} FROM (SELECT *, {', '.join(values)} FROM {windows.source})"
    any_answer = " OR ".join(f"{quoted(m.query.name)} IS NOT NULL" for m, _ in members)
    return queried(windows.rows, f"SELECT * FROM ({answered}) WHERE {any_answer}")


def _values(member: Member, table: Table, node: Aggregate) -> dict[str, str]:
    """The columns of the aggregate's answer over the merged partials."""
    found = {k.name: key for k, key in zip(node.keys, table.keys, strict=True)}
    for call in node.calls:
        found[call.name] = member.finals.get(call.name) or quoted(call.name)
    return found | {name: sql for name, sql in member.finals.items() if name not in found}
