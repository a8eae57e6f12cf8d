"""The ingest of a micro-batch: tuples are reduced to the partial rows of all tables, in one job.

A stream is also looked at as a whole: how many tuples came, how far they got, how many have no place. These figures are
partials too, carried by one table of the stream and observed after its aggregation, where rows are few; before it
they would cost as much as the aggregation.

Nothing in the expressions over tuples changes from batch to batch. Spark would compile other literals to other classes,
which the JVM has to get warm with anew. So late tuples are not looked for here: the lowest place tells whether there
are any, and if so, the batch is ingested once more without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.bounded import user
from headgate.plan.logical.nodes import ROW_NUM
from headgate.sharing.columns import Guard, over_stream
from headgate.sharing.table import Member, Table
from headgate.shed.estimate.sql import EVERYTHING, TAKEN_AT, Sampling, taken
from headgate.sql.text import (
    THESE,
    Name,
    ddl,
    listed,
    literal,
    own,
    position,
    queried,
    quoted,
    stacked,
)
from headgate.windows import Number

TABLE, PANE = "_hg_table", "_hg_pane"
#: What tells the pane of a tuple from others, and where that begins.
_KEY, _AT = "_hg_start", "_hg_at"
_FIGURE = "_hg_figure_"
#: How far each group of a stream got, for the rules that ask: rows of no table.
NO_TABLE, GROUP, GROUP_FIGURES = -1, "_hg_group", ("rows", "highest", "punctuated")
STATE = "state_binary"
#: In streams of records that may not fit the schema: such a record as it is; NULL for all others.
MALFORMED = "_hg_malformed"
#: The places of a stream at the ranks that are asked for.
RANKED = "ranked"
_MERGES = {"rows": "sum", "lowest": "min", "highest": "max", "punctuated": "max", "bad": "sum", "numbered": "sum"}
#: What is observed is one struct under this name.
FIGURES_OBSERVED = "figures"


@dataclass(frozen=True)
class Watch:
    """What to look for in a stream: how its tuples are placed, which are marked, and by what they are told apart."""

    stream: str
    attribute: str | None
    punctuated_by: str | None = None
    by: str | None = None
    marked: bool = False
    """Whether records that do not fit the schema are marked by MALFORMED."""
    figures: bool = True
    """Whether the stream is looked at as a whole; once is enough where it is ingested several times."""
    numbered: bool = False
    """Whether its tuples have arrival numbers."""
    ranked: Sequence[int] = ()
    """The ranks, from the highest tuple down, whose places are asked for."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """By query that tuples are left out for, on which condition one is not: these are counted."""
    known: bool = False
    """Whether all else is known of the stream, so that these are counted in its largest sample."""

    @property
    def looked_for(self) -> dict[str, str]:
        """The figures that are observed, each with how it merges."""
        return ({} if self.known else _MERGES) | {kept_figure(query): "sum" for query in self.kept}

    @property
    def ranks_all(self) -> bool:
        """Whether it is asked for ranks of the stream as a whole, which takes a branch of its own."""
        return bool(self.ranked) and self.by is None and self.figures

    def at_ranks(self, df: DataFrame) -> str:
        """The places at these ranks, as an aggregate in SQL."""
        place = self.place(df)
        indices = ", ".join(str(rank - 1) for rank in self.ranked)
        highest = f"max_by({place}, {place}, {self.ranked[-1]})"
        return f"filter(transform(array({indices}), i -> get({highest}, i)), p -> p IS NOT NULL)"

    def place(self, df: DataFrame) -> str:
        """The place of a tuple on the axis, as SQL: NULL if it is bad."""
        place = position(df, self.attribute) if self.attribute else "CAST(NULL AS BIGINT)"
        return f"CASE WHEN {MALFORMED} IS NULL THEN {place} END" if self.marked and self.attribute else place

    def is_bad(self, df: DataFrame) -> str:
        """Whether a tuple cannot be used, as SQL: it is malformed, or has no place."""
        if self.attribute:
            return f"({self.place(df)}) IS NULL"
        return f"{MALFORMED} IS NOT NULL" if self.marked else "false"

    def is_good(self, df: DataFrame) -> str | None:
        """Whether a tuple can be used, as SQL; None if all can."""
        conditions = [f"{MALFORMED} IS NULL"] if self.marked else []
        if self.attribute:
            conditions.append(f"({position(df, self.attribute)}) IS NOT NULL")
        return " AND ".join(conditions) or None


def ingested(
    batches: Mapping[str, Sequence[DataFrame]],
    tables: Sequence[Table],
    watches: Sequence[Watch],
    late: Mapping[str, Number],
    sampling: Sampling = EVERYTHING,
    samples: Mapping[str, Mapping[int, Sequence[DataFrame]]] | None = None,
) -> DataFrame:
    """The partial rows of all tables for the tuples of a batch, with the figures of the streams beside them.

    A stream may come in pieces, which are reduced apart. `late` gives for queries the place below which tuples are left
    out, `sampling` the rates at which tuples are taken, by their coins. Of a stream, the tables that have `samples`
    need no other tuples than these.
    """
    branches = []
    for watch in watches:
        pieces, known = batches[watch.stream], (samples or {}).get(watch.stream, {})
        each = [
            _branches(df, {number: sampled[i] for number, sampled in known.items()}, watch, tables, late, sampling)
            for i, df in enumerate(pieces)
        ]
        # The same of all pieces beside one another: where branches share a sample, the first of them makes it.
        branches += [branch for alike in zip(*each, strict=True) for branch in alike]
        if watch.ranks_all:
            whole = stacked(pieces)
            ranked = Name(figure(watch.stream, RANKED))
            branches.append(queried(whole, f"SELECT {watch.at_ranks(whole)} AS {ranked} FROM {THESE}"))
    return stacked(branches)


def sampled_tables(tables: Sequence[Table], stream: str, sampling: Sampling) -> dict[int, float]:
    """The tables of a stream all of whose queries are sampled, with the highest of their rates."""
    queries = {t.number: [guard.shed for guard in t.guards] for t in tables if t.reads(stream)}
    return {n: max(map(sampling.rate, names)) for n, names in queries.items() if sampling.samples(names)}


def taken_by_any(tables: Sequence[Table], stream: str, sampling: Sampling) -> list[str]:
    """The conditions that a tuple of a stream meets which any query of the sampled tables takes, the cheapest first."""
    rates = sampled_tables(tables, stream, sampling)
    conditions = []
    for table in (t for t in tables if t.number in rates):
        for i in (i for i, feed in enumerate(table.feeds) if feed.stream == stream):
            conditions += [sampling.taken(g.shed) + ([g.where[i]] if g.where[i] else []) for g in table.guards]
    return [taken(max(rates.values())), *_any_of(conditions)]


def narrowed_tables(tables: Sequence[Table], stream: str, sampling: Sampling) -> dict[int, list[str]]:
    """The tables of a stream all of whose queries leave places out, with these queries, if all tables are such."""
    queries = {t.number: [guard.shed for guard in t.guards] for t in tables if t.reads(stream)}
    return queries if all(q in sampling.dropped for names in queries.values() for q in names) else {}


def _branches(
    df: DataFrame,
    samples: Mapping[int, DataFrame],
    watch: Watch,
    tables: Sequence[Table],
    late: Mapping[str, Number],
    sampling: Sampling,
) -> list[DataFrame]:
    rates = sampled_tables(tables, watch.stream, sampling)
    fed_whole = [t for t in tables if t.number not in samples.keys() | rates.keys()]
    # Where the rest is known, what is not left out is counted: what the largest sample lacks, the others lack, too.
    most = [t for t in tables if rates.get(t.number) == max(rates.values())][:1] if rates and watch.known else []
    carrier = _carrier(most or fed_whole, watch.stream) if watch.figures else None
    branches = []
    for table in tables:
        source = samples.get(table.number, df)
        for i, feed in enumerate(table.feeds):
            if feed.stream == watch.stream:
                branches.append(_reduced(source, table, i, late, watch, (table.number, i) == carrier, sampling))
    if carrier is None and watch.figures:
        seen = samples[most[0].number] if most else df
        found = _figure_sql(seen, watch)
        figures = listed({Name(figure(watch.stream, name)): found[name] for name in watch.looked_for})
        branches.append(queried(seen, f"SELECT {figures} FROM {THESE}"))
    if watch.by is not None and watch.figures:
        branches.append(_by_group(df, watch))
    return branches


def observation(
    watches: Sequence[Watch], axes: Sequence[Sequence[int]], sums: Mapping[str, tuple[int, str]] | None = None
) -> Column:
    """What to observe of ingested rows: the figures of each stream, how many panes there are, and where on each axis.

    An axis is given by the numbers of the tables with panes on it. `sums` are columns of tables to be added up.
    """
    looked_for = {figure(w.stream, name): merge for w in watches if w.figures for name, merge in w.looked_for.items()}
    looked_for |= {figure(w.stream, RANKED): "max" for w in watches if w.ranks_all}
    figures = [f"{merge}({Name(column)}) AS {Name(column)}" for column, merge in looked_for.items()]
    for i, tables in enumerate(axes):
        at = f"CASE WHEN {TABLE} IN ({', '.join(map(str, tables))}) THEN {_AT} END" if len(axes) > 1 else _AT
        figures += [f"min({at}) AS first_{i}", f"max({at}) AS last_{i}"]
    if axes:
        figures.append(f"count({PANE}) AS panes")
    for name, (table, column) in (sums or {}).items():
        # Sums over all groups and windows may be larger than any of theirs.
        figures.append(f"sum(CASE WHEN {TABLE} = {table} THEN CAST({column} AS DOUBLE) END) AS {Name(name)}")
    return F.expr(f"struct({', '.join(figures)})").alias(FIGURES_OBSERVED)


def figure(stream: str, name: str) -> str:
    """What the column that holds a figure of a stream is called."""
    return f"{_FIGURE}{name}_{stream}"


def kept_figure(query: str) -> str:
    """The name of the figure that says how many tuples of a stream are not left out for a query."""
    # With how long it is: else this of a query a_b and a stream c would be that of a and b_c.
    return f"kept{len(query)}_{query}"


def kept(tables: Sequence[Table], stream: str, sampling: Sampling) -> dict[str, str]:
    """By query that tuples of a stream are left out for, on which condition one is not, as SQL."""
    found: dict[str, list[list[str]]] = {}
    for table in tables:
        for i in (i for i, feed in enumerate(table.feeds) if feed.stream == stream):
            for member in (m for m in table.members if sampling.leaves_out(m.guard.shed)):
                found.setdefault(member.guard.shed, []).append(_taken(table, i, member, sampling))
    return {query: " AND ".join(_any_of(conditions)) for query, conditions in found.items()}


def kept_columns(columns: Sequence[str]) -> list[str]:
    """The columns of the ingested rows that are kept: those of partials and of how far groups got."""
    return [c for c in columns if c != _AT and not c.startswith(_FIGURE)]


def partial_rows(rows: DataFrame, columns: Sequence[str]) -> DataFrame | None:
    """What is kept of the ingested rows in these columns, if there are any."""
    if not columns:
        return None
    kept = f"{PANE} IS NOT NULL OR {TABLE} = {NO_TABLE}" if PANE in columns else f"{TABLE} IS NOT NULL"
    return queried(rows, f"SELECT {', '.join(str(Name(column)) for column in columns)} FROM {THESE} WHERE {kept}")


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


def _reduced(
    df: DataFrame,
    table: Table,
    i: int,
    late: Mapping[str, Number],
    watch: Watch,
    carries: bool,
    sampling: Sampling,
) -> DataFrame:
    """The partial rows that the tuples of a feed make, with the figures of the stream where they are carried along."""
    feed = table.feeds[i]
    conditions: dict[Guard, list[str]] = {}
    for m in table.members:
        met = _conditions(m.guard.where[i], feed.place, late.get(m.stage.name))
        conditions[m.guard] = _taken(table, i, m, sampling) + met
    weights = {guard.shed: sampling.weight(guard.shed) for guard in conditions}
    source = THESE
    if any(weight is not None for weight in weights.values()):
        # Before all else: nothing of a tuple that is not taken need be decoded.
        highest = sampled_tables([table], watch.stream, sampling).values()
        source, conditions = _with_conditions(conditions, [taken(rate) for rate in highest])
    counts = _any_of(conditions.values())
    if (good := watch.is_good(df)) is not None:
        counts.append(good)
    if (held := table.held(feed.place)) is not None:
        counts.append(held)
    keys = dict(zip(table.keys, feed.keys, strict=True))
    pane = table.cut.key_sql(feed.place)
    where = "true"
    if not carries:
        where = " AND ".join(dict.fromkeys([*counts, f"({feed.place}) IS NOT NULL"]))
    elif counts:
        # The tuples that no query counts are looked at as well: they are one group without a pane.
        counted = " AND ".join(counts)
        keys = {name: f"CASE WHEN {counted} THEN {sql} END" for name, sql in keys.items()}
        pane = f"CASE WHEN {counted} THEN {pane} END"
    placed, tuples = {**keys, _KEY: pane}, f"{source} WHERE {where}"
    if table.eager is not None:
        # A row for each window, a step earlier than the grouping: under names that no column of the stream has. By the
        # numbers of windows, as Spark makes no sequence of what is not whole.
        first, last = table.eager.holding_sql(feed.place)
        window = f"explode(sequence({first}, {last}))"
        before = {own(f"group {name}"): window if name == _KEY else sql for name, sql in placed.items()}
        tuples = f"(SELECT *, {listed(before)} FROM {tuples})"
        placed = dict(zip(placed, map(str, before), strict=True))
    group = listed({Name(name): sql for name, sql in placed.items()})
    if table.state is not None:
        return _states(df, table, i, group, tuples)
    # A table of values has the condition that there is one, and its columns have not.
    apart, columns = len(conditions) > 1, {}
    for c in table.columns:
        sql = c.sql(i, conditions[c.guard] if apart else (), weights.get(c.guard.shed))
        columns[c.name] = f"CAST({sql} AS {ddl(c.type)})"
    if carries:
        figures = _figure_sql(df, watch)
        columns |= {figure(watch.stream, name): figures[name] for name in watch.looked_for}
    aggregates = "".join(f", {sql} AS {Name(name)}" for name, sql in columns.items())
    by = _ordinals(len(keys) + 1) + (f", {TAKEN_AT}" if weights.keys() & sampling.weighed else "")
    reduced = f"SELECT {group}{aggregates} FROM {tuples} GROUP BY {by}"
    return queried(
        df, f"SELECT {', '.join([*_placed(table), *(str(Name(c)) for c in (*keys, *columns))])} FROM ({reduced})"
    )


def _taken(table: Table, i: int, member: Member, sampling: Sampling) -> list[str]:
    """The conditions on which a tuple of a feed is not left out for a query."""
    feed, query = table.feeds[i], member.guard.shed
    # As the groups of the table have them: a hash is that of a type.
    keys = [f"CAST({feed.keys[k]} AS {ddl(table.key_types[k])})" for k in map(table.keys.index, member.keys)]
    return [*sampling.taken(query), *sampling.kept(query, feed.place, keys)]


def _with_conditions(conditions: Mapping[Guard, list[str]], first: Sequence[str]) -> tuple[str, dict[Guard, list[str]]]:
    """The tuples that meet the first conditions, with what else they meet as columns, and these as conditions.

    Each of them is in many aggregates, all of which Spark would have to look through.
    """
    met = {guard: own(f"met {i}") for i, guard in enumerate(conditions)}
    columns = listed({name: _all_of(conditions[guard]) for guard, name in met.items()})
    source = f"(SELECT *, {columns} FROM {THESE}{f' WHERE {_all_of(first)}' if first else ''})"
    return source, {guard: [str(name)] for guard, name in met.items()}


def _all_of(conditions: Sequence[str]) -> str:
    return " AND ".join(f"({c})" for c in conditions) or "true"


def _placed(table: Table) -> list[str]:
    """What every partial row begins with: its table and its pane, and where that starts."""
    number, start = table.cut.number_sql(_KEY), table.cut.at_sql(_KEY)
    if table.eager is not None:
        number, start = _KEY, table.cut.start_sql(_KEY)
    return [f"{table.number} AS {TABLE}", f"{number} AS {PANE}", f"CAST({start} AS DOUBLE) AS {_AT}"]


def _ordinals(count: int) -> str:
    """The first columns of a SELECT: their names may be those of a stream's columns."""
    return ", ".join(str(i + 1) for i in range(count))


