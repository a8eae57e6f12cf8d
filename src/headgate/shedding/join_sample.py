"""A uniform random sample of a join: the rate that a budget pays for, and which coins are flipped for which keys.

After Ayad et al., Approximating streaming window joins under CPU limitations. Their tuples flip a coin for each partner
that they are expected to meet; but how many those will be is not known, and in micro-batches they come in no order. So
the coins are others (`join_coins`): tuples of rare keys, which cost mostly to keep, flip them by slots, and those of
frequent keys, which cost mostly pairs, by pairs. The rate of a pair is the one at which its earlier tuple was read, and
is kept with that tuple.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.shedding.join_coins import CIRCLE, buckets, slots
from headgate.shedding.join_cost import JoinCosts, check_budget
from headgate.shedding.join_keys import KeyLoads

Floats = NDArray[np.float64]
#: The part of what its tuples cost by pairs that a key has to save by slots.
_SAVED = 0.1


@dataclass(frozen=True, slots=True)
class Coins:
    """In how many slots the tuples of each side flip their coins; None for a sample by pairs."""

    left: int | None
    right: int | None

    @classmethod
    def of(cls, cuts: Iterable[int]) -> Coins:
        """The coins for so many slots, none of which is a sample by pairs."""
        return cls(*(cut or None for cut in cuts))


@dataclass(frozen=True, eq=False)
class SamplePlan:
    """A rate, with the coins that cost the least at it, and the CPU time a second that it takes."""

    rate: float
    keys: tuple[Hashable, ...]
    cuts: NDArray[np.int64]
    """The slots of each component and side, the other keys last; 0 for a sample by pairs."""
    cost: float

    @cached_property
    def known(self) -> Mapping[Hashable, Coins]:
        """The coins of the known keys."""
        return {key: Coins.of(cut) for key, cut in zip(self.keys, self.cuts.tolist(), strict=False)}

    @property
    def others(self) -> Coins:
        """The coins of all other keys."""
        return Coins.of(self.cuts[-1].tolist())

    def coins(self, key: Hashable) -> Coins:
        """The coins for the tuples of a key."""
        return self.known.get(key, self.others)


def sample(loads: KeyLoads, costs: JoinCosts, budget: float, spread: float = 1.25, least: float = 0.0) -> SamplePlan:
    """The largest sample that the budget pays for, or one at the `least` rate.

    >>> from headgate.shedding.join_keys import KeyRates, key_loads
    >>> keys = KeyRates(100, {"frequent": 50})
    >>> loads = key_loads(keys, keys, left_window=10, right_window=10, keys=5001)
    >>> plan = sample(loads, JoinCosts(update=0.01, probe=0.0001, produce=0.0001), budget=1.5)
    >>> plan.coins("frequent"), plan.coins("rare")
    (Coins(left=None, right=None), Coins(left=28, right=28))
    """
    check_budget(budget)
    cut = slots(crowds(loads), spread)

    def total(success: int) -> float:
        return _cheaper(loads, costs, success / CIRCLE, cut)[1]

    # The cost grows with the rate, by jumps where there is one bucket less: so search for the last rate it allows.
    success = bisect_right(range(1, CIRCLE + 1), budget, key=total)
    return sample_at(loads, costs, max(success / CIRCLE, least), spread)


def sample_at(loads: KeyLoads, costs: JoinCosts, rate: float, spread: float = 1.25) -> SamplePlan:
    """The sample at a rate, each side of each key with the kind of coins that costs less."""
    cut = slots(crowds(loads), spread)
    by_slots, cost = _cheaper(loads, costs, rate, cut)
    return SamplePlan(rate, loads.keys, np.where(by_slots, cut, 0).astype(np.int64), cost)


def _cheaper(loads: KeyLoads, costs: JoinCosts, rate: float, cut: Floats) -> tuple[NDArray[np.bool_], float]:
    """Which sides of components better flip their coins by slots, and what all of them cost then."""
    pairs, flipped = by_pairs_cost(loads.partners, costs, rate), by_slots_cost(loads.partners, cut, costs, rate)
    # Slots widen the variance, so they have to be worth it.
    by_slots = flipped < (1 - _SAVED) * pairs
    return by_slots, float((loads.rates * np.where(by_slots, flipped, pairs)).sum())


def crowds(loads: KeyLoads) -> Floats:
    """How many partners a tuple of each component and side has, on average over its pairs.

    Within a key all tuples have as many. The others are many keys, and most pairs are of the more frequent ones. Their
    frequencies are taken to fall by a law of Zipf, from no more than the least of the known ones.

    >>> from headgate.shedding.join_keys import KeyRates, key_loads
    >>> keys = KeyRates(1000, {key: 100 / (1 + key) for key in range(10)})
    >>> crowds(key_loads(keys, keys, left_window=1, right_window=1, keys=10_000))[-1].round(1).tolist()
    [2.4, 2.4]
    """
    found = loads.partners.copy()
    if loads.keys and found[-1].all():
        # Half of the known keys are known for the other side's sake, where sides differ.
        known = max(1, len(loads.keys) // 2)
        many = loads.selectivity[0] / loads.selectivity[-1]
        falls = max(1.0, float(np.log1p(many / known)))
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
