"""The rates of queries whose tuples are sampled: planned so that a batch keeps within its seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.shed.estimate.placement import place
from headgate.shed.estimate.plan import Budget, EstimatePlan, estimate_plan
from headgate.shed.live.workload import READ

if TYPE_CHECKING:
    from headgate.shed.live.learned import Learned
    from headgate.shed.live.workload import BatchLoad, Taken

#: What a plan leaves free for statistics that are no longer true.
_SAFETY = 0.05
#: Where the work that may not be shed is too much already, samples get this part of the time.
LEAST = 0.1


def rates_of(plan: EstimatePlan, learned: Learned) -> dict[str, float]:
    """The rate of each query under a plan."""
    return learned.workload.rates({name: outlook.rate for name, outlook in plan.queries.items()})


def sampled_within(learned: Learned, load: BatchLoad, least: Taken, capacity: float) -> EstimatePlan:
    """The rates that keep a batch within so many seconds. Where none do, those that add little to what must be.

    `least` is taken in any case. Tables that need high rates may better be read apart from the sample that the others
    share: of the plans with the first few tables apart, this is the one of the least error.
    """
    known = learned.knowledge
    plans: list[tuple[EstimatePlan, float]] = []
    must = learned.predicted(load, least)
    for apart in learned.workload.apart(known.constants):
        trees = learned.workload.trees(load, least, known, apart)
        held = place(trees, {q.name: q.fixed_rate or 0.0 for q in trees.queries}).load
        reading = known.costs.each.get(READ, 0.0) * learned.workload.read_apart(load, apart)
        fixed = max(must - held, 0.0) + reading
        found = estimate_plan(trees, Budget(capacity, fixed, _SAFETY))
        if not plans and not found.met:
            lowest = estimate_plan(trees, Budget(fixed + held + LEAST * capacity, fixed))
            return replace(lowest, met=False, why=found.why)
        seconds = learned.predicted(load, replace(least, rates=rates_of(found, learned)))
        if found.met and seconds > capacity:
            # Which tables share a sample depends on their rates, so they may cost more than was thought.
            found = estimate_plan(trees, Budget(max(2 * capacity - seconds, 0.0), fixed, _SAFETY))
            seconds = learned.predicted(load, replace(least, rates=rates_of(found, learned)))
        plans.append((found, seconds))
    within = [plan for plan, seconds in plans if plan.met and seconds <= capacity]
    return min(within or [plans[0][0]], key=lambda plan: plan.errors)
