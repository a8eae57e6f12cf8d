"""The windows that punctuation has closed: from the partial rows of their panes to the answers of all queries.

Panes arrive in pieces, one for each batch and task, and are merged here for the first time. A pane goes into each of
the closing windows that hold it. Where these overlap so much that most panes are in all of them, those are merged to
one row a group first.

All tables are answered in one pass over the state where they can be: columns have the same name in two tables only if
they merge in the same way, and the number of its table leads a row to the windows that it is in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from headgate.aggregates import Merge
from headgate.bounded import user
from headgate.bounded.aggregate import joined, over_values
from headgate.bounded.landmark import LAST, accumulate
from headgate.bounded.rollup import WINDOW_ID, roll_up
from headgate.incremental.reduce import PANE, STATE, TABLE
from headgate.plan.logical.nodes import SAMPLING_RATE, Aggregate
from headgate.plan.stream.feeds import Feed
from headgate.progress import Punctuation
from headgate.progress.closing import Box, Closing
from headgate.sharing.table import Member, Table
from headgate.shed.estimate.limits import OF, TOP, Limits, for_each, with_steps
from headgate.shed.estimate.sql import high, low, outlook, plain_calls
from headgate.shed.fate import Fate
from headgate.sql.partials import ROWS, Additive, PartialColumn, merge, merging
from headgate.sql.text import THESE, Name, ddl, floor_div, moving, position, queried, stacked, text
from headgate.windows import WindowType

_SPEC = "_hg_spec"
#: From this many panes on that all closing windows hold, they are merged first, which costs a shuffle.
_COMMON = 16
_BEFORE_ALL = -(1 << 62)
#: So many kinds of closing windows are answered in one pass. A query that comes or goes has the code of its pass
#: compiled anew, and that of no other; with many kinds in one, Spark does not compile it at all.
_KINDS_A_PASS = 8


_KEPT = Fate()


def _closes(box: Box, places: Mapping[str, str]) -> str:
    """Whether a group closes, as SQL, by the places of the columns that it is grouped by."""
    return f"{_below(box.now, places)} AND NOT ({_below(box.before, places)})"


def _below(bounds: Mapping[str, Punctuation], places: Mapping[str, str]) -> str:
    if not bounds:
        return "false"
    met = []
    for name, p in bounds.items():
        assert p is not None
        if not isinstance(p, float):
            met.append(f"{places[name]} < {moving(p, places[name])}")
    return " AND ".join(met) or "true"


@dataclass(frozen=True)
class _Kind:
    """Closing windows over one table that are answered from the same rows: of the same panes and the same keys."""

    table: int
    panes: WindowType
    closing: Closing
    keys: tuple[str, ...]
    growing: bool = False
    """Whether the windows begin before all time: a pane is in its own and all later ones."""

    @property
    def first_pane(self) -> int:
        return _BEFORE_ALL if self.growing else self.closing.first * self.panes.per_slide

    @property
    def last_pane(self) -> int:
        return self.closing.last * self.panes.per_slide + self.panes.per_window - 1

    @property
    def common(self) -> tuple[int, int]:
        """The first and the last of the panes that are in all of the windows."""
        if self.growing:
            return 0, -1  # There are few of them, and after the next compaction one.
        last = self.closing.first * self.panes.per_slide + self.panes.per_window - 1
        return self.closing.last * self.panes.per_slide, last

    @property
    def windows(self) -> int:
        return self.closing.last - self.closing.first + 1

    @property
    def rolls_up(self) -> bool:
        """Whether so many windows close at once, as at the end of a bounded stream, that each pane is in many."""
        if self.growing:
            return self.windows > _COMMON
        overlap = self.panes.per_window // self.panes.per_slide
        return overlap >= _COMMON and self.windows > overlap


@dataclass(frozen=True)
class _Pass:
    """What is answered in one pass over the state: tables with their closing windows, by number of the table."""

    tables: dict[int, Table]
    kinds: tuple[_Kind, ...]
    members: tuple[Member, ...]

    @property
    def keys(self) -> list[str]:
        """The key columns of all tables: in the rows of one, those of the others are NULL."""
        return list(dict.fromkeys(k for t in self.tables.values() for k in t.keys))

    @property
    def columns(self) -> list[PartialColumn]:
        return list({c.name: c for t in self.tables.values() for c in t.partials}.values())

    def dropped(self, kind: _Kind) -> list[str]:
        """The keys of a table that windows over it do not have."""
        return [key for key in self.tables[kind.table].keys if key not in kind.keys]

    def kinds_of(self, table: int) -> list[tuple[int, _Kind]]:
        return [(i, kind) for i, kind in enumerate(self.kinds) if kind.table == table]

    def __add__(self, other: _Pass) -> _Pass:
        return _Pass(self.tables | other.tables, self.kinds + other.kinds, self.members + other.members)


@dataclass(frozen=True)
class _Selected:
    """Rows, and what is selected of them, so that more can be selected of it in one text."""

    rows: DataFrame
    source: str = THESE

    @property
    def df(self) -> DataFrame:
        return self.rows if self.source == THESE else queried(self.rows, f"SELECT * FROM {self.source}")


def answers(
    state: DataFrame, tables: Sequence[Table], closings: Mapping[str, Closing], fates: Mapping[str, Fate]
) -> DataFrame | None:
    """The answers of the closing windows: a struct column for each query, NULL in the rows of the others."""
    branches = []
    for each in _passes(tables, closings):
        windows = _merged(state, each)
        plain = []
        for member in each.members:
            extra = [t for t in tables if (t.values or t.state) and t.members[0].stage is member.stage]
            if not extra:
                plain.append(member)
                continue
            (table,) = each.tables.values()
            own = windows.df.where(f"{_SPEC} = {each.kinds.index(_kind(table, member, closings))}")
            fate = fates.get(member.stage.name, _KEPT)
            for other in extra:
                own = _with_extra(own, state, member, other, closings, fate.top if fate.tops else "1D")
            branches.append(_structs(_Selected(own), each, [member], closings, fates))
        if plain:
            branches.append(_structs(windows, each, plain, closings, fates))
    return stacked(branches) if branches else None


def _passes(tables: Sequence[Table], closings: Mapping[str, Closing]) -> list[_Pass]:
    """The passes over the state: tables that are merged in the same way are merged in the same pass."""
    passes: list[_Pass] = []
    room: dict[bool, int] = {}
    for table in tables:
        members = tuple(m for m in table.members if m.stage.name in closings)
        if not members or table.values or table.state:
            continue
        own = _pass(table, members, closings)
        alone = any(k.rolls_up or k.closing.box for k in own.kinds) or bool(Additive.of(own.columns).centres)
        alone = alone or any((t.values or t.state) and t.members[0].stage in [m.stage for m in members] for t in tables)
        lumped = bool(_common(own))
        if not alone and lumped in room and len(passes[room[lumped]].kinds + own.kinds) <= _KINDS_A_PASS:
            passes[room[lumped]] += own
            continue
        passes.append(own)
        if not alone:
            room[lumped] = len(passes) - 1
    return passes


def _pass(table: Table, members: Sequence[Member], closings: Mapping[str, Closing]) -> _Pass:
    kinds = dict.fromkeys(_kind(table, m, closings) for m in members)
    return _Pass({table.number: table}, tuple(kinds), tuple(members))


def _kind(table: Table, member: Member, closings: Mapping[str, Closing]) -> _Kind:
    keys = tuple(k for k in table.keys if k in member.keys or table.values)
    panes, closing = table.panes(member.stage.window), closings[member.stage.name]
    return _Kind(table.number, panes, closing, keys, table.growing)


def _merged(state: DataFrame, over: _Pass) -> _Selected:
    """The partials of the closing windows, as (keys, _hg_spec, _hg_wid, columns); a spec is the number of a kind."""
    additive = Additive.of(over.columns)
    types = {c.name: c.type for t in over.tables.values() for c in t.columns if c.merge is not Merge.MOMENTS}
    merged = merging(additive, types)
    rows, source = _in_box(state, over), f"{THESE} WHERE {_held(over)}"
    if additive.centres:
        needed = ", ".join([TABLE, *over.keys, PANE, *(c.name for c in over.columns)])
        rows = queried(rows, f"SELECT {needed} FROM {source}")
        # Rows that are merged have to have the same centre.
        together = [key for key in over.keys if all(key in kind.keys for kind in over.kinds)]
        rows, source = additive.spread(rows, together or [TABLE]), THESE
    if any(kind.rolls_up for kind in over.kinds):
        source = _lumped_before(source, over, [name for name, _ in additive.parts] + additive.centres)
        whole = additive.gather(queried(rows, _grouped([*over.keys, PANE], merged, source)))
        return _Selected(reduce(DataFrame.unionByName, (_rolled_up(whole, over, i) for i in range(len(over.kinds)))))
    common = _common(over)
    if common:
        low, high = (_by_table({t: panes[i] for t, panes in common.items()}) for i in (0, 1))
        lumped = f"CASE WHEN {PANE} >= {low} AND {PANE} <= {high} THEN {low} ELSE {PANE} END AS {PANE}"
        kept = ", ".join([TABLE, *over.keys, lumped, *(name for name, _ in additive.parts), *additive.centres])
        source = f"({_grouped([TABLE, *over.keys, PANE], merged, f'(SELECT {kept} FROM {source})')})"
    held = f"({_in_windows(source, over, [name for name, _ in additive.parts] + additive.centres)})"
    selected = _Selected(rows, f"({_grouped([*over.keys, _SPEC, WINDOW_ID], merged, held)})")
    return _Selected(additive.gather(selected.df)) if additive.centres else selected


def _in_box(state: DataFrame, over: _Pass) -> DataFrame:
    """The rows of groups that close, where not all of a window do."""
    boxed = [(m, k.closing.box) for m, k in zip(over.members, over.kinds, strict=False) if k.closing.box]
    for member, box in boxed:
        assert member.stage.aggregate is not None
        names = [key.expression.name for key in member.stage.aggregate.keys]
        places = {name: position(state, key) for name, key in zip(names, member.keys, strict=True) if name in box.now}
        state = state.where(_closes(box, places))
    return state


def _grouped(group: Sequence[str], aggregates: Mapping[str, str], source: str) -> str:
    columns = ", ".join([*group, *(f"{sql} AS {name}" for name, sql in aggregates.items())])
    return f"SELECT {columns} FROM {source} GROUP BY {', '.join(group)}"


def _held(over: _Pass) -> str:
    """Whether a row of the state is one of these tables and in a closing window; other tables have no bounds.

    To name the table would let Spark put its bounds in as plain numbers.
    """
    kinds = {number: [kind for _, kind in over.kinds_of(number)] for number in over.tables}
    first = _by_table({number: min(k.first_pane for k in own) for number, own in kinds.items()})
    last = _by_table({number: max(k.last_pane for k in own) for number, own in kinds.items()})
    return f"{PANE} >= {first} AND {PANE} <= {last}"


def _lumped_before(source: str, over: _Pass, columns: Sequence[str]) -> str:
    """The panes of a source; where windows grow, all those up to the first that closes as one: none ends in between."""
    (table,) = over.tables.values()
    if not table.growing:
        return source
    first = _by_table({table.number: min(kind.closing.first for kind in over.kinds)})
    kept = ", ".join([TABLE, *over.keys, *columns])
    return f"(SELECT {kept}, greatest({PANE}, {first}) AS {PANE} FROM {source})"


def _rolled_up(panes: DataFrame, over: _Pass, number: int) -> DataFrame:
    kind = over.kinds[number]
    none = {key: F.lit(None).cast(panes.schema[key].dataType) for key in over.dropped(kind)}
    if none:
        additive = Additive.of(over.columns)
        spread = additive.spread(panes, kind.keys or [PANE])
        panes = additive.gather(merge(spread, [*kind.keys, PANE], additive))
    if kind.growing:
        windows = accumulate(panes, kind.keys, over.columns, partial(_until, kind.closing.last))
    else:
        windows = roll_up(panes, kind.keys, over.columns, kind.panes, running=False, cut=not kind.keys)
    first, last = (moving(number, WINDOW_ID) for number in (kind.closing.first, kind.closing.last))
    closing = windows.where(f"{WINDOW_ID} >= {first} AND {WINDOW_ID} <= {last}")
    return closing.withColumns({_SPEC: F.lit(number), **none})


def _until(last: int, rows: DataFrame) -> DataFrame:
    return rows.withColumn(LAST, F.lit(last).cast("bigint"))


def _common(over: _Pass) -> dict[int, tuple[int, int]]:
    """By table the panes that are in all of its closing windows, where it pays to merge them first."""
    found = {}
    for number in over.tables:
        kinds = [kind for _, kind in over.kinds_of(number)]
        first, last = max(k.common[0] for k in kinds), min(k.common[1] for k in kinds)
        if sum(k.windows for k in kinds) > 1 and last - first + 1 >= _COMMON:
            found[number] = first, last
    return found


def _in_windows(source: str, over: _Pass, columns: Sequence[str]) -> str:
    """Each row of a source once for each closing window that holds its pane, with no more keys than the window has."""
    finer = {k: [str(i) for i, kind in enumerate(over.kinds) if k in over.dropped(kind)] for k in over.keys}
    keys = [
        f"CASE WHEN {_SPEC} NOT IN ({', '.join(others)}) THEN {key} END AS {key}" if others else key
        for key, others in finer.items()
    ]
    kept = ", ".join([*keys, *columns, _SPEC])
    only = over.kinds[0] if len(over.kinds) == 1 else None
    if only and only.panes.per_window == only.panes.per_slide == 1 and not only.growing:
        return f"SELECT {kept}, {PANE} AS {WINDOW_ID} FROM (SELECT *, 0 AS {_SPEC} FROM {source})"
    arrays = " ".join(f"WHEN {TABLE} = {number} THEN array({_spans(over, number)})" for number in over.tables)
    inlined = f"SELECT *, inline(CASE {arrays} END) FROM {source}"
    return f"SELECT {kept}, explode(sequence(_first, _last)) AS {WINDOW_ID} FROM ({inlined}) WHERE _first <= _last"


def _spans(over: _Pass, table: int) -> str:
    """The closing windows that hold a pane of a table, as structs of a kind and its first and last window."""
    structs = []
    for i, kind in over.kinds_of(table):
        panes, closing = kind.panes, kind.closing
        first, last = PANE, _by_table({table: closing.last})
        if not kind.growing:
            first = f"{floor_div(f'{PANE} - {panes.per_window}L', panes.per_slide)} + 1"
            last = f"least({floor_div(PANE, panes.per_slide)}, {last})"
        first = f"greatest({first}, {_by_table({table: closing.first})})"
        structs.append(f"struct({i} AS {_SPEC}, {first} AS _first, {last} AS _last)")
    return ", ".join(structs)


def _by_table(numbers: Mapping[int, int]) -> str:
    """Numbers that change from batch to batch, in a form that leaves the code that Spark generates the same.

    Plain numbers would be part of the code, which would have to be compiled, and got warm with, at every batch.
    """
    pairs = ", ".join(f"{table}, {number}L" for table, number in numbers.items())
    return f"element_at(map({pairs}), {TABLE})"


def _with_extra(
    windows: DataFrame, state: DataFrame, member: Member, extra: Table, closings: Mapping[str, Closing], top: str
) -> DataFrame:
    """The windows with the answers of calls that have a table of their own, holistic or user-defined.

    `top` is the largest weight that a tuple of a window may have had, over its number.
    """
    keys, names = list(member.keys), [*map(Name, member.keys)]
    over = _pass(extra, extra.members, closings)
    if extra.state is not None:
        held = f"(SELECT {', '.join([TABLE, *extra.keys, PANE, STATE])} FROM {THESE} WHERE {_held(over)})"
        collected = {"_hg_states": f"collect_list({STATE})"}
        grouped = _grouped([*extra.keys, WINDOW_ID], collected, f"({_in_windows(held, over, [STATE])})")
        lists = queried(state, grouped)
        answer = user.merged_states(extra.state.function, "_hg_states").alias(extra.state.name)
        return joined(windows, lists.select(*_renamed(extra.keys, keys), WINDOW_ID, answer), names)
    merged = _merged(state, over)
    if extra.quantiles is not None:
        called = dict(zip(extra.keys[:-1], keys, strict=True))
        estimates = extra.quantiles.answers(merged.source, called, extra.keys[-1], top)
        return joined(windows, queried(merged.rows, estimates), names)
    counts = merged.df
    value, times = F.col(extra.keys[-1]).alias("_hg_value"), F.col(extra.columns[0].name).alias(ROWS)
    own = counts.select(*_renamed(extra.keys[:-1], keys), WINDOW_ID, value, times)
    calls = [F.expr(over_values(c)).alias(c.name) for c in extra.values]
    answers = joined(windows, own.groupBy(*keys, WINDOW_ID).agg(*calls), names)
    # A window without any value has no row here, yet the count of its values is zero.
    return answers.fillna(0, [c.name for c in extra.values if c.function.name == "count"])


def _renamed(names: Sequence[str], new: Sequence[str]) -> list[Column]:
    return [F.col(one).alias(other) for one, other in zip(names, new, strict=True)]


def _structs(
    windows: _Selected,
    over: _Pass,
    members: Sequence[Member],
    closings: Mapping[str, Closing],
    fates: Mapping[str, Fate],
) -> DataFrame:
    """The answers of queries over the merged partials of their windows, one struct for each."""
    values: list[str] = []
    structs: list[str] = []
    outlooks: list[str] = []
    tables = {m.stage.name: next(t for t in over.tables.values() if m in t.members) for m in members}
    specs = [over.kinds.index(_kind(tables[m.stage.name], m, closings)) for m in members]
    source, limits = _with_limits(windows.source, specs, members, fates)
    for i, member in enumerate(members):
        node, above = member.stage.aggregate, member.stage.above
        assert node is not None
        assert above is not None
        own = f"{OF} = {i}" if limits else f"{_SPEC} = {specs[i]}"
        fate = fates.get(member.stage.name, _KEPT)
        own += (f" AND {member.rows} > 0" if member.rows else "") + fate.keeps(member.keys)
        fields = {f.name: f"_hg_a{i}_{j}" for j, f in enumerate(node.fields)}
        # A row of other windows may hold anything where this query has its partials.
        found, rate, shown_limits = _values(member, node), "1.0D", dict[str, str]()
        if (estimates := member.estimates) is not None:
            outlooks.append(
                f"CASE WHEN {own} THEN {estimates.outlook(member.rows)} END AS {outlook(member.stage.name)}"
            )
            shown = plain_calls(above)
            for call in estimates.types:
                exact = f"CAST({found[call]} AS {ddl(estimates.limit_type(call))})"
                estimated = (found[call], exact, exact)
                if i in limits:
                    rate = f"{member.rows} / {estimates.total}"
                    value, lower, upper = estimates.typed(call, *limits[i][call])
                    estimated = (f"CASE WHEN {TOP} = 1 THEN {found[call]} ELSE {value} END", lower, upper)
                found[call], lower, upper = estimated
                shown_limits |= {low(shown[call]): lower, high(shown[call]): upper} if call in shown else {}
        values += [f"CASE WHEN {own} THEN {sql} END AS {Name(fields[name])}" for name, sql in found.items()]
        named = Feed(above.stream, None, {name: exp.column(alias) for name, alias in fields.items()})
        columns = [f"{text(named.of(e))} AS {Name(name)}" for name, e in above.columns.items()]
        having = f" AND ({text(named.of(above.where))})" if above.where is not None else ""
        columns += [f"{rate} AS {SAMPLING_RATE}", *(f"{sql} AS {Name(name)}" for name, sql in shown_limits.items())]
        structs.append(f"CASE WHEN {own}{having} THEN struct({', '.join(columns)}) END AS {Name(member.stage.name)}")
    answered = f"SELECT *, {', '.join(values)} FROM {source}"
    answered_rows = f"SELECT {', '.join(structs + outlooks)} FROM ({answered})"
    any_answer = " OR ".join(f"{Name(m.stage.name)} IS NOT NULL" for m in members)
    return queried(windows.rows, f"SELECT * FROM ({answered_rows}) WHERE {any_answer}")


def _with_limits(
    source: str, specs: Sequence[int], members: Sequence[Member], fates: Mapping[str, Fate]
) -> tuple[str, dict[int, Limits]]:
    """The rows with the limits of queries, once for each query, if any of their windows has sampled tuples.

    Then all that may be sampled have limits: which of them are is another matter in each batch, and would be other
    code.
    """
    estimated = {i: member.estimates for i, member in enumerate(members) if member.estimates is not None}
    own = {i: fates.get(members[i].stage.name, _KEPT) for i in estimated}
    if not any(fate.tops for fate in own.values()):
        return source, {}
    by_spec: dict[int, list[int]] = {}
    for i, spec in enumerate(specs):
        by_spec.setdefault(spec, []).append(i)
    tops = {i: fate.top for i, fate in own.items()}
    return with_steps(for_each(source, _SPEC, by_spec), estimated, tops)


def _values(member: Member, node: Aggregate) -> dict[str, str]:
    """The columns of the aggregate's answer over the merged partials."""
    found = {k.name: key for k, key in zip(node.keys, member.keys, strict=True)}
    for call in node.calls:
        found[call.name] = member.finals.get(call.name) or str(Name(call.name))
    return found | {name: sql for name, sql in member.finals.items() if name not in found}
