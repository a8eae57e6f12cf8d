"""A uniform random sample of a join: the rate that a budget pays for, and which coins are flipped for which keys.

After Ayad et al., Approximating streaming window joins under CPU limitations. Their tuples flip a coin for each partner
that they are expected to meet; but how many those will be is not known, and in micro-batches they come in no order. So
the coins are others (`join_coins`): tuples of rare keys, which cost mostly to keep, flip them by slots, and those of
frequent keys, which cost mostly pairs, by pairs. The rate of a pair is the one at which its earlier tuple was read, and
is kept with that tuple.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.shedding.join_coins import CIRCLE, buckets, slots
from headgate.shedding.join_cost import JoinCosts, check_budget
from headgate.shedding.join_keys import KeyLoads

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coins:
    """In how many slots the tuples of each side flip their coins; None for a sample by pairs."""

    left: int | None
    right: int | None


@dataclass(frozen=True)
class SamplePlan:
    """The rate that a budget pays for, with the coins of each key, and the CPU time a second that it takes."""

    rate: float
    known: Mapping[Hashable, Coins]
    others: Coins
    cost: float

    def coins(self, key: Hashable) -> Coins:
        """The kind of coins for the tuples of a key."""
        return self.known.get(key, self.others)


def sample(loads: KeyLoads, costs: JoinCosts, budget: float, spread: float = 1.25) -> SamplePlan:
    """The largest sample that the budget pays for, each side of each key with the kind of coins that costs less.

    >>> from headgate.shedding.join_keys import KeyRates, key_loads
    >>> keys = KeyRates(100, {"frequent": 50})
    >>> loads = key_loads(keys, keys, left_window=10, right_window=10, keys=5001)
    >>> plan = sample(loads, JoinCosts(update=0.01, probe=0.0001, produce=0.0001), budget=1.5)
    >>> plan.coins("frequent"), plan.coins("rare")
    (Coins(left=None, right=None), Coins(left=28, right=28))
    """
    check_budget(budget)
    _, cut = _slots(loads, spread)

    def total(success: int) -> float:
        return float((loads.rates * np.minimum(*_kinds(loads, costs, success / CIRCLE, cut))).sum())

    # The cost grows with the rate, by jumps where there is one bucket less: so search for the last rate it allows.
    success = bisect_right(range(1, CIRCLE + 1), budget, key=total)
    known, others = coins(loads, costs, success / CIRCLE, spread)
    return SamplePlan(success / CIRCLE, known, others, total(success))


def coins(loads: KeyLoads, costs: JoinCosts, rate: float, spread: float) -> tuple[dict[Hashable, Coins], Coins]:
    """The coins that cost less at a rate, side by side, for each of the known keys and for the others."""
    found, cut = _slots(loads, spread)
    pairs, flipped = _kinds(loads, costs, rate, cut)
    *known, others = (
        Coins(*(m if by_slots else None for m, by_slots in zip(both, cheaper, strict=True)))
        for both, cheaper in zip(found, (flipped < pairs).tolist(), strict=True)
    )
    return dict(zip(loads.known, known, strict=True)), others


def _kinds(loads: KeyLoads, costs: JoinCosts, rate: float, cut: Floats) -> tuple[Floats, Floats]:
    """What a tuple of each component and side costs by pairs, and by slots."""
    return by_pairs_cost(loads.partners, costs, rate), by_slots_cost(loads.partners, cut, costs, rate)


def _slots(loads: KeyLoads, spread: float) -> tuple[list[list[int | None]], Floats]:
    """The slots of each component and side; as numbers, those of one without any are infinitely many."""
    found = [[slots(p, spread) for p in both] for both in crowds(loads).tolist()]
    return found, np.array([[math.inf if m is None else m for m in both] for both in found])


def crowds(loads: KeyLoads) -> Floats:
    """How many partners a tuple of each component and side has, on average over its pairs.

    Within a key all tuples have as many. The others are many keys, and most pairs are of the more frequent ones. Their
    frequencies are taken to fall by a law of Zipf, from no more than the least of the known ones.

    >>> from headgate.shedding.join_keys import KeyRates, key_loads
    >>> keys = KeyRates(1000, {key: 100 / (1 + key) for key in range(10)})
    >>> crowds(key_loads(keys, keys, left_window=1, right_window=1, keys=10_000))[-1].round(1).tolist()
    [2.4, 2.4]
    """
    found, others = loads.partners.copy(), loads.others
    if loads.known and others.left_rate and others.right_rate and others.selectivity:
        # Half of the known keys are known for the other side's sake, where sides differ.
        known = max(1, len(loads.known) // 2)
        many = next(iter(loads.known.values())).selectivity / others.selectivity
        falls = max(1.0, math.log1p(many / known))
        first = np.minimum(np.sort(found[:-1], axis=0)[-known], found[-1] * many / (known * falls))
        # One that only its own side knows has as many partners as any of the others.
        found = np.maximum(found, first / falls)
    return found


def by_pairs_cost(partners: Floats, costs: JoinCosts, rate: float) -> Floats:
    """The CPU time for a tuple that finds so many partners while it is kept, if the sample is by pairs."""
    if rate == 0:
        return np.zeros_like(partners)
    looked_at = min(1.0, 1 / buckets(rate) + rate)
    return costs.update + partners * (looked_at * costs.probe + rate * costs.produce)


def by_slots_cost(partners: Floats, cut: Floats, costs: JoinCosts, rate: float) -> Floats:
    """The CPU time for a tuple that finds so many partners while it is kept, if it flips coins in `cut` slots.

    With a slot for each partner, this is the cost equation of the paper: a tuple is kept if it has a success, and
    looked at until it has had the last.
    """
    if rate == 0:
        return np.zeros_like(partners)
    no_success = (1 - rate) ** cut
    lifetime = 1 - (1 - rate) * (1 - no_success) / (rate * cut)
    return (1 - no_success) * costs.update + partners * (lifetime * costs.probe + rate * costs.produce)
