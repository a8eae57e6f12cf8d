"""Joins that are shed in a flow: what is known of them, and what to leave out of each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.incremental.match import Which
from headgate.plan.stream.feeds import feeds
from headgate.plan.stream.stages import origins
from headgate.shed.join.cost import EVERYTHING, NOTHING
from headgate.shed.join.eviction import Worth, worth
from headgate.shed.join.look import Look
from headgate.shed.join.plan import BY_PAIRS, NO_SAMPLE, WARM, JoinPlan, PairSample, PairSubset, restored
from headgate.shed.join.planner import dropped_always, sampled_always, sampled_within, within_room, within_time
from headgate.shed.join.room import Room
from headgate.shed.join.sample import Coins
from headgate.shed.join.sql import SampledSide, ShedSide
from headgate.shed.join.statistics import JoinStatistics, SideSeen
from headgate.shed.join.work import Prices, Work
from headgate.shed.live.join_drops import SIDES, JoinDrops, joins_shed
from headgate.shed.losses import BY_KEY, Pairs, RandomPairs
from headgate.shed.policy import left_out

if TYPE_CHECKING:
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.shed.join.keys import KeyLoads
    from headgate.shed.losses import Loss

#: The tuples of a side that are enough to know which keys are frequent.
_COUNTED = 100_000
#: How much the last batch counts in the part of a stream's tuples that comes to a join.
_RECENT = 0.3
#: How often a plan is made again if it takes too long with what is kept, and the least part of its time then.
_REVISIONS, _LEAST = 3, 0.1
#: The slots of tuples whose coins all say yes.
_SLOTS = 16


class _ShedJoin:
    """One join that is shed: its loss, and what is known of it."""

    def __init__(self, query: Continuous, stage: Stage, loss: Pairs | RandomPairs, state: Mapping[str, Any]) -> None:
        assert stage.join is not None
        self.stage, self.loss = stage, loss
        self.share: float | None = None
        """The share that its policy keeps now; None if that is the planner's to say."""
        kind = SampledSide if isinstance(loss, RandomPairs) else ShedSide
        self.sides: dict[str, ShedSide] = {which: kind(stage.join, which) for which in SIDES}
        left, right = (float(side.window) for side in self.sides.values())
        self.statistics = JoinStatistics((left, right), state.get("statistics"))
        stages = {own.name: own for own in query.stages}
        below = [[origins(feed.stream, stages) for feed in feeds(side.plan)] for side in self.sides.values()]
        self.streams = [frozenset[str]().union(*own) for own in below]
        self.shares: list[float] = list(state.get("shares", (1.0, 1.0)))
        """The tuples of each side for each one that its streams bring."""
        self.left_out: dict[str, dict[str, dict[str, int]]] = deepcopy(state.get("left_out", {}))
        self._before: JoinStatistics | None = None
        self._last: JoinPlan | None = None

    def state(self) -> dict[str, Any]:
        return {
            "statistics": self.statistics.state(),
            "shares": list(self.shares),
            "left_out": deepcopy(self.left_out),
        }

    @property
    def counts_keys(self) -> bool:
        """Whether it matters which keys are frequent."""
        if isinstance(self.loss, RandomPairs):
            # Where any two pairs are independent, all keys are treated alike.
            return self.loss.spread > 1
        return self.loss.method in (None, BY_KEY)

    def expected(self, tuples: Mapping[str, float] | None) -> Sequence[float]:
        """What comes to each side where streams bring so many tuples, or else as many as in the last batches."""
        if tuples is None:
            return self.statistics.tuples
        both = zip(self.streams, self.shares, strict=True)
        return [share * sum(tuples.get(s, 0.0) for s in own) for own, share in both]

    def plan(self, tuples: Mapping[str, float] | None, prices: Prices, budget: float | None = None) -> JoinPlan:
        """What to leave out, with a budget of so many seconds, or without one."""
        if not self.statistics.known:
            return self._always(None, prices)
        expected = self.expected(tuples)
        loads = self.statistics.loads(expected)
        if budget is None or self.share is not None:
            return self._always(loads, prices)
        left = budget - prices.came * sum(expected)
        before = self._before.loads(expected) if self._before is not None else None
        plan, least = self._within(loads, before, prices, left), prices.seconds(self.work(tuples, self.gone))
        for _ in range(_REVISIONS):
            # A plan is for windows as full as it leaves them. What other plans have kept costs time, too.
            took = prices.seconds(self.work(tuples, plan))
            if took <= budget:
                break
            left *= max((budget - least) / (took - least), _LEAST)
            plan = self._within(loads, before, prices, left)
        return plan

    @property
    def warm(self) -> JoinPlan:
        """Nothing left out, in the form of a plan that does: with keys of their own, where it would have such.

        A sample has coins of both kinds, which all say yes.
        """
        keys = self.statistics.frequent if self.counts_keys else ()
        if isinstance(self.loss, RandomPairs):
            return PairSample(1.0, Coins(_SLOTS, _SLOTS), {BY_PAIRS: tuple(keys)} if keys else {}, WARM)
        return PairSubset(known=dict.fromkeys(keys, EVERYTHING) or None, why=WARM)

    @property
    def everything(self) -> JoinPlan:
        """Nothing left out."""
        return PairSample() if isinstance(self.loss, RandomPairs) else PairSubset()

    @property
    def gone(self) -> JoinPlan:
        """Everything left out that can be."""
        return NO_SAMPLE if isinstance(self.loss, RandomPairs) else PairSubset(NOTHING)

    def _always(self, loads: KeyLoads | None, prices: Prices) -> JoinPlan:
        share = 1.0 if self.share is None else self.share
        if isinstance(self.loss, RandomPairs):
            return sampled_always(self.loss, share, loads, prices, self.statistics.scale)
        plan = dropped_always(self.loss, left_out(share), loads)
        return plan if loads is None else within_room(self.loss, loads, plan)

    def _within(self, loads: KeyLoads, before: KeyLoads | None, prices: Prices, budget: float) -> JoinPlan:
        scale, prices, budget = self.statistics.scale, replace(prices, came=0.0), max(budget, 0.0)
        if isinstance(self.loss, RandomPairs):
            return sampled_within(self.loss, loads, prices, scale, budget)
        last = self._last if isinstance(self._last, PairSubset) and not self._last.exact else None
        plan = within_time(self.loss, loads, prices, scale, budget, before, last)
        return within_room(self.loss, loads, plan)

    def work(self, tuples: Mapping[str, float] | None, plan: JoinPlan) -> Work:
        """What the next batch does under a plan."""
        if not self.statistics.known:
            return Work()
        return self.statistics.next(self.expected(tuples), plan).scaled(self.statistics.scale)

    @property
    def room(self) -> Room | None:
        """The room for kept tuples, with what they are worth."""
        if isinstance(self.loss, RandomPairs) or self.loss.max_state is None:
            return None
        loads = self.statistics.loads(self.statistics.tuples) if self.statistics.known else None
        left, right = (worth(loads, which) if loads is not None else Worth((), 0.0) for which in SIDES)
        return Room(self.stage.name, self.loss.max_state, self.sides, {"left": left, "right": right})

    def parts(self, tuples: Mapping[str, float] | None) -> list[float | None]:
        """The part of the tuples of each side in which keys are counted, if they are."""
        if not self.counts_keys:
            return [None, None]
        return [min(_COUNTED / many, 1.0) if many else 1.0 for many in self.expected(tuples)]

    def observe(self, looks: Mapping[Which, Look], tuples: Mapping[str, int], pairs: int, plan: JoinPlan) -> None:
        """Takes in what was seen of the new tuples, and how many pairs came of them."""
        self._last = plan
        if isinstance(plan, PairSubset):
            self._before = self.statistics.copy() if self.counts_keys and self.statistics.known else None
        found = [looks[which].seen() if which in looks else SideSeen() for which in SIDES]
        self.statistics.observe(found, pairs, plan)
        for number, (own, streams) in enumerate(zip(found, self.streams, strict=True)):
            if came := sum(tuples.get(s, 0) for s in streams):
                self.shares[number] += _RECENT * (own.tuples / came - self.shares[number])
        for which, look in looks.items():
            known = self.left_out.setdefault(which, {})
            for name, counts in look.left_out().items():
                total = known.get(name, {})
                known[name] = {what: total.get(what, 0) + count for what, count in counts.items()}


