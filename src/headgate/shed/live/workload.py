"""The work of a batch: in amounts for the cost model, and as a tree for the planner of samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

from headgate.shed.estimate.tree import Kind, Leaf, Segment, Stream, Trees
from headgate.shed.join.work import Prices, Work
from headgate.shed.learn.costs import Coefficients
from headgate.shed.live.upkeep import Upkeep
from headgate.shed.losses import Tuples

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.sharing.table import Member, Table
    from headgate.shed.join.plan import JoinPlan
    from headgate.shed.learn.statistics import Statistics
    from headgate.shed.losses import Loss
    from headgate.shed.policy import Policy

READ, REDUCED, VALUES, KEPT = "tuples read", "tuples reduced", "values reduced", "tuples kept"
#: Values of tuples that are sampled cost more: each tuple has a coin, and there are moments for limits.
WEIGHED = "values weighed"
#: A sample that tables share is held in memory, which costs more than to read it.
SAMPLED = "tuples sampled"
PARTIALS, CLOSINGS, ANSWERS = "partial rows", "batches that close windows", "answers"
MERGES, MERGED = "batches that merge state", "rows of state merged"
LOOKING, HELD, PAIRS, OFFERED = "tuples matched", "kept tuples read", "pairs", "tuples offered to joins"
#: What these cost in relation to one another before any batch has told: measured with packets, in seconds.
PRIOR = Coefficients(
    0.4,
    {READ: 4e-8, REDUCED: 3e-8, VALUES: 3e-9, WEIGHED: 4e-9, SAMPLED: 5.5e-7, KEPT: 1e-6, PARTIALS: 2e-6}
    | {CLOSINGS: 0.5, ANSWERS: 1e-5, MERGES: 0.5, MERGED: 2e-6}
    | {LOOKING: 1e-6, HELD: 4e-7, PAIRS: 6e-7, OFFERED: 3e-7},
)
#: The amounts and the prices of joins that are shed, in their order.
_OF_JOINS = (LOOKING, KEPT, HELD, PAIRS, OFFERED)
#: To hold a tuple in memory takes as long as to read so many.
_HOLDING = PRIOR.each[SAMPLED] / PRIOR.each[READ]
#: Instead of the number of a table: the tuples themselves are the answer.
SET = -1
#: No more than this part of the tuples is held in memory.
_MOST = 0.5
#: So many tables at most are considered for reading a stream apart from the others.
_APART = 8


@dataclass(frozen=True)
class BatchLoad:
    """What a batch brings: the tuples of streams, and the work that shedding does not spare."""

    tuples: Mapping[str, float]
    partials: float = 0.0
    upkeep: Upkeep = field(default_factory=Upkeep)


@dataclass(frozen=True)
class Taken:
    """The part of its tuples that each query takes, and the queries whose tuples are sampled."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """The rates of sampled queries."""
    needed: Mapping[str, float] = field(default_factory=dict)
    """The part of the tuples that the windows and groups need that are not dropped."""
    joins: Mapping[str, JoinPlan] = field(default_factory=dict)
    """What is left out of joins that are shed."""
    chosen: Mapping[str, float] = field(default_factory=dict)
    """The shares that policies keep themselves: no plan changes these."""

    def of(self, query: str) -> float:
        """The part of its tuples that a query takes."""
        return self.rates.get(query, 1.0) * self.needed.get(query, 1.0)


@dataclass(frozen=True)
class Knowledge:
    """What batches have told: about tuples, about what work costs, and about the errors of samples."""

    statistics: Statistics
    costs: Coefficients
    constants: Mapping[str, float]
    """By query, the constant of its error."""

    def passing(self, query: str) -> float:
        """The part of the tuples that a query counts; all of them as long as nothing is known."""
        return passing(query, self.statistics)


class Workload:
    """The work of a flow's first level, where tuples come in. What comes after is little, and counted as answers."""

    def __init__(
        self,
        level: Level,
        policies: Mapping[str, Policy],
        losses: Mapping[str, Loss],
        joins: Collection[str] = (),
    ) -> None:
        self._tables, self._policies = level.tables, policies
        self._sampling = frozenset(name for name, loss in losses.items() if isinstance(loss, Tuples))
        # What joins that are shed do is known better, and added to the rest.
        joining = [stage for name, stage in level.joining.items() if name not in joins]
        keeping = (*joining, *level.holding.values(), *level.passing_on.values())
        self._kept = [(stage.query, stream) for stage in keeping for stream in stage.streams]
        self.sets = {s.query: s.streams for s in level.passing_on.values() if s.query in self._sampling}
        """The queries whose answers are tuples of streams that are sampled."""
        read = [f.stream for t in level.tables for f in t.feeds]
        self.streams = list(dict.fromkeys([*read, *(s for own in self.sets.values() for s in own)]))

    def amounts(self, load: BatchLoad, taken: Taken, statistics: Statistics) -> dict[str, float]:
        """What a batch does with so much, where so much is taken."""
        found = {READ: 0.0, SAMPLED: 0.0, REDUCED: 0.0, VALUES: 0.0, WEIGHED: 0.0}
        found[KEPT] = sum(load.tuples.get(stream, 0.0) * taken.of(query) for query, stream in self._kept)
        for stream, tuples in load.tuples.items():
            own = [t for t in self._tables if t.reads(stream)]
            sampled = self._sampled(own, taken)
            shared = sharing(sampled)
            reads = len(own) - len(shared) + bool(shared)
            found[READ] += tuples * reads * self._read_at_all(own, taken)
            found[SAMPLED] += tuples * max((sampled[t] for t in shared), default=0.0)
            for table in own:
                shares = {m.stage.query: taken.of(m.stage.query) for m in table.members}
                found[REDUCED] += tuples * self._reduced(shares, statistics)
                for name, share in shares.items():
                    values = share * passing(name, statistics) * _columns(table, self._sample(table, name))
                    found[WEIGHED if name in taken.rates else VALUES] += tuples * values
        upkeep = load.upkeep
        found |= {PARTIALS: load.partials, CLOSINGS: upkeep.closings, ANSWERS: upkeep.answers}
        return found | {MERGES: upkeep.merges, MERGED: upkeep.merged}

    def _sampled(self, tables: Sequence[Table], taken: Taken) -> dict[int, float]:
        """The tables all of whose queries are sampled, with the highest of their rates."""
        queries = {t.number: [m.stage.query for m in t.members] for t in tables}
        return {n: max(taken.rates[q] for q in own) for n, own in queries.items() if all(q in taken.rates for q in own)}

    def _read_at_all(self, tables: Sequence[Table], taken: Taken) -> float:
        """The part of the tuples that is read: what no query needs is not, where the reader can skip it."""
        queries = {m.stage.query for t in tables for m in t.members}
        return max(taken.needed[q] for q in queries) if queries and queries <= taken.needed.keys() else 1.0

    def tuple_cost(self, query: str, statistics: Statistics, costs: Coefficients) -> float:
        """The seconds that a tuple of its streams costs a query, as far as it is not shared with others."""
        found = 0.0
        for table in self._tables:
            for member in table.members:
                if member.stage.query == query:
                    each = costs.each.get(REDUCED, 0.0) / len(table.members)
                    each += costs.each.get(VALUES, 0.0) * _columns(table, member)
                    found += each * passing(query, statistics)
        return found

    def streams_of(self, query: str) -> set[str]:
        """The streams that a query reads into tables."""
        tables = [t for t in self._tables if any(m.stage.query == query for m in t.members)]
        return {f.stream for t in tables for f in t.feeds}

    def queries(self, tables: Collection[int]) -> set[str]:
        """The queries of some tables."""
        return {m.stage.query for t in self._tables if t.number in tables for m in t.members}

    def shared(self, stream: str) -> dict[int, list[str]]:
        """The queries that share each table over a stream."""
        own = [t for t in self._tables if t.reads(stream)]
        return {t.number: [m.stage.query for m in t.members] for t in own}

    def readers(self, stream: str) -> set[str]:
        """The queries that read a stream into tables."""
        return {query for queries in self.shared(stream).values() for query in queries}

    def _reduced(self, shares: Mapping[str, float], statistics: Statistics) -> float:
        """The part of the tuples that is reduced at all: no more than all queries of the table take together."""
        every = sum(share * passing(name, statistics) for name, share in shares.items())
        return min(every, max(shares.values()))

    def _sample(self, table: Table, query: str) -> Member:
        return next(m for m in table.members if m.stage.query == query)

    def trees(self, load: BatchLoad, taken: Taken, known: Knowledge, apart: Collection[int] = ()) -> Trees:
        """The tree of each stream: a segment for each table, and below it the queries that share it.

        Tables that share a sample are below a segment that stands for the work of making it: all but those `apart`.
        What queries take that are not sampled is fixed by `taken`.
        """
        streams = []
        for stream in self.streams:
            whole: list[Segment] = []
            sampled: list[Segment] = []
            for table in (t for t in self._tables if t.reads(stream)):
                leaves = [self._leaf(table, m, stream, taken, known) for m in table.members]
                passes = min(1.0, sum(known.passing(m.stage.query) for m in table.members))
                cost = known.costs.each.get(REDUCED, 0.0) * passes
                made = Segment(segment(table.number, stream), cost, 1.0, tuple(leaves))
                (sampled if self._estimated(table) and table.number not in apart else whole).append(made)
            if len(sampled) > 1:
                sampled = [Segment(sample(stream), known.costs.each.get(SAMPLED, 0.0), 1.0, tuple(sampled))]
            sets = [self._set(query, stream, taken, known) for query, own in self.sets.items() if stream in own]
            streams.append(Stream(stream, load.tuples.get(stream, 0.0), (*whole, *sampled, *sets)))
        return Trees(tuple(streams))

    def apart(self, constants: Mapping[str, float]) -> list[frozenset[int]]:
        """The sets of tables that may be read apart from what others share: those of the worst errors, or all."""

        def worst(table: Table) -> float:
            return max(constants.get(m.stage.query, 1.0) for m in table.members)

        tables = sorted(filter(self._estimated, self._tables), key=worst, reverse=True)
        numbers = [table.number for table in tables]
        return [
            frozenset(numbers[:many]) for many in dict.fromkeys([*range(_APART), len(numbers)]) if many <= len(numbers)
        ]

    def read_apart(self, load: BatchLoad, apart: frozenset[int]) -> float:
        """How many more tuples are read where these tables do not share the samples of the others."""
        found = 0.0
        for stream, tuples in load.tuples.items():
            own = [t for t in self._tables if t.reads(stream)]
            sampled = [t.number for t in own if self._estimated(t)]
            if alone := len(apart & set(sampled)):
                found += tuples * (alone - (alone == len(sampled)))
        return found

    def _estimated(self, table: Table) -> bool:
        return all(m.stage.query in self._sampling for m in table.members)

    def _leaf(self, table: Table, member: Member, stream: str, taken: Taken, known: Knowledge) -> Leaf:
        query, policy = member.stage.query, self._policies[member.stage.query]
        name, each = leaf(query, table.number, stream), known.costs.each
        values = known.passing(query) * _columns(table, member)
        if query not in self._sampling:
            return Leaf(name, Kind.EXACT, each.get(VALUES, 0.0) * values * taken.needed.get(query, 1.0))
        return Leaf(
            name,
            cost=each.get(WEIGHED, 0.0) * values,
            constant=known.constants.get(query, 1.0),
            weight=policy.weight,
            priority=policy.priority,
            rate=taken.chosen.get(query),
        )

    def _set(self, query: str, stream: str, taken: Taken, known: Knowledge) -> Leaf:
        policy, cost = self._policies[query], known.costs.each.get(KEPT, 0.0)
        rate = taken.chosen.get(query)
        return Leaf(leaf(query, SET, stream), Kind.SET, cost, 1.0, policy.weight, policy.priority, rate)

    def rates(self, effective: Mapping[str, float]) -> dict[str, float]:
        """The rate of each query, from those of its leaves: it has one of each of its streams and tables."""
        found = {q: min(effective[leaf(q, SET, s)] for s in streams) for q, streams in self.sets.items()}
        for table in self._tables:
            for member in table.members:
                query = member.stage.query
                if query in self._sampling:
                    own = [effective[leaf(query, table.number, feed.stream)] for feed in table.feeds]
                    found[query] = min([found.get(query, math.inf), *own])
        return found


