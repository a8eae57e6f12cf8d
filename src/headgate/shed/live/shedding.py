"""Shedding in a flow: what of each batch is left out, decided before it is read, and what became of it.

What the policies of queries fix holds always. With a promise about overload, the cost model says before each batch how
long it would take, the controller how long it may take, and planners by policy what to leave out for it. What is
learned for that is part of the manifest (a restart forgets only which plan a join would rather stay with), and the
decision itself is written down before the batch: one that is run again leaves out the same.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.plan.logical.nodes import ROW_NUM
from headgate.progress.closing import Closing
from headgate.protocol.decision import Drops
from headgate.shed.controller import Controller, Overload
from headgate.shed.estimate.placement import place
from headgate.shed.estimate.plan import Budget, EstimatePlan, estimate_plan
from headgate.shed.estimate.sql import Sampling, plain_calls
from headgate.shed.fate import Fate
from headgate.shed.join.plan import JoinPlan, PairSample
from headgate.shed.learn.costs import Coefficients, CostModel
from headgate.shed.learn.statistics import Arrived, Passed, Statistics, Summed
from headgate.shed.live.joins import JoinShedding
from headgate.shed.live.ledgers import Spans, Subsets
from headgate.shed.live.spans import Sampled
from headgate.shed.live.upkeep import Rhythm
from headgate.shed.live.workload import (
    PRIOR,
    READ,
    Load,
    Shed,
    Workload,
    join_prices,
    with_joins,
)
from headgate.shed.policy import Estimate
from headgate.shed.subset.plan import Step, SubsetQuery, Tree
from headgate.shed.subset.plan import plan as subset_plan

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.progress import Punctuation
    from headgate.protocol.figures import Figures
    from headgate.protocol.manifest import Manifest
    from headgate.sharing.table import Member, Table
    from headgate.shed.join.work import Prices
    from headgate.shed.policy import Policy

_log = logging.getLogger(__name__)
#: How much of the last answers counts in what is known of errors.
_RECENT = 0.3
#: What a plan leaves free for statistics that are no longer true.
_SAFETY = 0.05
#: Where what may not be shed is too much already, samples get this part of the time.
_LEAST = 0.1
_EVENTS = 50
#: Clocks may stand still, and what is measured may be anything: no batch is taken to have come in less time than this,
#: nor to have more tuples, and no logarithm of an error to be larger.
_SHORTEST, _MOST_TUPLES, _MOST_SQUARED = 1e-6, 1e15, 600.0
#: The rate that is tried while the model is calibrated, by batches that leave this part of the target free.
_TRIED, _FREE = 0.1, 0.5
#: The rate that is tried of queries whose table is read apart from the others.
_APART = 0.9


class Shedding:
    """Decides what is left out, and follows what that does."""

    def __init__(
        self,
        levels: Sequence[Level],
        stages: Mapping[str, Stage],
        queries: Mapping[str, Continuous],
        policies: Mapping[str, Policy],
        overload: Overload | None,
        state: Mapping[str, Any],
    ) -> None:
        self._first, self._stages, self.policies, self.overload = levels[0], stages, policies, overload
        self.subsets = Subsets(queries, policies, state)
        self.joins = JoinShedding(queries, policies, state)
        estimated = {name: p for name, p in policies.items() if isinstance(p, Estimate)}
        self._estimated = {name: p for name, p in estimated.items() if name not in self.joins.estimated}
        self._streams = {name: query.streams for name, query in queries.items()}
        self._suspended: dict[str, str] = dict(state.get("suspended", {}))
        self.workload = Workload(levels[0], policies, self.joins.stages)
        self.statistics, self.costs = Statistics(), CostModel(PRIOR)
        self.controller = Controller(overload) if overload else None
        self._learns = overload is not None or "costs" in state
        if "costs" in state:
            self.statistics, self.costs = Statistics.restored(state["statistics"]), CostModel.restored(state["costs"])
            if overload and state["controller"]:
                self.controller = Controller.restored(overload, state["controller"])
        self._squared: dict[str, float] = dict(state.get("squared", {}))
        # A query may have been dropped since.
        known = {name: spans for name, spans in state.get("sampled", {}).items() if name in policies}
        self._sampled = {name: Sampled.restored(spans) for name, spans in known.items()}
        self._partials: float = state.get("partials", 0.0)
        self._rhythm = Rhythm(levels[0], state.get("rhythm", {}))
        self.missed: dict[str, list[float]] = dict(state.get("missed", {}))
        self.events: list[dict[str, Any]] = list(state.get("events", []))
        self.plan: EstimatePlan | None = None
        self.load: Load | None = None

    def state(self) -> dict[str, Any]:
        """What the next one needs to go on from here, as JSON has it."""
        sampled = {name: own.state() for name, own in self._sampled.items() if name in self.policies and own.spans}
        decided = self.subsets.state() | self.joins.state() | ({"sampled": sampled} if sampled else {})
        if not self._learns:
            return decided
        return {
            **decided,
            "suspended": self._suspended,
            "statistics": self.statistics.state(),
            "costs": self.costs.state(),
            "controller": self.controller.state() if self.controller else None,
            "squared": {name: value for name, value in self._squared.items() if name in self.policies},
            "partials": self._partials,
            "rhythm": self._rhythm.state(),
            "missed": {name: value for name, value in self.missed.items() if name in self.policies},
            "events": self.events,
        }

    # Before a batch

    def decide(
        self,
        manifest: Manifest,
        amounts: Mapping[str, float | None],
        spans: Spans,
        interval: float | None,
        told: Mapping[str, Punctuation],
        due: Mapping[bool, float],
    ) -> Drops:
        """What to leave out of a batch with so much of each stream, which came within so many seconds, if it is known.

        Where data was there before, each batch has to do with the target. The tuples are within `spans`, as it seems;
        streams are punctuated as far as has been `told`, and so many rows of state are `due`
        to be merged, by whether windows close.
        """
        fixed = {name: p.rate for name, p in self._estimated.items() if p.rate is not None}
        prices = join_prices(self.costs.coefficients)
        if self.controller is None or not amounts:
            self.subsets.decide(manifest, spans, {})
            return Drops(fixed, self.subsets.state(), self.joins.documents(self.joins.plans(None, prices)))
        passed = interval
        interval = self.controller.overload.target if interval is None else max(interval, _SHORTEST)
        load = Load(self._expected(amounts, interval), self._partials, self._rhythm.usual)
        joins = self.joins.plans(load.tuples, prices, warm=not self.costs.calibrated and manifest.batch % 2 == 0)
        # Whether to shed is a matter of what batches do on average; how much, of what this one will do.
        exact = self.predicted(load, Shed(fixed, joins=joins))
        if not self.costs.calibrated:
            # The first batches run in cold code, and would make a little more of them look like an overload.
            exact = min(exact, self.predicted(load, Shed(fixed, joins=joins), PRIOR))
        nothing = Load(dict.fromkeys(load.tuples, 0.0), load.partials, load.upkeep)
        decision = self.controller.decide(
            exact_seconds=exact,
            fixed_seconds=self.predicted(nothing, Shed(fixed)),
            interval=interval,
            calibrated=self.costs.calibrated,
        )
        event = decision.event.reason if decision.event else None
        if not decision.shed:
            self.plan, self._suspended = None, {}
            self.subsets.decide(manifest, spans, {})
            if self._warms(manifest.batch + 1):
                # As samples that take everything: what sampling costs is known, and its code warm, when it is needed.
                fixed = dict.fromkeys(self._estimated, 1.0) | fixed
            documents = self.joins.documents(joins, load.tuples)
            return Drops(fixed, self.subsets.state(), documents, predicted=exact, event=event)
        load = replace(load, upkeep=self._rhythm.expected(manifest, told, load.tuples, due, passed))
        budget = self._evened(load, decision.budget_seconds)
        left = self._left(load, joins, budget)
        joins = self.joins.plans(load.tuples, prices, self._join_budgets(load, joins, prices, left))
        needed = self._drop(manifest, spans, load, left, interval)
        least = Shed(dict.fromkeys(self._estimated, 0.0) | fixed, needed, joins)
        self.plan = self._plan(load, least, budget)
        rates = self._rates(self.plan)
        predicted = self.predicted(load, Shed(rates, needed, joins))
        documents = self.joins.documents(joins, load.tuples)
        return Drops(
            rates,
            self.subsets.state(),
            documents,
            needed,
            self._suspended,
            shedding=True,
            predicted=predicted,
            event=event,
        )

    def sampling(self, batch: int, rates: Mapping[str, float]) -> Sampling:
        """What tables take of a batch, at the rates that were decided."""
        warm = self._warms(batch)
        return Sampling(rates, batch, self.subsets.dropped(warm), self.subsets.pieces(warm))

    def _warms(self, batch: int) -> bool:
        """Whether a batch that sheds nothing runs in the form of one that does."""
        return self.controller is not None and not self.costs.calibrated and batch % 2 == 0

    def _evened(self, load: Load, budget: float) -> float:
        """The seconds that a batch may take which has more upkeep, or less, than usual, for that it costs on average.

        What is spared in most batches is there for those in which windows close, up to the capacity: their tuples would
        be sampled at much lower rates than others, and spoil every window that they are in.
        """
        assert self.controller is not None
        nothing = replace(load, tuples=dict.fromkeys(load.tuples, 0.0))
        usual = replace(nothing, upkeep=self._rhythm.usual)
        more = self.predicted(nothing, Shed()) - self.predicted(usual, Shed())
        # What is thought to be spared may be more than there is: the model has prices of its own for either.
        return min(max(budget + more, 0.0), self.controller.capacity)

    def _join_budgets(self, load: Load, joins: Mapping[str, JoinPlan], prices: Prices, left: float) -> dict[str, float]:
        """The seconds that each join has, where so much of all work that can be shed is left.

        Where what may not be shed is too much already, they still get a part of it: of work that is never done nothing
        can be learned, and it would seem too much for ever. Samples are never quite empty.
        """
        found = {}
        least_of_all = _LEAST * self.predicted(load, Shed(joins={**joins, **self.joins.gone()}))
        for name, least in self.joins.work(load.tuples, self.joins.gone()).items():
            (every,) = self.joins.work(load.tuples, {name: joins[name]}).values()
            more = left * (prices.seconds(every) - prices.seconds(least))
            at_least = 0.0 if isinstance(joins[name], PairSample) else least_of_all
            found[name] = prices.seconds(least) + max(more, at_least)
        return found

    def _left(self, load: Load, joins: Mapping[str, JoinPlan], budget: float) -> float:
        """Which part of the work that can be shed a budget has room for: all policies bear their part of the rest."""
        no_windows = dict.fromkeys(self.subsets.policies, 0.0)
        gone = Shed(dict.fromkeys(self._estimated, 0.0), no_windows, {**joins, **self.joins.gone()})
        must, everything = self.predicted(load, gone), self.predicted(load, Shed(joins=joins))
        return min(max((budget - must) / (everything - must), 0.0), 1.0) if everything > must else 1.0

    def _drop(self, manifest: Manifest, spans: Spans, load: Load, left: float, interval: float) -> dict[str, float]:
        """Decides which windows and groups to drop; gives the part of its tuples that each query needs then."""
        trees: list[Tree] = []
        groups: dict[str, float] = {}
        for stream in self.workload.streams:
            rate = load.tuples.get(stream, 0.0) / interval
            own = [n for n in self.subsets.policies if stream in self.workload.streams_of(n)]
            queries = tuple(
                self._subset_query(name, rate) for name in own if self.subsets.policies[name].by == "window"
            )
            alone = self.workload.readers(stream) <= {q.name for q in queries}
            reading = self.costs.coefficients.each.get(READ, 0.0) * rate if alone else 0.0
            trees += [Tree(queries, reading)] if queries else []
            groups |= {n: 1 - left for n in own if self.subsets.policies[n].by == "group"}
        capacity = left * sum(tree.shared + sum(q.load for q in tree.queries) for tree in trees)
        found = subset_plan(trees, capacity, self._suspended)
        self._suspended = {suspension.query: suspension.reason for suspension in found.suspended}
        fractions = {name: drop.fraction for drop in found.drops for name in drop.queries} | groups
        together = [drop.queries for drop in found.drops if len(drop.queries) > 1]
        running = [group for group in together if not set(group) & self._suspended.keys()]
        self.subsets.decide(manifest, spans, fractions, running, self._suspended)
        needed = {n: min(max(1 - fraction * self.subsets.saved(n), 0.0), 1.0) for n, fraction in fractions.items()}
        return needed | dict.fromkeys(self._suspended, 0.0)

    def _subset_query(self, name: str, rate: float) -> SubsetQuery:
        policy = self.subsets.policies[name]
        cost = self.workload.tuple_cost(name, self.statistics, self.costs.coefficients)
        first, *behind = self.subsets.windows[name]
        steps = (Step(first, cost), *(Step(window, 0.0) for window in behind))
        return SubsetQuery(name, steps, policy.gap, rate, weight=policy.weight)

    def _expected(self, amounts: Mapping[str, float | None], interval: float) -> dict[str, float]:
        """How many tuples of each stream a batch will bring: by how much there is to read, or else as it used to be."""
        tuples = {}
        for stream, amount in amounts.items():
            each, rate = self.statistics.selectivity(_by_amount(stream)), self.statistics.rate(stream)
            if amount is not None and each is not None:
                tuples[stream] = amount * each
            elif rate is not None:
                tuples[stream] = rate.a_batch if rate.a_second is None else rate.a_second * interval
        return {stream: min(max(expected, 0.0), _MOST_TUPLES) for stream, expected in tuples.items()}

    def predicted(self, load: Load, shed: Shed, costs: Coefficients | None = None) -> float:
        """The seconds that a batch with such a load will take."""
        amounts = self.workload.amounts(load, shed, self.statistics)
        work = with_joins(amounts, self.joins.work(load.tuples, shed.joins).values())
        return self.costs.predict(work) if costs is None else costs.seconds(work)

    def _plan(self, load: Load, shed: Shed, capacity: float) -> EstimatePlan:
        """The rates that keep a batch within a capacity; where none do, those that add little to what must be.

        Tables that need high rates may better be read apart from the sample that the others share: of the plans with
        the first few tables apart, it is the one of the least error.
        """
        constants, costs = self.constants(), self.costs.coefficients
        plans: list[tuple[EstimatePlan, float]] = []
        must = self.predicted(load, shed)
        for apart in self.workload.apart(constants):
            trees = self.workload.trees(load, shed, self.statistics, costs, constants, apart)
            held = place(trees, {q.name: q.fixed_rate or 0.0 for q in trees.queries}).load
            reading = costs.each.get(READ, 0.0) * self.workload.read_apart(load, apart)
            fixed = max(must - held, 0.0) + reading
            found = estimate_plan(trees, Budget(capacity, fixed, _SAFETY))
            if not plans and not found.met:
                least = estimate_plan(trees, Budget(fixed + held + _LEAST * capacity, fixed))
                return replace(least, met=False, why=found.why)
            taken = self.predicted(load, replace(shed, rates=self._rates(found)))
            if found.met and taken > capacity:
                # Which tables do share a sample goes by their rates, and may cost more than was thought.
                found = estimate_plan(trees, Budget(max(2 * capacity - taken, 0.0), fixed, _SAFETY))
                taken = self.predicted(load, replace(shed, rates=self._rates(found)))
            plans.append((found, taken))
        within = [plan for plan, taken in plans if plan.met and taken <= capacity]
        return min(within or [plans[0][0]], key=lambda plan: plan.errors)

    def _rates(self, plan: EstimatePlan) -> dict[str, float]:
        return self.workload.rates({name: outlook.rate for name, outlook in plan.queries.items()})

    def constants(self) -> dict[str, float]:
        """The constants of the queries' errors, as far as answers have told."""
        found = {}
        for name, policy in self._estimated.items():
            if name in self._squared:
                squared = min(max(self._squared[name], -_MOST_SQUARED), _MOST_SQUARED)
                bound = math.log(2 / (1 - policy.confidence)) / 2 * math.exp(squared)
                found[name] = min(math.sqrt(bound), 1.0)
        return found

    # After a batch

    def sums(self) -> dict[str, tuple[int, str]]:
        """What has to be added up of the partial rows of a batch: tables and columns, by name."""
        if self.overload is None:
            return {}
        found = {}
        for table, member in self.members():
            number = table.number
            if member.rows is not None:
                found[f"_hg_rows_{member.stage.name}"] = (number, member.rows)
            if member.estimates is not None:
                found[f"_hg_total_{member.stage.name}"] = (number, member.estimates.total)
                for call, (total, squares) in member.estimates.sums.items():
                    found[f"_hg_sum_{member.stage.name}_{call}"] = (number, total)
                    found[f"_hg_squares_{member.stage.name}_{call}"] = (number, squares)
        return found

    def members(self) -> list[tuple[Table, Member]]:
        """The queries of tables whose columns add up."""
        return [(t, m) for t in self._first.tables if not t.values and t.state is None for m in t.members]

    def sampled(self, figures: Figures, rates: Mapping[str, float], before: Manifest, after: Manifest) -> None:
        """Takes note of the rates that the tuples of a batch were taken at, and of where they were."""
        for query, rate in rates.items():
            stage = self._stages[query]
            for stream in stage.streams if stage.aggregate is not None else ():
                if stage.window.attr == ROW_NUM:
                    ends: Sequence[Any] = (
                        before.progress.numbered.get(stream, 0),
                        after.progress.numbered.get(stream, 0) - 1,
                    )
                else:
                    ends = [figures.of(stream).lowest, figures.of(stream).highest]
                # While the model is calibrated, windows of samples that took everything are answered as others are.
                told = rate < 1 or (self.controller is not None and not self.costs.calibrated)
                if told and ends[0] is not None and ends[0] <= ends[1]:
                    self._sampled[query] = self._sampled.get(query, Sampled()).then(ends[0], ends[1], rate)

    def pairs_sampled(self, figures: Figures, plans: Mapping[str, JoinPlan]) -> None:
        """Takes note of the rates that the pairs of a batch were taken at, and of where their tuples can be.

        A pair has the rate of the batch of its earlier tuple, if that was lower, and so it is within reach of either.
        """
        for query, join in self.joins.estimated.items():
            plan, own = plans[join], [figures.of(s) for s in self._streams[query]]
            lows, highs = [f.lowest for f in own], [f.highest for f in own]
            low, high = (
                min((p for p in lows if p is not None), default=None),
                max((p for p in highs if p is not None), default=None),
            )
            if isinstance(plan, PairSample) and plan.rate < 1 and low is not None and high is not None:
                reach = math.ceil(self.joins.reach(query))
                self._sampled[query] = self._sampled.get(query, Sampled()).then(low - reach, high + reach, plan.rate)

    def fates(self, level: Level, closings: Mapping[str, Closing]) -> dict[str, Fate]:
        """What has become of the windows that close."""
        found = {}
        for name, closing in closings.items():
            if (fate := self.subsets.fates(level.stages[name], closing)) is not None:
                found[name] = fate
            elif name in self._sampled:
                tops = self._sampled[name].tops(level.stages[name].window, closing.first, closing.last)
                lost = frozenset(k for k, top in tops.items() if top == math.inf)
                found[name] = Fate({k: top for k, top in tops.items() if k not in lost}, lost or None)
        return found

    def lost(self, decided: Drops, before: Manifest, after: Manifest) -> dict[str, int]:
        """How many windows are not answered, by query: those that a batch dropped, and closed ones without a sample."""
        found = {}
        for name, gone in decided.subsets.get("gone", {}).items():
            found[name] = gone["count"] - before.shedding.get("gone", {}).get(name, {"count": 0})["count"]
        for name, own in self._sampled.items():
            window = self._stages[name].window
            if name in after.windows.closed and not window.growing:
                tops = own.tops(window, before.windows.closed.get(name, -(1 << 62)) + 1, after.windows.closed[name])
                if lost := sum(top == math.inf for top in tops.values()):
                    found[name] = lost
        return found

    def closed(self, manifest: Manifest) -> None:
        """Forgets what only windows needed that have been closed."""
        self.subsets.forget(manifest)
        for name, own in self._sampled.items():
            window = self._stages[name].window if self._stages[name].aggregate is not None else None
            if name in manifest.windows.closed and window is not None and not window.growing:
                self._sampled[name] = own.forget(window.marks(manifest.windows.closed[name] + 1))

    def observe(
        self,
        decided: Drops,
        amounts: Mapping[str, float | None],
        figures: Figures,
        outlooks: Mapping[str, Any],
        manifests: tuple[Manifest, Manifest],
        answers: int,
        seconds: float,
        interval: float | None,
    ) -> None:
        """Takes in what a batch did, with what it made of the manifest, and how long it took."""
        if self.controller is None:
            return
        seconds, interval = max(seconds, _SHORTEST), None if interval is None else max(interval, _SHORTEST)
        rates: Mapping[str, float] = decided.rates
        tuples = {stream: figures.of(stream).rows for stream in amounts}
        self._learn(tuples, amounts, figures, rates, interval)
        self._judge(outlooks)
        self._partials = float(figures.panes)
        upkeep = self._rhythm.observe(*manifests, tuples, answers, interval)
        load = Load({s: float(n) for s, n in tuples.items()}, self._partials, upkeep)
        did = self.workload.amounts(load, Shed(rates, decided.needed), self.statistics)
        did = with_joins(did, self.joins.did.values())
        self.controller.observe(predicted=self.costs.predict(did), observed=seconds)
        self.costs.observe(did, seconds)
        self.load = load

    def to_try(self, batch: int, seconds: float) -> dict[str, float]:
        """The rates at which a batch is ingested once more, to know what that costs, if it took so long without it.

        Where all tuples are always taken, what it costs to read them cannot be told from what it costs to use them.
        In turns, all tables share a sample, and one reads apart: both will be warm when they are needed.
        """
        if self.controller is None or self.costs.calibrated or self.load is None:
            return {}
        if seconds >= (1 - _FREE) * self.controller.overload.target:
            return {}
        rates = {name: _TRIED for name, policy in self._estimated.items() if policy.rate is None}
        first = self.workload.apart(self.constants())[1:2] if batch % 4 < 2 else []
        apart = {query for tables in first for query in self.workload.queries(tables)}
        return {name: _APART if name in apart else rate for name, rate in rates.items()}

    def tried(self, rates: Mapping[str, float], seconds: float) -> None:
        """Takes in how long the last batch would have taken at these rates."""
        assert self.load is not None
        self.costs.observe(self.workload.amounts(self.load, Shed(rates), self.statistics), seconds)

    def _learn(
        self,
        tuples: Mapping[str, int],
        amounts: Mapping[str, float | None],
        figures: Figures,
        rates: Mapping[str, float],
        interval: float | None,
    ) -> None:
        segments = {
            _by_amount(stream): Passed(amount, tuples[stream], tuples[stream])
            for stream, amount in amounts.items()
            if amount is not None and amount >= 1  # Bytes or tuples: by less, nothing can be told.
        }
        values: dict[str, dict[str | None, Summed]] = {}
        for table, member in self.members():
            name, query = member.stage.name, member.stage.query
            # Where panes are windows, a tuple is counted in each that holds it.
            copies = table.eager.per_window / table.eager.per_slide if table.eager is not None else 1.0
            seen, total = (_count(figures.sums.get(f"_hg_{w}_{name}", 0.0) / copies) for w in ("rows", "total"))
            passed = total if member.estimates is not None else seen
            came = sum(tuples.get(stream, 0) for stream in member.stage.streams)
            if rates.get(query, 1.0) > 0:
                segments[query] = Passed(came, passed, round(came * rates.get(query, 1.0)))
            for call in member.estimates.sums if member.estimates is not None else ():
                sums = [figures.sums.get(f"_hg_{w}_{name}_{call}", 0.0) / copies for w in ("sum", "squares")]
                if seen:
                    values[shown(member, call)] = {None: Summed(total, sums[0], sums[1], seen)}
        streams = {stream: Arrived(n, n) for stream, n in tuples.items()}
        self.statistics.observe(seconds=interval, streams=streams, segments=segments, aggregates=values)

    def _judge(self, outlooks: Mapping[str, Any]) -> None:
        """Takes in what the answers of a batch say about errors, and about groups that were missed."""
        for query, (squared, tuples, missed) in outlooks.items():
            if squared is not None and math.isfinite(squared):  # Values may be infinite, or not be numbers.
                known = self._squared.get(query, squared)
                self._squared[query] = known + _RECENT * (squared - known)
            self.missed[query] = [_finite(missed), _finite(tuples)]

    def happened(self, batch: int, decided: Drops) -> None:
        """Logs a change of plan."""
        if decided.event:
            self.events = [
                *self.events[1 - _EVENTS :],
                {"batch": batch, "shed": decided.shedding, "why": decided.event},
            ]
            _log.warning("batch %d: %s: %s", batch, "sheds" if decided.shedding else "exact again", decided.event)


def _finite(number: float | None) -> float:
    return float(number) if number is not None and math.isfinite(number) else 0.0


def _count(number: float) -> int:
    """A number of tuples, whatever was measured."""
    return round(min(max(_finite(number), 0.0), _MOST_TUPLES))


def shown(member: Member, call: str) -> str:
    """What an aggregate is called: as the column that shows it."""
    assert member.stage.above is not None
    return f"{member.stage.query}.{plain_calls(member.stage.above).get(call, call)}"


def _by_amount(stream: str) -> str:
    return f"{stream} by amount"
