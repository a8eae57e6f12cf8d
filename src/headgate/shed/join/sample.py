"""A uniform random sample of a join: the rate that a budget pays for, and which coins are flipped for which keys.

After Ayad et al., Approximating streaming window joins under CPU limitations. Their tuples flip a coin for each partner
that they are expected to meet; but how many those will be is not known, and in micro-batches they come in no order. So
the coins are others (`join_coins`): tuples of rare keys, which cost mostly to keep, flip them by slots, and those of
frequent keys, which cost mostly pairs, by pairs. The rate of a pair is the lower one of those at which its tuples were
read, and is kept with them.

In the paper every tuple looks for earlier ones. Most of them find none that is in the sample, and where rates are low
that is what most of the time goes into. So, of keys by slots, only some look. They have one coin for all that they
find, which widens the variance as slots do: both have their part of the spread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.shed.join.coins import CIRCLE, PARTS, buckets, slots
from headgate.shed.join.cost import JoinCosts, check_budget
from headgate.shed.join.keys import Floats, KeyLoads

#: The part of what its tuples cost by pairs that a key has to save by slots.
_SAVED = 0.1
#: A tuple that is kept costs about so much as this many that look for others. What is measured changes from batch to
#: batch, and with it the shares of those who look: pairs of tuples from batches with different shares are fewer.
_KEPT = 4.0
#: The part of the spread that goes to those who look: what makes the cost of both together the least.
_LOOKS = 1 / (1 + _KEPT**0.5)
#: So many classes of known keys are told apart at most. Where there are more, partners are rounded up to powers of one
#: number or of its square, and so on; and to so few at least.
_CLASSES, _FINEST, _FEW, _ROUNDING = 100, 2**0.25, 1 / 64, 1e-9
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Coins:
    """The slots in which tuples of each side flip coins, None for a sample by pairs; and the part that looks."""

    left: int | None
    right: int | None
    look_left: float = 1.0
    look_right: float = 1.0


@dataclass(frozen=True)
class SamplePlan:
    """A rate, with the coins that cost the least at it, and the CPU time a second that it takes."""

    rate: float
    classes: Mapping[Coins, tuple[Hashable, ...]]
    """The known keys by their coins, those with the most partners last."""
    others: Coins
    cost: float

    @cached_property
    def known(self) -> Mapping[Hashable, Coins]:
        """The coins of the known keys."""
        return {key: coins for coins, keys in self.classes.items() for key in keys}

    def coins(self, key: Hashable) -> Coins:
        """The coins for the tuples of a key."""
        return self.known.get(key, self.others)


def sample(
    loads: KeyLoads,
    costs: JoinCosts,
    budget: float,
    spread: float = 1.25,
    look: float = 0.0,
    all_look: bool = True,
    least: float = 0.0,
) -> SamplePlan:
    """The largest sample that the budget pays for, or one at the `least` rate.

    To `look` for others costs a tuple so much, and `all_look`, or only some.

    >>> from headgate.shed.join.keys import KeyRates, key_loads
    >>> keys = KeyRates(100, {"frequent": 50})
    >>> loads = key_loads(keys, keys, left_window=10, right_window=10, keys=5001)
    >>> plan = sample(loads, JoinCosts(update=0.01, probe=0.0001, produce=0.0001), budget=1.5)
    >>> plan.coins("frequent")
    Coins(left=None, right=None, look_left=1.0, look_right=1.0)
    >>> plan.coins("rare")
    Coins(left=32, right=32, look_left=1.0, look_right=1.0)
    """
    check_budget(budget)
    classes = _classes(loads)

    def total(success: int) -> float:
        return _cost(classes, costs, success / CIRCLE, spread, look, all_look)[-1]

    # The cost grows with the rate, by jumps where there is one bucket less: so search for the last rate it allows.
    success = bisect_right(range(1, CIRCLE + 1), budget, key=total)
    return _plan(loads, classes, costs, max(success / CIRCLE, least), spread, look, all_look)


def sample_at(loads: KeyLoads, costs: JoinCosts, rate: float, spread: float = 1.25) -> SamplePlan:
    """The sample at a rate, with the coins that cost the least. All tuples look, so that no pair has a lower one."""
    return _plan(loads, _classes(loads), costs, rate, spread, look=0.0, all_look=True)


@dataclass(frozen=True)
class _Classes:
    """The known keys by how many partners their tuples have, and last the others."""

    numbers: NDArray[np.int64]
    crowds: Floats
    rates: Floats
    pairs: Floats
    windows: Floats

    @property
    def found(self) -> Floats:
        """By side, how many of its tuples one of the other side finds."""
        return self.crowds[:, ::-1] * self.windows / self.windows[::-1]


def _classes(loads: KeyLoads) -> _Classes:
    known, others = (every := crowds(loads))[:-1], every[-1]
    ways, numbers = np.unique(known, axis=0, return_inverse=True)
    base = _FINEST
    while len(ways) > _CLASSES:
        powers = np.ceil(np.log(np.maximum(known, _FEW)) / np.log(base) - _ROUNDING)
        ways, numbers = np.unique(base**powers, axis=0, return_inverse=True)
        base *= base
    # Those with the most partners are last.
    order = np.argsort(ways.min(axis=1), kind="stable")
    numbers = np.append(np.argsort(order)[numbers.ravel()], len(ways))
    rates, pairs = np.zeros((2, len(ways) + 1, 2))
    np.add.at(rates, numbers, loads.rates)
    np.add.at(pairs, numbers, loads.rates * loads.partners)
    return _Classes(numbers, np.vstack([ways[order], others]), rates, pairs, np.array(loads.windows))


def _plan(
    loads: KeyLoads, classes: _Classes, costs: JoinCosts, rate: float, spread: float, look: float, all_look: bool
) -> SamplePlan:
    cuts, looking, cost = _cost(classes, costs, rate, spread, look, all_look)
    *ways, others = (
        Coins(int(left) or None, int(right) or None, *share)
        for (left, right), share in zip(cuts.tolist(), looking[:, ::-1].tolist(), strict=True)
    )
    keys: list[list[Hashable]] = [[] for _ in ways]
    for key, number in zip(loads.keys, classes.numbers.tolist(), strict=False):
        keys[number].append(key)
    found: dict[Coins, tuple[Hashable, ...]] = {}
    for coins, own in zip(ways, keys, strict=True):
        found[coins] = (*found.pop(coins, ()), *own)
    found.pop(others, None)
    return SamplePlan(rate, found, others, cost)


def _cost(
    classes: _Classes, costs: JoinCosts, rate: float, spread: float, look: float, all_look: bool
) -> tuple[Floats, Floats, float]:
    """By class and side, the slots or 0, and the part of the other side that looks; and what all of it costs."""
    rates = np.maximum(classes.rates, _TINY)  # Of keys that nothing is known of, some may come.
    others = look * rates[:, ::-1]
    each = classes.pairs / rates
    by_pairs = rates * by_pairs_cost(each, costs, rate) + others
    if spread == 1:
        return np.zeros_like(rates), np.ones_like(rates), float(by_pairs[classes.rates > 0].sum())
    looking = np.ones_like(rates) if all_look else looking_for(classes.found, rate, spread)
    cuts = slots_for(classes.crowds, looking, rate, spread)
    by_slots = rates * by_slots_cost(each, cuts, costs, rate, looking) + others * looking
    # Slots widen the variance, so they have to be worth it.
    better = by_slots < (1 - _SAVED) * by_pairs
    kept, looking = (np.where(better, some, 1.0) for some in (successful(cuts, rate / looking), looking))
    # Those who are kept take part as well as those who look.
    idle = (1 - kept) * (1 - looking[:, ::-1])
    cost = np.where(better, by_slots - others * looking, by_pairs - others) + look * rates * (1 - idle)
    return np.where(better, cuts, 0), looking, float(cost[classes.rates > 0].sum())


def looking_for(found: Floats, rate: float, spread: float) -> Floats:
    """The part of the tuples that look for earlier ones, by how many one finds.

    It falls slower than the rate does: with a lower rate, those who look find no fewer of what was kept at a higher
    one than the lower rate wants.
    """
    shared = found * rate
    room = _LOOKS * (spread - 1) * (1 - rate)
    needed = np.divide(shared, shared + room, out=np.ones_like(shared), where=shared + room > 0)
    return np.asarray(np.clip(np.maximum(needed, (_KEPT * rate) ** 0.5), max(rate, 1 / CIRCLE), 1.0))


def slots_for(crowds: Floats, looking: Floats, rate: float, spread: float) -> Floats:
    """The slots for tuples with so many partners, where a part of these looks."""
    part = np.where(looking < 1, 1 - _LOOKS, 1.0)
    meeting = (looking - rate) / (1 - rate) if rate < 1 else 1.0
    return slots(crowds * meeting / part, spread)


def successful(cuts: Floats, success: Floats) -> Floats:
    """The part of the tuples that have a coin that says yes."""
    return 1 - (1 - np.minimum(success, 1.0)) ** cuts


def crowds(loads: KeyLoads) -> Floats:
    """By component and side, how many partners a tuple has, on average over its pairs.

    Within a key all tuples have as many. The others are many keys, and most pairs are of the more frequent ones. Their
    frequencies are taken to fall by a law of Zipf, from no more than the least of the known ones.

    >>> from headgate.shed.join.keys import KeyRates, key_loads
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
    """The CPU time of a tuple that finds so many partners while it is kept, in a sample by pairs."""
    if rate == 0:
        return np.zeros_like(partners)
    looked_at = min(1.0, 1 / buckets(rate) + rate)
    return costs.update + partners * (looked_at * costs.probe + rate * costs.produce)


def by_slots_cost(
    partners: Floats, cuts: Floats, costs: JoinCosts, rate: float, looking: Floats | float = 1.0
) -> Floats:
    """The CPU time for a tuple that finds so many partners while it is kept, a part of which looks, with so many slots.

    With a slot for each partner, all of which look, this is the cost equation of the paper: a tuple is kept if it has a
    success, and looked at until it has had the last.
    """
    if rate == 0:
        return np.zeros_like(partners)
    success = np.asarray(rate / looking)
    kept = successful(cuts, success)
    # It is let go after the part of its last success.
    each = np.maximum(cuts // PARTS, 1.0)
    part = successful(each, success)
    lifetime = 1 - (1 - part) * kept / (part * (cuts / each))
    return kept * costs.update + partners * (looking * lifetime * costs.probe + rate * costs.produce)