class JoinShedding:
    """Decides what is left out of joins, and follows what that does."""

    def __init__(self, queries: Mapping[str, Continuous], losses: Mapping[str, Loss], state: Mapping[str, Any]) -> None:
        self._joins: dict[str, _ShedJoin] = {}
        self.did: dict[str, Work] = {}
        """What joins did in the last batch."""
        for name, (stage, loss) in joins_shed(queries, losses).items():
            self._joins[name] = _ShedJoin(queries[name], stage, loss, state.get("joins", {}).get(name, {}))
        self.estimated = {name: join.stage.name for name, join in self._joins.items() if join.stage.name != name}
        """By query with an aggregate over pairs, the join that these are sampled of."""

    def state(self) -> dict[str, Any]:
        """What is known, as JSON has it."""
        return {"joins": {name: join.state() for name, join in self._joins.items()}} if self._joins else {}

    @property
    def stages(self) -> frozenset[str]:
        """The joins that are shed."""
        return frozenset(join.stage.name for join in self._joins.values())

    def keep(self, shares: Mapping[str, float]) -> None:
        """Takes note of the shares that policies keep now; the planner says how much of the other joins."""
        for name, join in self._joins.items():
            join.share = shares.get(name)

    def plans(
        self,
        tuples: Mapping[str, float] | None,
        prices: Prices,
        budgets: Mapping[str, float] | None = None,
        warm: bool = False,
    ) -> dict[str, JoinPlan]:
        """What to leave out, by query, where streams bring so many tuples; with `warm`, nothing, in the shed form."""
        found = {}
        for name, join in self._joins.items():
            plan = join.plan(tuples, prices, None if budgets is None else budgets.get(name))
            found[name] = join.warm if warm and plan == join.everything else plan
        return found

    def documents(self, plans: Mapping[str, JoinPlan], tuples: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Plans as a decision has them, by stage, with the pairs that are expected of them."""
        return {
            join.stage.name: plan.document() | {"pairs": join.work(tuples, plan).pairs, "parts": join.parts(tuples)}
            for name, plan in plans.items()
            for join in [self._joins[name]]
        }

    def completed(self, decided: Mapping[str, Any]) -> dict[str, Any]:
        """What was decided, with plans that leave nothing out for joins that have come since."""
        later = {name: join.everything for name, join in self._joins.items() if join.stage.name not in decided}
        return {**decided, **self.documents(later)}

    def everything(self) -> dict[str, JoinPlan]:
        """Nothing left out."""
        return {name: join.everything for name, join in self._joins.items()}

    def gone(self) -> dict[str, JoinPlan]:
        """Everything left out that can be."""
        return {name: join.gone for name, join in self._joins.items() if join.share is None}

    def work(self, tuples: Mapping[str, float], plans: Mapping[str, JoinPlan]) -> dict[str, Work]:
        """What joins do in a batch, by query."""
        return {name: self._joins[name].work(tuples, plan) for name, plan in plans.items()}

    def reach(self, query: str) -> float:
        """How far apart the tuples of a pair can be."""
        return max(float(side.window) for side in self._joins[query].sides.values())

    def rooms(self) -> list[Room]:
        """The joins with room for so many tuples only."""
        return [room for join in self._joins.values() if (room := join.room) is not None]

    def observe(
        self, drops: JoinDrops, tuples: Mapping[str, int], pairs: Mapping[str, int], held: Mapping[str, int]
    ) -> None:
        """Takes in what was seen of the new tuples of a batch, and what came of them.

        `tuples` are those of streams, `held` the ones that joins had kept before.
        """
        for join in self._joins.values():
            name = join.stage.name
            if looks := drops.looks.get(name):
                join.observe(looks, tuples, pairs.get(name, 0), drops.plans[name])
                looking, kept, came = (
                    sum(getattr(look, what) for look in looks.values()) for what in ("looking", "kept", "tuples")
                )
                self.did[name] = Work(looking + kept, kept, held[name], pairs.get(name, 0), came)

    def explain(self, decided: Mapping[str, Any]) -> list[str]:
        """What was left out of each join in the last batch, and why."""
        plans = {name: restored(decided[j.stage.name]) for name, j in self._joins.items() if j.stage.name in decided}
        return [f"Join of query {name}: {plan.why}" for name, plan in plans.items() if plan.why]

    def status(self, decided: Mapping[str, Any]) -> dict[str, Any]:
        """What is left out of each join, why, and how much of it has been so far."""
        found = {}
        for name, join in self._joins.items():
            plan = restored(decided[join.stage.name]) if join.stage.name in decided else None
            found[name] = {
                "plan": plan.why if plan is not None else "",
                "shares": plan.others if isinstance(plan, PairSubset) else plan.rate if plan is not None else None,
                "keys": sum(map(len, plan.classes.values())) if plan is not None else 0,
                "expected": decided.get(join.stage.name, {}).get("pairs"),
                "delivered": self.did[join.stage.name].pairs if join.stage.name in self.did else 0,
                "left_out": join.left_out,
            }
        return found
