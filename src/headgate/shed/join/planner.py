"""What to leave out of a join so that it keeps within its seconds and its room."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np

from headgate.shed.join.cost import NOTHING, JoinCosts, JoinLoad, JoinShares
from headgate.shed.join.keys import KeyLoads
from headgate.shed.join.plan import PairSample, PairSubset
from headgate.shed.join.random import STRATEGIES, probe_no_insert
from headgate.shed.join.sample import SamplePlan, sample, sample_at
from headgate.shed.join.semantic import by_keys, filled, kept_sides, looking_for, worth
from headgate.shed.join.work import Prices, carried_out, shares_of, work
from headgate.shed.losses import BY_KEY, Pairs, RandomPairs

#: Of a budget that does not even suffice for all tuples to look for others, so much goes into looking.
_LOOKING = 0.5
#: How much more than random shedding the ranking of keys has to promise, as rates are never quite as they were counted.
_GAIN = 1.1
#: So often the budget is halved between what is too much and what is not.
_HALVINGS = 8
#: The part of `max_state` that is planned with: as long as it suffices, nothing has to be evicted.
_ROOM = 0.9
#: Pairs are sampled at this rate at least: it adds little to what has to be done anyway, and something is learned.
_LEAST = 0.0001
#: What results cost where only they count.
_RESULTS = JoinCosts(0.0, 0.0, 1.0)


def dropped_always(loss: Pairs, drop: float, loads: KeyLoads | None) -> PairSubset:
    """The plan that drops a fraction of the pairs, with as few tuples kept as that takes."""
    if drop == 0:
        return PairSubset()
    why = f"{drop:.3g} of the pairs are dropped, as the policy says"
    if loads is None:
        share = 1 - drop
        return PairSubset(JoinShares(share, share), why=f"{why}; nothing is known of the tuples yet")
    budget = (1 - drop) * float((loads.rates * loads.partners).sum())
    if loss.method in (None, BY_KEY):
        # The pairs are as many in any case. By key, fewer tuples are kept for them.
        found = by_keys(loads, _RESULTS, budget)
        return PairSubset(found.others, _hashes(found.known), f"{why}; {found.why}")
    return PairSubset(STRATEGIES[loss.method](loads.whole, _RESULTS, budget), why=f"{why}; {loss.method}")


def within_time(
    loss: Pairs,
    loads: KeyLoads,
    prices: Prices,
    scale: float,
    budget: float,
    before: KeyLoads | None = None,
    last: PairSubset | None = None,
) -> PairSubset:
    """The plan that gives the most pairs in so many seconds a batch.

    `before` is the same by what was known of keys a batch ago. Windows are full of what the `last` plan kept, so there
    are reasons to stay with it.
    """
    if prices.seconds(work(loads, PairSubset()).scaled(scale)) <= budget:
        return PairSubset()
    method, why = loss.method or BY_KEY, ""
    others = last.others if last is not None else NOTHING
    if method == BY_KEY:
        alike = _alike("probe-no-insert", loads, prices, scale, budget, others)
        keyed = _by_key(loads, prices, scale, budget, last)
        gain, why = _gained(loads, prices, scale, budget, keyed, alike, before)
        if gain >= (_GAIN if last is None or not last.known else 1.0):
            return replace(keyed, why=f"{keyed.why}: {gain:.3g} times as many results as at random")
        return replace(alike, why=f"all keys alike: ranking them gives {gain:.3g} times as many results, as {why}")
    return _alike(method, loads, prices, scale, budget, others)


def _gained(
    loads: KeyLoads,
    prices: Prices,
    scale: float,
    budget: float,
    keyed: PairSubset,
    alike: PairSubset,
    before: KeyLoads | None,
) -> tuple[float, str]:
    """How many times as many results a plan by key gives as one for all keys alike, and why not more.

    Had a plan by what was known `before` been followed until now, it would have had to pay too.
    """
    results = work(loads, alike).pairs
    gain, why = _ratio(work(loads, keyed).pairs, results), "they differ too little to pay for counting them"
    if before is not None:
        followed = work(loads, _by_key(before, prices, scale, budget, None)).scaled(scale)
        lasting = _ratio(followed.pairs / scale, results) * min(1.0, _ratio(budget, prices.seconds(followed)))
        if lasting < min(gain, _GAIN):
            return lasting, "they change too fast for the statistics"
    return gain, why


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def _alike(
    method: str, loads: KeyLoads, prices: Prices, scale: float, budget: float, last: JoinShares = NOTHING
) -> PairSubset:
    plan = _all_alike(method, loads, prices, scale, budget, last)
    # The formulas have one cost for the tuples of both sides, which differ where their windows do.
    over = prices.seconds(work(loads, plan).scaled(scale)) / budget if budget else 1.0
    return plan if over <= 1 else _all_alike(method, loads, prices, scale, budget / over, last)


def _all_alike(
    method: str, loads: KeyLoads, prices: Prices, scale: float, budget: float, last: JoinShares
) -> PairSubset:
    def strategy(load: JoinLoad, seconds: float) -> JoinShares:
        if method == "probe-no-insert":
            return probe_no_insert(load, costs, seconds, last)
        return STRATEGIES[method](load, costs, seconds)

    costs, look = prices.costs(loads, scale), prices.looking * (loads.whole.left_rate + loads.whole.right_rate)
    if look * (1 + _LOOKING) <= budget:
        return PairSubset(strategy(loads.whole, budget - look), why=f"{method} for all keys alike")
    # Not even to let all tuples look is affordable: a part of them is dropped at once.
    share = _LOOKING * budget / look
    shares = strategy(replace(loads.whole, selectivity=loads.whole.selectivity * share), budget - share * look)
    shares = replace(shares, probe_left=shares.probe_left * share, probe_right=shares.probe_right * share)
    return PairSubset(shares, why=f"there is time for {share:.3g} of the tuples to look for others; {method}")


def _by_key(loads: KeyLoads, prices: Prices, scale: float, budget: float, last: PairSubset | None) -> PairSubset:
    """The keys that there is time for, with the tuples that look for them. Tuples of other keys are dropped at once."""
    costs, low, high = prices.costs(loads, scale), 0.0, budget
    known = last.keyed if last is not None else None
    ranks = worth(loads, known)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        kept = kept_sides(loads, costs, middle, ranks)
        took = prices.seconds(carried_out(loads, kept, looking_for(kept)).scaled(scale))
        low, high = (middle, high) if took <= budget else (low, middle)
    found = by_keys(loads, costs, low, known)
    return PairSubset(found.others, _hashes(found.known), found.why)


def _hashes(known: Mapping[Hashable, JoinShares]) -> dict[int, JoinShares] | None:
    return {key: shares for key, shares in known.items() if isinstance(key, int)} or None


def within_room(loss: Pairs, loads: KeyLoads, plan: PairSubset) -> PairSubset:
    """The plan that keeps no more tuples than there is room for: those first that find most in a batch.

    Pairs of tuples of one batch take no room.
    """
    room = _ROOM * loss.max_state if loss.max_state is not None else np.inf
    if work(loads, plan).held <= room:
        return plan
    held = loads.rates * loads.windows * shares_of(loads, plan)[:, :2]
    *own, others = (JoinShares(left, right) for left, right in filled(held, loads.coming, room).tolist())
    return replace(
        plan,
        room=PairSubset(others, _hashes(dict(zip(loads.keys, own, strict=True)))),
        why="; ".join(filter(None, [plan.why, f"there is room for {loss.max_state} tuples"])),
    )


def sampled_always(
    loss: RandomPairs, rate: float, loads: KeyLoads | None, prices: Prices, scale: float = 1.0
) -> PairSample:
    """The plan that samples at a rate, with the coins that cost less at that rate."""
    if rate == 1 or loads is None:
        return PairSample(rate)
    loads = loads.passing(scale)
    found = sample_at(loads, prices.costs(loads, 1.0), rate, loss.spread)
    return _written(found, f"{rate:.3g} of the pairs are taken, as the policy says")


def sampled_within(loss: RandomPairs, loads: KeyLoads, prices: Prices, scale: float, budget: float) -> PairSample:
    """The largest sample that fits into so many seconds a batch."""
    loads = loads.passing(scale)
    costs = prices.costs(loads, 1.0)
    found = sample(loads, costs, max(0.0, budget), loss.spread, prices.looking, loss.every_tuple_looks, _LEAST)
    missing = ", or less: the rest of the batch takes all the time there is" if found.cost > budget else ""
    return _written(found, f"there is time for {found.rate:.3g} of the pairs{missing}")


def _written(plan: SamplePlan, why: str) -> PairSample:
    known = {coins: tuple(key for key in keys if isinstance(key, int)) for coins, keys in plan.classes.items()}
    return PairSample(plan.rate, plan.others, known, why)
