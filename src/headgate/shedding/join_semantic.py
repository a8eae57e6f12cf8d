"""Shedding of a join by its keys: which keys to keep, and on which side, for the most results in a budget.

After Ayad et al., Approximating streaming window joins under CPU limitations, with one change. They rank whole
components. But a result needs only the earlier of its tuples to be kept, so each side of a component is a thing of its
own, with its own results and its own cost, and to rank the sides never gives less: of a key that is frequent on the
left and rare on the right, the few right tuples are kept, and the many left ones only probe. Sides are kept whole while
they fit; of the one at the margin a part is inserted. A key of which neither side is kept is dropped before it costs
anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headgate.shedding.join_cost import (
    EVERYTHING,
    NOTHING,
    JoinCosts,
    Outcome,
    Shares,
    check_budget,
    outcome,
)
from headgate.shedding.join_keys import KeyLoads
from headgate.shedding.join_random import probe_no_insert

Floats = NDArray[np.float64]
#: How much more than random shedding the ranking of keys has to promise, as rates are never quite as they were counted.
_GAIN = 1.05


@dataclass(frozen=True)
class KeyPlan:
    """What is shed of each key, what is expected of it, and why it is done so."""

    known: Mapping[Hashable, Shares]
    others: Shares
    expected: Outcome
    why: str

    def shares(self, key: Hashable) -> Shares:
        """What is done with the tuples of a key; NULL matches nothing and is dropped."""
        return NOTHING if key is None else self.known.get(key, self.others)


def by_keys(loads: KeyLoads, costs: JoinCosts, budget: float) -> KeyPlan:
    """The plan that gives the most results, where the rates of the keys stay what they are.

    >>> from headgate.shedding.join_keys import KeyRates, key_loads
    >>> loads = key_loads(KeyRates(10, {"a": 8, "b": 2}), KeyRates(4, {"a": 1, "b": 3}), 10, 10, keys=2)
    >>> plan = by_keys(loads, JoinCosts(update=1, probe=0, produce=0), budget=2)
    >>> plan.shares("a")  # left tuples look for the one right tuple a second, and are not kept
    Shares(insert_left=0.0, insert_right=1.0, probe_left=1.0, probe_right=0.0)
    >>> plan.shares("b")  # left tuples, which meet more, are kept as far as the budget goes
    Shares(insert_left=0.5, insert_right=0.0, probe_left=0.0, probe_right=1.0)
    """
    check_budget(budget)
    needed = _total(loads, costs, {}, EVERYTHING)
    if needed.cost <= budget:
        return KeyPlan({}, EVERYTHING, needed, f"nothing is shed: {needed.cost:.3g} of {budget:.3g} CPU is needed")
    rates = np.array([[load.left_rate, load.right_rate] for load in loads.all])
    partners = np.array([[load.left_partners, load.right_partners] for load in loads.all])
    # A result costs the same everywhere, and the more of them share the update of one tuple, the less of it each pays.
    inserted = filled(rates * (costs.update + partners * costs.result), partners, budget)
    inserted[rates * partners == 0] = 0.0
    *known_shares, others = (_shares(left, right) for left, right in inserted.tolist())
    plan = dict(zip(loads.known, known_shares, strict=True))
    return KeyPlan(
        plan, others, _total(loads, costs, plan, others), "the sides of keys with the most partners are kept"
    )


def where_it_pays(
    loads: KeyLoads, costs: JoinCosts, budget: float, before: KeyLoads | None = None, upkeep: float = 0.0
) -> KeyPlan:
    """The plan by keys if it is worth its statistics, and probe-no-insert for all keys alike if it is not.

    `before` is what the last plan was made from: had it been followed until now, at as much overload, it would have had
    to pay too. `upkeep` is the CPU time a second that the statistics cost; random shedding saves it.

    >>> from headgate.shedding.join_keys import KeyRates, key_loads
    >>> even = key_loads(KeyRates(20, {}), KeyRates(20, {}), 10, 10, keys=4)
    >>> where_it_pays(even, JoinCosts(update=1, probe=0, produce=0.1), budget=50).why
    'all keys alike: ranking them gives 1 times as many results, as they differ too little to pay for counting them'
    """
    check_budget(budget)
    needed = outcome(loads.whole, costs)
    if needed.cost <= budget:
        return by_keys(loads, costs, budget)
    net = max(0.0, budget - upkeep)
    plan = by_keys(loads, costs, net)
    alike = probe_no_insert(loads.whole, costs, budget)
    expected = outcome(loads.whole, costs, alike)
    gain = _ratio(plan.expected.results, expected.results)
    if gain < _GAIN:
        return _alike(alike, expected, gain, "they differ too little to pay for counting them")
    if before is not None:
        # As much was to be shed before, in proportion: a plan for a lighter load would show nothing of drift.
        old = by_keys(before, costs, net / needed.cost * outcome(before.whole, costs).cost)
        followed = _total(loads, costs, old.known, old.others)
        lasting = _ratio(followed.results, expected.results) * min(1.0, _ratio(net, followed.cost))
        if lasting < _GAIN:
            return _alike(alike, expected, lasting, "they change too fast for the statistics")
    return replace(plan, why=f"{plan.why}: {gain:.3g} times as many results as at random")


def _alike(shares: Shares, expected: Outcome, gain: float, reason: str) -> KeyPlan:
    why = f"all keys alike: ranking them gives {gain:.3g} times as many results, as {reason}"
    return KeyPlan({}, shares, expected, why)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def filled(sizes: Floats, worth: Floats, room: float) -> Floats:
    """The part of each side of a component to keep: what is worth most first, until the room is used up."""
    order = np.argsort(-worth, axis=None, kind="stable")
    ordered = sizes.flat[order]
    left_over = np.maximum(0.0, room - (np.cumsum(ordered) - ordered))
    part = np.ones(sizes.size)
    np.divide(left_over, ordered, out=part, where=ordered > left_over)
    kept = np.empty(sizes.size)
    kept[order] = part
    return kept.reshape(sizes.shape)


def _shares(left: float, right: float) -> Shares:
    """Who looks for tuples of a side: nobody, where none of it is kept."""
    return Shares(left, right, probe_left=float(right > 0), probe_right=float(left > 0))


def _total(loads: KeyLoads, costs: JoinCosts, known: Mapping[Hashable, Shares], others: Shares) -> Outcome:
    parts = [outcome(load, costs, known.get(key, others)) for key, load in loads.known.items()]
    parts.append(outcome(loads.others, costs, others))
    return Outcome(sum(part.results for part in parts), sum(part.cost for part in parts))
