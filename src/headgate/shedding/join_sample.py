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
    (Coins(left=None, right=None), Coins(left=1, right=1))
    """
    check_budget(budget)
    rates = np.array([[load.left_rate, load.right_rate] for load in loads.all])
    partners = np.array([[load.left_partners, load.right_partners] for load in loads.all])
    found = [[slots(p, spread) for p in both] for both in partners.tolist()]
    cut = np.array([[math.inf if m is None else m for m in both] for both in found])

    def kinds(rate: float) -> tuple[Floats, Floats]:
        return by_pairs_cost(partners, costs, rate), by_slots_cost(partners, cut, costs, rate)

    def total(success: int) -> float:
        return float((rates * np.minimum(*kinds(success / CIRCLE))).sum())

    # The cost grows with the rate, by jumps where there is one bucket less: so search for the last rate it allows.
    success = bisect_right(range(1, CIRCLE + 1), budget, key=total)
    pairs, flipped = kinds(success / CIRCLE)
    *known, others = (
        Coins(*(m if by_slots else None for m, by_slots in zip(both, cheaper, strict=True)))
        for both, cheaper in zip(found, (flipped < pairs).tolist(), strict=True)
    )
    return SamplePlan(success / CIRCLE, dict(zip(loads.known, known, strict=True)), others, total(success))


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
