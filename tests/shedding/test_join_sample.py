"""A uniform random sample of a join: pairs are equally likely and independent, and cost what was foretold."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from tests.shedding.join_simulation import Bools, Floats, poisson, zipf

from headgate.errors import FlowError
from headgate.shed.join.coins import (
    CIRCLE,
    PARTS,
    bucket,
    buckets,
    buckets_met,
    in_sample,
    kept_for,
    last_slot,
    slot_at,
    slot_succeeds,
    slots,
    success,
)
from headgate.shed.join.cost import JoinCosts
from headgate.shed.join.keys import KeyLoads, KeyRates, key_loads
from headgate.shed.join.sample import Coins, by_slots_cost, looking_for, sample, slots_for

places = st.integers(0, CIRCLE - 1)
rates = st.floats(1e-6, 1)


def drawn(rng: np.random.Generator, trials: int, lefts: int, rights: int, rate: float) -> Bools:
    """Which of the pairs of some tuples are in the sample, in so many trials with other places."""
    left, right = (rng.integers(0, CIRCLE, (trials, n)).tolist() for n in (lefts, rights))
    both = zip(left, right, strict=True)
    return np.array([[in_sample(x, y, rate) for x in row for y in other] for row, other in both])


def uniformity(drawn: Bools, rate: float) -> float:
    """The probability of counts as uneven as these, if each pair were in the sample at this rate."""
    trials, pairs = drawn.shape
    deviations = (drawn.sum(axis=0) - trials * rate) ** 2 / (trials * rate * (1 - rate))
    return float(stats.chi2.sf(deviations.sum(), pairs))


def independence(drawn: Bools) -> float:
    """The probability of a table as uneven as the most uneven one of two pairs, if any two were independent."""
    found = []
    for x, y in combinations(drawn.T, 2):
        table = [[np.sum(x & y), np.sum(x & ~y)], [np.sum(~x & y), np.sum(~x & ~y)]]
        found.append(stats.chi2_contingency(table, correction=False).pvalue)
    return min(1.0, len(found) * min(found))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_by_pairs_each_is_as_likely_and_any_two_are_independent(rate: float) -> None:
    found = drawn(np.random.default_rng(1), 4000, 5, 4, rate)
    print(f"rate {rate}: uniformity p = {uniformity(found, rate):.2f}, independence p = {independence(found):.2f}")
    assert uniformity(found, rate) > 0.01
    assert independence(found) > 0.01
    assert found.sum(axis=1).var() == pytest.approx(20 * rate * (1 - rate), rel=0.1)


def test_a_sample_of_tuples_is_no_sample_of_pairs() -> None:
    # Coins for tuples give each pair its rate, but pairs that share a tuple come together: the tests above can tell.
    rng = np.random.default_rng(1)
    left, right = (rng.random((4000, n)) < 0.25**0.5 for n in (5, 4))
    found = (left[:, :, None] & right[:, None, :]).reshape(4000, 20)
    assert found.mean() == pytest.approx(0.25, rel=0.05)
    assert independence(found) < 1e-6


@given(places, places, rates)
def test_a_pair_of_the_sample_meets_in_a_bucket(left: int, right: int, rate: float) -> None:
    near = (success(rate) - left - right % 3) % CIRCLE
    for place in (right, near, -left % CIRCLE, (1 - left) % CIRCLE):
        if in_sample(left, place, rate):
            assert bucket(place, rate) in buckets_met(left, rate)
    assert len(set(buckets_met(left, rate))) == len(buckets_met(left, rate)) <= 2


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.6])
def test_in_buckets_most_pairs_are_never_looked_at(rate: float) -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(0, CIRCLE, (2, 40_000)).tolist()
    looked_at = np.mean([bucket(y, rate) in buckets_met(x, rate) for x, y in zip(left, right, strict=True)])
    print(f"rate {rate}: looked at {looked_at:.3f} of all pairs")
    assert looked_at == pytest.approx(min(1, 1 / buckets(rate) + rate), rel=0.05)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("partners", [0.5, 4.0])
def test_by_slots_each_is_as_likely_and_the_variance_is_within_the_spread(partners: float, at_once: bool) -> None:
    rng = np.random.default_rng(3)
    rate, window, spread, trials = 0.2, 60.0, 1.25, 20_000
    cut = int(slots(np.array([partners]), spread)[0])
    in_all, kept, lifetimes, counts = np.zeros(10), 0, 0.0, []
    came = np.zeros(10)
    for _ in range(trials):
        last, *coins = rng.integers(0, CIRCLE, 1 + cut).tolist()
        last = last_slot(last, rate, cut)
        ages = rng.uniform(0, window, rng.poisson(partners))
        ages = np.floor(ages / 5) * 5 if at_once else ages
        hashes = rng.integers(0, CIRCLE, len(ages)).tolist()
        at = [slot_at(age, place, cut, window) for age, place in zip(ages.tolist(), hashes, strict=True)]
        ours = [slot_succeeds(slot, last, coins[slot], rate) for slot in at]
        tenths = (ages / window * 10).astype(int)
        came += np.bincount(tenths, minlength=10)
        in_all += np.bincount(tenths[ours], minlength=10)
        kept += last >= 0
        lifetimes += kept_for(last, cut, window)
        counts.append(sum(ours) - rate * len(ours))
        assert all(age < kept_for(last, cut, window) for age, met in zip(ages, ours, strict=True) if met)
    # Pairs at any age have the same chance. Those of a slot share a coin, so counts vary as much as the spread allows.
    deviations = (in_all - came * rate) ** 2 / (came * rate * (1 - rate) * spread)
    assert stats.chi2.sf(deviations.sum(), 10) > 0.01
    variance = np.var(counts) / (partners * rate * (1 - rate))
    print(f"{partners} partners, {cut} slots: kept {kept / trials:.2f}, variance {variance:.2f} times")
    assert variance == pytest.approx(1 + partners / cut, rel=0.1)
    assert kept / trials == pytest.approx(1 - (1 - rate) ** cut, rel=0.05)
    price = by_slots_cost(np.array([partners]), np.array([cut]), JoinCosts(0, 1, 0), rate)[0] / partners
    assert lifetimes / trials / window == pytest.approx(price, rel=0.05)


@given(places, rates, st.integers(1, 64))
def test_the_last_success_is_where_it_would_be_coin_by_coin(place: int, rate: float, cut: int) -> None:
    # The chance that all coins after a slot say no is what the place has to be below.
    last, uniform = last_slot(place, rate, cut), (place + 1) / CIRCLE
    assert -1 <= last < cut
    assert last == cut - 1 or uniform <= (1 - rate) ** (cut - 1 - last) * (1 + 1e-9)
    assert last == -1 or uniform >= (1 - rate) ** (cut - last) * (1 - 1e-9)


@pytest.mark.parametrize("partners", [0.2, 3.0, 20.0])
@pytest.mark.parametrize("rate", [0.003, 0.03, 0.3])
def test_of_those_who_look_each_pair_is_as_likely_and_the_variance_is_within_the_spread(
    partners: float, rate: float
) -> None:
    """Tuples of one key at random places; those who look have one coin for all that they find."""
    rng, spread, window, trials, tuples = np.random.default_rng(8), 1.25, 10.0, 400, 400
    both = np.array([partners])
    (looking,) = looking_for(both, rate, spread)
    (many,) = slots_for(both, np.array([looking]), rate, spread)
    success, off, pairs, near = rate / looking, [], 0, np.zeros((2, 4))
    assert rate <= looking <= 1
    for _ in range(trials):
        first, second = rng.uniform(0, window * tuples / partners, (2, tuples))
        coins, look = rng.random((tuples, int(many))) < success, rng.random(tuples) < looking
        x, y = np.nonzero((second - first[:, None] >= 0) & (second - first[:, None] < window))
        age = (second[y] - first[x]) / window
        each = max(many // PARTS, 1)
        taken = coins[x, ((age * (many // each)).astype(int) * each + y % each).astype(int)] & look[y]
        off.append(taken.sum() - rate * len(taken))
        pairs += len(taken)
        near += [np.bincount((4 * some).astype(int), minlength=4) for some in (age, age[taken])]
    wider = float(np.var(off)) * trials / (pairs * rate * (1 - rate))
    kept = 1 - (1 - success) ** many
    print(f"{partners} partners, {rate}: {looking:.3f} look, {kept:.3f} kept, {many:g} slots, {wider:.2f} times")
    assert wider < spread + 4 * spread * (2 / trials) ** 0.5
    deviations = (near[1] - rate * near[0]) ** 2 / (near[0] * rate * (1 - rate) * spread)
    assert stats.chi2.sf(deviations.sum(), 4) > 0.001


@given(st.floats(0, 1000), rates, rates)
def test_those_who_look_at_a_lower_rate_find_enough_of_what_was_kept_at_a_higher_one(
    found: float, one: float, other: float
) -> None:
    low, high = min(one, other), max(one, other)
    few, many = (looking_for(np.array([found]), rate, 1.25)[0] for rate in (low, high))
    assert low <= few <= many <= 1
    assert few / many >= low / high * (1 - 1e-9)


def test_a_coin_for_each_expected_partner_loses_those_that_nobody_expected() -> None:
    # Eight coins for eight partners on average: the ninth, where it comes, has none. So the last are left out.
    rng = np.random.default_rng(5)
    came = rng.poisson(8.0, 50_000)
    with_coin = np.minimum(came, 8).sum() / came.sum()
    print(f"with a coin: {with_coin:.2f} of all pairs")
    assert with_coin < 0.9


def zipf_loads(exponent: float = 1.0) -> tuple[Floats, KeyLoads]:
    rates = 20 * zipf(60, exponent)
    keys = KeyRates(20, dict(enumerate(rates.tolist())))
    return rates, key_loads(keys, keys, 30, 20, keys=60)


def paper_cost(loads: KeyLoads, costs: JoinCosts, rate: float) -> float:
    """The cost of the sample if each tuple flips as many coins as it expects partners, and is kept until the last."""
    rates = np.array([[x.left_rate, x.right_rate] for x in loads.known.values()])
    partners = np.array([[x.left_partners, x.right_partners] for x in loads.known.values()])
    return float((rates * by_slots_cost(partners, partners, costs, rate)).sum())


def paper_rate(loads: KeyLoads, costs: JoinCosts, budget: float) -> float:
    return float(brentq(lambda rate: paper_cost(loads, costs, rate) - budget, 1e-6, 1))


def cheapest(loads: KeyLoads, costs: JoinCosts, rate: float, spread: float) -> float:
    """The cost of a sample, side by side, from what a coin of either kind saves."""
    total = 0.0
    for load in loads.known.values():
        sides = (load.left_rate, load.left_partners), (load.right_rate, load.right_partners)
        for arrivals, partners in sides:
            by_pairs = costs.update + partners * min(1, 1 / math.floor(1 / rate) + rate) * costs.probe
            cut = max(1, math.ceil(partners / (spread - 1)))
            cut = cut if cut <= PARTS else PARTS * math.ceil(cut / PARTS)
            # The last success is in slot i if there is one in it and none after it.
            lasts = [rate * (1 - rate) ** (cut - i) for i in range(1, cut + 1)]
            lifetime = sum(kept_for(i, cut, 1.0) * p for i, p in enumerate(lasts))
            by_slots = sum(lasts) * costs.update + partners * lifetime * costs.probe
            results = partners * rate * costs.produce
            both = by_pairs + results, by_slots + results
            # Slots that save less than a tenth are not worth the variance.
            total += arrivals * (min(both) if both[1] < 0.9 * both[0] else both[0])
    return total


@pytest.mark.parametrize(
    "costs",
    [JoinCosts(1.0, 0.05, 0.05), JoinCosts(1.0, 0.2, 0.02), JoinCosts(1.0, 0.0, 0.02)],
    ids=["pairs and results", "pairs", "tuples"],
)
@pytest.mark.parametrize("part", [0.1, 0.25, 0.5])
def test_the_rate_is_the_largest_that_the_budget_pays_for(costs: JoinCosts, part: float) -> None:
    _, loads = zipf_loads()
    full = sample(loads, costs, 1e9)
    assert full.rate == 1
    budget = part * full.cost
    ours = {spread: sample(loads, costs, budget, spread) for spread in (1.25, 2.0)}
    for spread, plan in ours.items():
        assert plan.cost == pytest.approx(cheapest(loads, costs, plan.rate, spread), rel=1e-6)
        assert plan.cost <= budget < cheapest(loads, costs, plan.rate * (1 + 1e-5), spread)
    theirs = paper_rate(loads, costs, budget)
    print(f"budget {part}: " + ", ".join(f"rate {p.rate:.3f} at spread {s}" for s, p in ours.items()))
    print(f"    a coin for each partner {theirs:.3f}; {paper_cost(loads, costs, ours[1.25].rate) / budget:.2f} as dear")
    assert ours[1.25].rate <= ours[2.0].rate
    # A slot for each partner and the like are among our choices, but no part of a coin where partners are rare.
    assert costs.probe == 0 or ours[2.0].rate > theirs


@pytest.mark.parametrize("part", [0.15, 0.4, 0.7])
def test_tuples_cost_and_give_what_was_planned(part: float) -> None:
    rates, loads = zipf_loads()
    costs, windows, seconds = JoinCosts(1.0, 0.1, 0.05), (30.0, 20.0), 300.0
    plan = sample(loads, costs, part * sample(loads, costs, 1e9).cost)
    rng = np.random.default_rng(6)
    left, right = poisson(rng, rates, seconds), poisson(rng, rates, seconds)
    cost = taken = pairs = 0.0
    for key in range(len(rates)):
        first, second = left.ts[left.key == key], right.ts[right.key == key]
        gaps = second[None, :] - first[:, None]
        both = rng.integers(0, CIRCLE, len(first)), rng.integers(0, CIRCLE, len(second))
        ages = {0: gaps, 1: -gaps.T}
        for side, cut in enumerate((plan.coins(key).left, plan.coins(key).right)):
            age, window = ages[side], windows[side]
            meeting = (age >= 0) & (age < window)
            pairs += meeting.sum()
            if cut is None:
                k = buckets(plan.rate)
                kept = len(age)
                mine, others = both[side], both[1 - side]
                met = np.array([[*buckets_met(x, plan.rate), -1][:2] for x in mine.tolist()]).reshape(-1, 2)
                candidates = (met[:, :, None] == (others * k // CIRCLE)[None, None, :]).any(axis=1)
                chosen = (mine[:, None] + others[None, :]) % CIRCLE < success(plan.rate)
            else:
                coins = rng.random((len(age), cut)) < plan.rate
                kept = int(coins.any(axis=1).sum())
                each = max(cut // PARTS, 1)
                slot = np.clip(age * (cut // each) / window, 0, cut // each - 1).astype(int) * each
                slot += both[1 - side][None, :] % each
                lasts = window * each * np.ceil((np.arange(1, cut + 1) * coins).max(axis=1) / each) / cut
                candidates = age < lasts[:, None]
                chosen = np.take_along_axis(coins, slot, axis=1)
            assert not (meeting & chosen & ~candidates).any()
            found = (meeting & chosen).sum()
            taken += found
            cost += kept * costs.update + (meeting & candidates).sum() * costs.probe + found * costs.produce
    kinds = {type(coins.left) for coins in plan.known.values()}
    print(f"rate {plan.rate:.3f}: {taken / pairs:.3f} of pairs for {cost / seconds / plan.cost:.3f} of the cost")
    assert taken / pairs == pytest.approx(plan.rate, rel=0.05)
    assert cost / seconds == pytest.approx(plan.cost, rel=0.08)  # Windows are not full at first.
    assert kinds == ({int, type(None)} if part < 0.4 else kinds)


def test_frequent_keys_meet_by_pairs_and_rare_ones_by_slots() -> None:
    _, loads = zipf_loads()
    plan = sample(loads, JoinCosts(1.0, 0.1, 0.05), 60)
    assert (plan.coins(0), plan.others) == (Coins(None, None), Coins(1, 1))
    assert isinstance(plan.coins(59).left, int)
    exact = sample(loads, JoinCosts(1.0, 0.1, 0.05), 60, spread=1)
    assert {exact.coins(key) for key in range(60)} == {Coins(None, None)}
    assert exact.rate <= plan.rate


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("correlated", [True, False])
def test_frequent_keys_that_nobody_counted_share_no_more_coins_than_the_spread_allows(
    exponent: float, correlated: bool
) -> None:
    keys, counted, window, spread = 20_000, 200, 10.0, 1.25
    left = 10_000 * zipf(keys, exponent)
    right = left if correlated else np.random.default_rng(1).permutation(left)
    some, others = (
        KeyRates(10_000, {int(k): float(side[k]) for k in np.argsort(-side)[:counted]}) for side in (left, right)
    )
    loads = key_loads(some, others, window, window, keys)
    costs = JoinCosts(1.0, 0.01, 0.05)
    plan = sample(loads, costs, 0.02 * sample(loads, costs, 1e9).cost, spread)
    cuts = np.array([plan.coins(key).left or math.inf for key in range(keys)])
    pairs = left * right * window
    wider = 1 + float((pairs * right * window / cuts).sum() / pairs.sum())
    print(f"exponent {exponent}: a variance of {wider:.2f} times that of independent pairs, rate {plan.rate:.3f}")
    assert np.isfinite(cuts).any()
    assert wider < 1 + 1.2 * (spread - 1)


def test_no_budget_is_no_sample() -> None:
    _, loads = zipf_loads()
    assert sample(loads, JoinCosts(1.0, 0.1, 0.05), 0).rate < 1e-9
    silent = key_loads(KeyRates(0, {}), KeyRates(0, {}), 1, 1, keys=0)
    assert sample(silent, JoinCosts(1, 1, 1), 0).rate == 1


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("rate=1.2: give the part of pairs", lambda: in_sample(1, 1, 1.2)),
        ("rate=-0.1", lambda: buckets(-0.1)),
        ("spread=1: give how much wider", lambda: slots(np.array([3.0]), 1)),
        ("budget=-1", lambda: sample(zipf_loads()[1], JoinCosts(1, 1, 1), -1)),
    ],
)
def test_bad_rates_are_named(words: str, make: Callable[[], object]) -> None:
    with pytest.raises(FlowError, match=words):
        make()