def passing(query: str, statistics: Statistics) -> float:
    """The part of the tuples that a query counts; all of them as long as nothing is known."""
    known = statistics.selectivity(query)
    return 1.0 if known is None else min(known, 1.0)


def sharing(rates: Mapping[int, float]) -> frozenset[int]:
    """Of tables that are sampled at these rates, those that share one sample in memory instead of reading their own.

    Sharing pays while the sample is small, as it is for tables of low rates. One of a high rate would make it large.

    >>> sorted(sharing({0: 0.02, 1: 0.9, 2: 0.01, 3: 0.05})), sorted(sharing({0: 0.9, 1: 0.8}))
    ([0, 2, 3], [])
    """
    order = sorted((table for table in rates if rates[table] <= _MOST), key=lambda table: rates[table])
    saved = {many: many - 1 - _HOLDING * rates[order[many - 1]] for many in range(2, len(order) + 1)}
    best = max(saved, key=lambda many: saved[many], default=0)
    return frozenset(order[:best]) if best and saved[best] > 0 else frozenset()


def join_prices(costs: Coefficients) -> Prices:
    """What the work of joins costs."""
    return Prices(*(costs.each.get(name, 0.0) for name in _OF_JOINS))


def with_joins(amounts: Mapping[str, float], joins: Iterable[Work]) -> dict[str, float]:
    """The amounts of a batch with what joins that are shed do."""
    more = dict(zip(_OF_JOINS, astuple(sum(joins, Work())), strict=True))
    return {**amounts, **{name: amounts.get(name, 0.0) + amount for name, amount in more.items()}}


def segment(table: int, stream: str) -> str:
    """What the work of a table over one stream is called in a tree."""
    return f"table {table} of {stream}"


def sample(stream: str) -> str:
    """What the work of making the sample is called that the tables of a stream share."""
    return f"sample of {stream}"


def leaf(query: str, table: int, stream: str) -> str:
    """What the part of a query over one stream and table is called in a tree."""
    return f"{query} in table {table} of {stream}" if table != SET else f"{query} of {stream}"


def _columns(table: Table, member: Member) -> int:
    return sum(column.guard == member.guard for column in table.columns)
