"""What to leave out of a batch: decided before it is read, by all policies together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headgate.protocol.decision import Drops
from headgate.shed.controller import Controller, Overload
from headgate.shed.join.plan import PairSample
from headgate.shed.live.ahead import Ahead
from headgate.shed.live.rates import LEAST, rates_of, sampled_within
from headgate.shed.live.workload import PRIOR, READ, BatchLoad, Taken
from headgate.shed.policy import Policy, Situation, left_out, share_kept
from headgate.shed.subset.plan import Step, SubsetQuery, Tree
from headgate.shed.subset.plan import plan as subset_plan

if TYPE_CHECKING:
    from headgate.protocol.manifest import Manifest
    from headgate.shed.estimate.plan import EstimatePlan
    from headgate.shed.join.plan import JoinPlan
    from headgate.shed.live.joins import JoinShedding
    from headgate.shed.live.learned import Learned
    from headgate.shed.live.ledgers import Subsets
    from headgate.shed.losses import Loss
    from headgate.shed.shape import QueryShape

#: Clocks may stand still: no batch is taken to have come in less time than this.
SHORTEST = 1e-6


@dataclass(frozen=True)
class Agreed:
    """What was agreed about a query: its policy, and what that leaves out of it."""

    shape: QueryShape
    policy: Policy
    loss: Loss


class Decider:
    """Asks the policies, the controller and the planners."""

    def __init__(
        self,
        agreed: Mapping[str, Agreed],
        overload: Overload | None,
        learned: Learned,
        subsets: Subsets,
        joins: JoinShedding,
        state: Mapping[str, Any],
    ) -> None:
        self._agreed, self._learned, self._subsets, self._joins = agreed, learned, subsets, joins
        self.controller = Controller(overload) if overload else None
        if overload and state.get("controller"):
            self.controller = Controller.restored(overload, state["controller"])
        self.suspended: dict[str, str] = dict(state.get("suspended", {}))
        """The queries whose gaps cannot be kept, and why."""
        self.chosen: dict[str, float] = dict(state.get("chosen", {}))
        """The shares that policies kept in the last batch, of those that said so themselves."""
        self.plan: EstimatePlan | None = None
        """The last plan of samples, while the flow sheds."""

    @property
    def warming(self) -> bool:
        """Whether the model is being calibrated: some batches run in the form of shed ones, and leave nothing out."""
        return self.controller is not None and not self._learned.costs.calibrated

    def warms(self, batch: int) -> bool:
        """Whether this batch is one of those."""
        return self.warming and batch % 2 == 0

    def decide(self, manifest: Manifest, ahead: Ahead) -> Drops:
        """Decide what to leave out of the next batch."""
        if self.controller is None or not ahead.amounts:
            return self._without_promise(manifest, ahead)
        controller, learned = self.controller, self._learned
        interval = controller.overload.target if ahead.interval is None else max(ahead.interval, SHORTEST)
        load = learned.expected(ahead.amounts, interval)
        chosen = self._ask(manifest, ahead, load)
        rates = self._rates(chosen)
        joins = self._joins.plans(load.tuples, learned.prices, warm=self.warming and manifest.batch % 2 == 0)
        exact = self._usual(load, Taken(rates, joins=joins))
        nothing = BatchLoad(dict.fromkeys(load.tuples, 0.0), load.partials, load.upkeep)
        decision = controller.decide(
            exact_seconds=exact,
            fixed_seconds=learned.predicted(nothing, Taken(rates)),
            interval=interval,
            calibrated=learned.costs.calibrated,
        )
        event = decision.event.reason if decision.event else None
        if decision.shed:
            # Whether to shed is a matter of what batches do on average; how much, of what this one will do.
            upkeep = learned.rhythm.expected(manifest, ahead.told, load.tuples, ahead.due, ahead.interval)
            load = replace(load, upkeep=upkeep)
            budget = self.evened(load, decision.budget_seconds)
            found = self._shed(manifest, ahead, Taken(rates, joins=joins, chosen=chosen), load, (budget, interval))
            return replace(found, event=event)
        self.plan, self.suspended = None, {}
        self._subsets.decide(manifest, ahead.spans, self._drops(chosen))
        if self.warms(manifest.batch + 1):
            # As samples that take everything: what sampling costs is known, and its code warm, when it is needed.
            rates = dict.fromkeys(learned.confidences, 1.0) | rates
        documents = self._joins.documents(joins, load.tuples)
        return Drops(rates, self._subsets.state(), documents, predicted=exact, event=event, chosen=chosen)

    def _without_promise(self, manifest: Manifest, ahead: Ahead) -> Drops:
        """Only what policies themselves say."""
        chosen = self._ask(manifest, ahead, BatchLoad({}))
        self._subsets.decide(manifest, ahead.spans, self._drops(chosen))
        documents = self._joins.documents(self._joins.plans(None, self._learned.prices))
        return Drops(self._rates(chosen), self._subsets.state(), documents, chosen=chosen)

    # Policies

    def _ask(self, manifest: Manifest, ahead: Ahead, load: BatchLoad) -> dict[str, float]:
        """The shares that policies keep, of those that say so themselves. Each is asked once per batch."""
        seconds = target = None
        if self.controller is not None:
            every = Taken(joins=self._joins.everything())
            seconds, target = self._usual(load, every) * self.controller.correction, self.controller.overload.target
        chosen = {}
        for name, agreed in self._agreed.items():
            now = Situation(
                query=agreed.shape,
                batch=manifest.batch + 1,
                now=ahead.time,
                tuples={s: load.tuples[s] for s in agreed.shape.streams if s in load.tuples},
                passing=self._learned.statistics.selectivity(name),
                last=self.chosen.get(name),
                seconds=seconds,
                target=target,
            )
            share = share_kept(agreed.policy, agreed.loss, now)
            if share is not None:
                chosen[name] = share
        self._joins.keep(chosen)
        return chosen

    def _usual(self, load: BatchLoad, taken: Taken) -> float:
        """The seconds that a batch will take, if it does what batches do on average."""
        seconds = self._learned.predicted(load, taken)
        if self._learned.costs.calibrated:
            return seconds
        # The first batches run in cold code, and would make a little more of them look like an overload.
        return min(seconds, self._learned.predicted(load, taken, PRIOR))

    def _rates(self, chosen: Mapping[str, float]) -> dict[str, float]:
        return {name: chosen[name] for name in self._learned.confidences if name in chosen}

    def _drops(self, chosen: Mapping[str, float]) -> dict[str, float]:
        return {name: left_out(chosen[name]) for name in self._subsets.names if name in chosen}

    # Planners

    def _shed(
        self, manifest: Manifest, ahead: Ahead, always: Taken, load: BatchLoad, seconds: tuple[float, float]
    ) -> Drops:
        """Leave out as much as a batch needs that has a budget, and whose tuples came within an interval.

        What policies say themselves is left out `always`.
        """
        (budget, interval), learned = seconds, self._learned
        left = self._left(load, always, budget)
        budgets = self._join_budgets(load, always.joins, left)
        joins = self._joins.plans(load.tuples, learned.prices, budgets)
        needed = self._drop(manifest, ahead, load, (left, interval), always.chosen)
        rates = dict.fromkeys(learned.confidences, 0.0) | {**always.rates}
        self.plan = sampled_within(learned, load, Taken(rates, needed, joins, always.chosen), budget)
        rates = rates_of(self.plan, learned)
        predicted = learned.predicted(load, Taken(rates, needed, joins))
        documents = self._joins.documents(joins, load.tuples)
        return Drops(
            rates,
            self._subsets.state(),
            documents,
            shedding=True,
            predicted=predicted,
            needed=needed,
            suspended=self.suspended,
            chosen=always.chosen,
        )

    def evened(self, load: BatchLoad, budget: float) -> float:
        """The seconds of a batch with more upkeep than usual, or less, so that batches keep the budget on average.

        Most batches spare some time. Those in which windows close get it, up to the capacity. Otherwise their tuples
        would be sampled at much lower rates than others, and spoil every window that they are in.
        """
        assert self.controller is not None
        nothing = replace(load, tuples=dict.fromkeys(load.tuples, 0.0))
        usual = replace(nothing, upkeep=self._learned.rhythm.usual)
        more = self._learned.predicted(nothing, Taken()) - self._learned.predicted(usual, Taken())
        # What is thought to be spared may be more than there is: the model has prices of its own for either.
        return min(max(budget + more, 0.0), self.controller.capacity)

    def _left(self, load: BatchLoad, always: Taken, budget: float) -> float:
        """The part of the sheddable work that there is time for. All policies bear the same part of the rest."""
        nothing = dict.fromkeys(self._learned.confidences, 0.0)
        no_windows = dict.fromkeys(self._subsets.names, 0.0)
        gone = Taken(nothing, no_windows, {**always.joins, **self._joins.gone()})
        must = self._learned.predicted(load, gone)
        everything = self._learned.predicted(load, Taken(joins=always.joins))
        return min(max((budget - must) / (everything - must), 0.0), 1.0) if everything > must else 1.0

    def _join_budgets(self, load: BatchLoad, joins: Mapping[str, JoinPlan], left: float) -> dict[str, float]:
        """The seconds that each join has, where so much of all work that can be shed is left.

        Where the work that may not be shed is too much already, joins still get a part of it: nothing can be learned of
        work that is never done, and it would seem too much for ever. Samples are never quite empty.
        """
        found, prices = {}, self._learned.prices
        least_of_all = LEAST * self._learned.predicted(load, Taken(joins={**joins, **self._joins.gone()}))
        for name, least in self._joins.work(load.tuples, self._joins.gone()).items():
            (every,) = self._joins.work(load.tuples, {name: joins[name]}).values()
            more = left * (prices.seconds(every) - prices.seconds(least))
            at_least = 0.0 if isinstance(joins[name], PairSample) else least_of_all
            found[name] = prices.seconds(least) + max(more, at_least)
        return found

    def _drop(
        self,
        manifest: Manifest,
        ahead: Ahead,
        load: BatchLoad,
        limits: tuple[float, float],
        chosen: Mapping[str, float],
    ) -> dict[str, float]:
        """Decide which windows and groups to drop; give the part of its tuples that each query needs then.

        The limits are the part of the work that is left, and the seconds within which the tuples came.
        """
        (left, interval), subsets, workload = limits, self._subsets, self._learned.workload
        trees: list[Tree] = []
        groups: dict[str, float] = {}
        for stream in workload.streams:
            rate = load.tuples.get(stream, 0.0) / interval
            own = [n for n in subsets.names if stream in workload.streams_of(n)]
            queries = tuple(self._subset_query(name, rate) for name in own if name in subsets.by_window)
            alone = workload.readers(stream) <= {q.name for q in queries}
            reading = self._learned.costs.coefficients.each.get(READ, 0.0) * rate if alone else 0.0
            trees += [Tree(queries, reading)] if queries else []
            groups |= {n: 1 - left for n in own if n in subsets.by_group}
        capacity = left * sum(tree.shared + sum(q.load for q in tree.queries) for tree in trees)
        found = subset_plan(trees, capacity, self.suspended)
        self.suspended = {suspension.query: suspension.reason for suspension in found.suspended}
        fractions = {name: drop.fraction for drop in found.drops for name in drop.queries} | groups
        together = [drop.queries for drop in found.drops if len(drop.queries) > 1]
        running = [group for group in together if not set(group) & self.suspended.keys()]
        subsets.decide(manifest, ahead.spans, fractions | self._drops(chosen), running, self.suspended)
        needed = {n: min(max(1 - fraction * subsets.saved(n), 0.0), 1.0) for n, fraction in fractions.items()}
        return needed | dict.fromkeys(self.suspended, 0.0)

    def _subset_query(self, name: str, rate: float) -> SubsetQuery:
        learned, subsets = self._learned, self._subsets
        cost = learned.workload.tuple_cost(name, learned.statistics, learned.costs.coefficients)
        first, *later = subsets.windows[name]
        steps = (Step(first, cost), *(Step(window, 0.0) for window in later))
        return SubsetQuery(name, steps, subsets.by_window[name].gap, rate, weight=self._agreed[name].policy.weight)