def _any_of(conditions: Iterable[Sequence[str]]) -> list[str]:
    """What a tuple has to meet to be counted by any query: nothing if one of them counts all."""
    every = [" AND ".join(f"({c})" for c in met) for met in conditions]
    return [] if "" in every else ["(" + " OR ".join(f"({c})" for c in dict.fromkeys(every)) + ")"]


def _conditions(where: str, place: str, late_before: Number | None) -> list[str]:
    return ([where] if where else []) + ([f"{place} >= {literal(late_before)}"] if late_before is not None else [])


def _states(df: DataFrame, table: Table, i: int, group: str, tuples: str) -> DataFrame:
    """The states of a user-defined aggregate over the tuples of a feed."""
    assert table.state is not None
    call = over_stream(table.state, table.members[0].stage.feeds[i])
    by = _ordinals(len(table.keys) + 1)
    collected = queried(df, f"SELECT {group}, {user.collected(call)} AS _hg_tuples FROM {tuples} GROUP BY {by}")
    state = user.state(call.function, "_hg_tuples", len(call.arguments)).alias(STATE)
    return collected.select(*table.keys, _KEY, state).selectExpr(*_placed(table), *map(quoted, table.keys), STATE)


def _by_group(df: DataFrame, watch: Watch) -> DataFrame:
    """How far each group of a stream got, as rows of a table of their own."""
    assert watch.by is not None
    sound = df.where(f"{MALFORMED} IS NULL") if watch.marked else df
    figures = _figure_sql(df, watch)
    columns = [
        f"CAST({quoted(watch.by)} AS STRING) AS {GROUP}",
        *(f"{figures[name]} AS {GROUP}_{name}" for name in GROUP_FIGURES),
        *([f"{watch.at_ranks(df)} AS {GROUP}_{RANKED}"] if watch.ranked else []),
        f"{NO_TABLE} AS {TABLE}",
        f"'{watch.stream}' AS {GROUP}_stream",
    ]
    return queried(sound, f"SELECT {', '.join(columns)} FROM {THESE} GROUP BY 1")


def _figure_sql(df: DataFrame, watch: Watch) -> dict[str, str]:
    place, sound = watch.place(df), f"NOT ({watch.is_bad(df)})"
    marked = quoted(watch.punctuated_by) if watch.punctuated_by else "false"
    return {
        "rows": "count(*)",
        "lowest": f"min({place})",
        "highest": f"max({place})",
        "punctuated": f"max({place}) FILTER (WHERE {marked})",
        "numbered": f"count({ROW_NUM})" if watch.numbered else "0L",
        "bad": f"count(*) - count({place})" if watch.attribute else f"count_if({watch.is_bad(df)})",
        **{kept_figure(query): f"count_if({sound} AND {condition})" for query, condition in watch.kept.items()},
    }
