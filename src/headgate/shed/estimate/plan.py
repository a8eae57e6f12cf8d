"""The decision of the `estimate` policy for a batch: what is kept where, how good the answers will be, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.errors import FlowError
from headgate.shed.estimate.placement import place
from headgate.shed.estimate.rates import Rates, Targets, error, needed, target_rates
from headgate.shed.estimate.tree import Kind, Leaf, Trees

_NAMED = 5


@dataclass(frozen=True)
class Budget:
    """The seconds that a batch may take, and the fixed part of them that nothing spares.

    `fixed` is the cost of a batch without tuples, `drop_cost` that of a drop for each tuple that comes to it. The
    share `safety` is kept free, for rates and selectivities that are no longer what they were when measured.
    """

    capacity: float
    fixed: float = 0.0
    safety: float = 0.0
    drop_cost: float = 0.0

    def __post_init__(self) -> None:
        for word, value in (("capacity", self.capacity), ("fixed", self.fixed), ("drop_cost", self.drop_cost)):
            if not 0 <= value < math.inf:
                raise FlowError(f"{word}={value}: give seconds, zero or more")
        if not 0 <= self.safety < 1:
            raise FlowError(f"safety={self.safety}: give a share of the capacity, from 0 to below 1")

    @property
    def usable(self) -> float:
        """The seconds that a plan may use."""
        return self.capacity * (1 - self.safety)


@dataclass(frozen=True)
class Outlook:
    """What a query can expect: its effective sampling rate, its error (see `rates.error`), and why."""

    rate: float
    error: float
    why: str


@dataclass(frozen=True)
class EstimatePlan:
    """The part of the tuples to keep on the edge to each segment and query, and what comes of it."""

    keep: Mapping[str, float]
    queries: Mapping[str, Outlook]
    load: float
    """The seconds that the batch is predicted to take, fixed cost and drops included."""
    met: bool
    """Whether that is within the budget. If not, nothing is left that may be shed."""
    why: str
    errors: tuple[float, float] = (-math.inf, 0.0)
    """To compare plans: the priority at which queries are shed, and the largest weighted error there."""


def estimate_plan(trees: Trees, budget: Budget) -> EstimatePlan:
    """Give the plan with the least error among those that are within the budget.

    >>> from headgate.shed.estimate.tree import Segment, Stream
    >>> ports = (Leaf("web", cost=1e-6, constant=0.01), Leaf("mail", cost=1e-6, constant=0.04))
    >>> tcp = Segment("tcp", cost=1e-6, selectivity=0.5, below=ports)
    >>> plan = estimate_plan(Trees((Stream("Main", tuples=1_000_000, below=(tcp,)),)), Budget(capacity=0.65))
    >>> {edge: round(rate, 4) for edge, rate in plan.keep.items()}
    {'tcp': 0.4, 'web': 0.25, 'mail': 1.0}
    >>> {name: round(outlook.error, 4) for name, outlook in plan.queries.items()}
    {'web': 0.1, 'mail': 0.1}
    >>> print(plan.why.partition(":")[0])
    all that is asked for would take 2 s, more than the 0.65 s that are allowed
    """

    def load(rates: Rates) -> float:
        return budget.fixed + place(trees, rates, budget.drop_cost).load

    targets = target_rates(trees.queries, load, budget.usable)
    placement = place(trees, targets.rates, budget.drop_cost)
    rates = trees.rates(placement.keep)
    everything = load({q.name: needed(q, 0.0) for q in trees.queries})
    return EstimatePlan(
        keep=placement.keep,
        queries={q.name: _outlook(q, targets, rates[q.name]) for q in trees.queries},
        load=budget.fixed + placement.load,
        met=targets.met,
        why=_summary(budget, targets, budget.fixed + placement.load, everything, trees.queries, rates),
        errors=(-math.inf if targets.priority is None else targets.priority, targets.largest),
    )


def _outlook(query: Leaf, targets: Targets, rate: float) -> Outlook:
    return Outlook(rate, error(query, rate), _why(query, targets, rate))


def _why(query: Leaf, targets: Targets, rate: float) -> str:
    """The reason for the rate of one query."""
    target = targets.rates[query.name]
    if query.kind is Kind.EXACT:
        return "never shed"
    if query.rate is not None:
        return "sampled at the rate it asks for"
    if targets.met and (targets.priority is None or query.priority > targets.priority):
        return "not shed: all of it fits"
    if rate > target and not math.isclose(rate, target):
        return "gets more than it needs: a drop of its own would not pay"
    if targets.met and query.priority == targets.priority and target:
        return (
            "not shed: its error would be the largest at any rate" if target == 1 else "sampled: evens out the errors"
        )
    return "gets nothing: there is no time left for it"


def _summary(
    budget: Budget, targets: Targets, kept: float, everything: float, queries: Sequence[Leaf], rates: Rates
) -> str:
    """The reason for the plan as a whole."""
    allowed = f"the {budget.usable:.3g} s that are allowed"
    if not targets.met:
        held = _names([q for q in queries if q.fixed_rate is not None])
        spent = f"{budget.fixed:.3g} s for the batch itself" + (f", the rest for {held}" if held else "")
        takes = f"what may not be shed takes {kept:.3g} s, more than {allowed}"
        return f"{takes} ({spent}): suspend a query or allow more time"
    if targets.priority is None:
        return f"all that is asked for takes {kept:.3g} s of {allowed}"
    over = f"all that is asked for would take {everything:.3g} s, more than {allowed}"
    if math.isinf(targets.largest):
        return f"{over}: there is no time for any sample at priority {targets.priority}"
    shed = _names([q for q in queries if q.fixed_rate is None and rates[q.name] < 1])
    return f"{over}: sheds {shed}; the largest weighted error at priority {targets.priority} is {targets.largest:.3g}"


def _names(queries: Sequence[Leaf]) -> str:
    """The names of queries, or the first few of many."""
    more = len(queries) - _NAMED
    return ", ".join(q.name for q in queries[:_NAMED]) + (f" and {more} more" if more > 0 else "")
