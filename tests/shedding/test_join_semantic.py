"""Shedding of a join by keys: against linear programming, other rankings, tuples, and the optimum of hindsight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.shedding.join_simulation import Floats, Stream, poisson, shed_join, zipf

from headgate.errors import FlowError
from headgate.reference.join_optimum import (
    Arrival,
    greedy_of_whole_tuples,
    most_by_keeping,
    most_of_whole_tuples,
    pairs,
)
from headgate.shed.join.cost import EVERYTHING, NOTHING, JoinCosts, JoinLoad, Outcome, outcome
from headgate.shed.join.keys import KeyLoads, KeyRates, key_loads
from headgate.shed.join.random import probe_no_insert
from headgate.shed.join.semantic import KeyPlan, by_keys

COSTS = JoinCosts(update=1e-2, probe=1e-5, produce=2e-5)
KEYS = 500


def by_rate(left: Floats, right: Floats, windows: tuple[float, float] = (10, 10)) -> KeyLoads:
    """The components of a join whose keys are numbers, each of them known."""
    lefts, rights = (KeyRates(float(rates.sum()), dict(enumerate(rates.tolist()))) for rates in (left, right))
    a, b = windows
    return key_loads(lefts, rights, a, b, keys=len(left))


def correlated(exponent: float = 1.0) -> tuple[Floats, Floats]:
    return 1000 * zipf(KEYS, exponent), 1000 * zipf(KEYS, exponent)


def anti_correlated(exponent: float = 1.0) -> tuple[Floats, Floats]:
    left, right = correlated(exponent)
    return left, right[::-1].copy()


def unrelated(exponent: float = 1.0) -> tuple[Floats, Floats]:
    left, right = correlated(exponent)
    return left, np.random.default_rng(5).permutation(right)


SHAPES: dict[str, Callable[[], tuple[Floats, Floats]]] = {
    "correlated": correlated,
    "anti-correlated": anti_correlated,
    "unrelated": unrelated,
}


def full_cost(loads: KeyLoads, costs: JoinCosts = COSTS) -> Outcome:
    return outcome(loads.whole, costs)


def at_random(loads: KeyLoads, costs: JoinCosts, budget: float) -> float:
    return outcome(loads.whole, costs, probe_no_insert(loads.whole, costs, budget)).results


def by_whole_keys(loads: KeyLoads, costs: JoinCosts, budget: float) -> float:
    """The results of whole keys, most results for their cost first, of the last as much as probe-no-insert gives."""
    found = 0.0
    for load in sorted(loads.known.values(), key=lambda load: _worth(outcome(load, costs)), reverse=True):
        of_key = outcome(load, costs)
        if of_key.cost > budget:
            return found + outcome(load, costs, probe_no_insert(load, costs, budget)).results
        found, budget = found + of_key.results, budget - of_key.cost
    return found


def _worth(of_key: Outcome) -> float:
    return of_key.results / of_key.cost if of_key.cost else 0.0


def by_other_side(loads: KeyLoads, costs: JoinCosts, budget: float) -> float:
    """The results if tuples with the most partners on the other side are taken, and all others dropped unread."""
    known = loads.known.values()
    rates = np.array([[load.left_rate, load.right_rate] for load in known])
    partners = np.array([[load.left_partners, load.right_partners] for load in known])
    results = (rates * partners).sum(axis=1)
    most = 0.0
    for least in np.unique(partners):
        taken = partners >= least
        found = float(results[taken.all(axis=1)].sum())
        if (rates * taken).sum() * costs.update + found * costs.result <= budget:
            most = max(most, found)
    return most


@st.composite
def components(draw: st.DrawFn) -> KeyLoads:
    rates = st.just(0.0) | st.floats(0.01, 50)
    keys = draw(st.integers(1, 6))
    left, right = (draw(st.lists(rates, min_size=keys, max_size=keys)) for _ in range(2))
    window = st.floats(0.1, 30)
    return by_rate(np.array(left), np.array(right), (draw(window), draw(window)))


costs_ = st.builds(JoinCosts, *[st.just(0.0) | st.floats(1e-4, 1)] * 3)


@given(components(), costs_, st.floats(0.01, 1.1))
def test_no_other_shares_of_the_keys_give_more(loads: KeyLoads, costs: JoinCosts, part: float) -> None:
    full = full_cost(loads, costs)
    budget = part * full.cost
    plan = by_keys(loads, costs, budget)
    assert plan.expected.cost <= budget * (1 + 1e-9)
    gain, rates = (loads.rates * loads.partners).ravel(), loads.rates.ravel()
    if full.results > 0 and full.cost > 0:
        price = (rates * costs.update + gain * costs.result) / full.cost
        best = linprog(-gain / full.results, A_ub=[price], b_ub=[part], bounds=[(0, 1)] * len(gain))
        assert best.fun is not None
        assert plan.expected.results == pytest.approx(-best.fun * full.results, rel=1e-6, abs=1e-6)
    slack = 1 + 1e-9
    assert plan.expected.results * slack >= by_whole_keys(loads, costs, budget)
    assert plan.expected.results * slack >= at_random(loads, costs, budget)


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("shape", SHAPES)
def test_on_zipf_keys_more_comes_out_than_at_random_and_as_much_as_predicted(shape: str, part: float) -> None:
    left, right = SHAPES[shape]()
    loads = by_rate(left, right)
    budget = part * full_cost(loads).cost
    plan = by_keys(loads, COSTS, budget)
    rng = np.random.default_rng(11)
    tuples = poisson(rng, left, 150), poisson(rng, right, 150)
    measured = shed_join(rng, *tuples, (10, 10), plan.shares, COSTS)
    assert measured.results == pytest.approx(plan.expected.results, rel=0.05)
    assert measured.cost == pytest.approx(budget, rel=0.05)
    random, whole, other = (f(loads, COSTS, budget) for f in (at_random, by_whole_keys, by_other_side))
    print(
        f"{shape} {part}: {measured.results / random:.2f} times random;"
        f" whole keys {whole / random:.2f}, the other side's frequency {other / random:.2f}"
    )
    least = {"correlated": [1.25, 1.25, 1.15], "anti-correlated": [2.0, 1.35, 1.1], "unrelated": [1.8, 1.4, 1.1]}
    assert measured.results > least[shape][round(4 * part) - 1] * random
    assert measured.results > 0.97 * whole
    assert measured.results > 0.97 * other


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
def test_where_keys_are_frequent_on_one_side_only_the_other_sides_frequency_is_not_enough(part: float) -> None:
    loads = by_rate(*anti_correlated())
    budget = part * full_cost(loads).cost
    assert by_keys(loads, COSTS, budget).expected.results > 1.1 * by_other_side(loads, COSTS, budget)
    assert by_whole_keys(loads, COSTS, budget) > by_other_side(loads, COSTS, budget)


def test_whole_keys_may_give_less_than_no_ranking_at_all() -> None:
    # Left tuples are kept five times as long and come at a third of the rate: to keep the left side pays, whatever key.
    left, right = anti_correlated()
    loads = by_rate(left, 3 * right, (10, 2))
    budget = 0.25 * full_cost(loads).cost
    random = at_random(loads, COSTS, budget)
    assert by_whole_keys(loads, COSTS, budget) < 0.75 * random
    assert by_keys(loads, COSTS, budget).expected.results > 1.05 * random


@pytest.mark.parametrize("shape", SHAPES)
def test_close_to_what_hindsight_would_have_kept(shape: str) -> None:
    frequencies = zipf(8)
    order = {"correlated": np.arange(8), "anti-correlated": np.arange(8)[::-1], "unrelated": np.roll(np.arange(8), 3)}
    left, right = 3 * frequencies, 3 * frequencies[order[shape]]
    windows, seconds, costs = (3.0, 3.0), 8.0, JoinCosts(update=1.0, probe=0.1, produce=0.1)
    loads = by_rate(left, right, windows)
    budget = 0.5 * full_cost(loads, costs).cost
    plan = by_keys(loads, costs, budget)
    rng = np.random.default_rng(2)
    online = keeping = whole = greedy = spent = 0.0
    for _ in range(6):
        lefts, rights = (_arrivals(poisson(rng, rates, seconds)) for rates in (left, right))
        results = pairs(lefts, rights, *windows)  # type: ignore[arg-type]
        coins = {"left": rng.random(len(lefts)), "right": rng.random(len(rights))}

        def inserted(node: tuple[str, int]) -> bool:
            side, number = node
            shares = plan.shares((lefts if side == "left" else rights)[number].key)  # noqa: B023
            return bool(coins[side][number] < getattr(shares, f"insert_{side}"))  # noqa: B023

        found = sum(inserted(pair.nodes[0]) for pair in results)
        kept = sum(inserted((side, i)) for side in coins for i in range(len(coins[side])))
        mine = kept * costs.update + found * costs.result
        online, spent = online + found, spent + mine
        # Hindsight gets the budget that was in fact spent on this input.
        keeping += most_by_keeping(results, costs.update, costs.result, mine)
        whole += most_of_whole_tuples(results, costs.update, costs.result, mine)
        greedy += greedy_of_whole_tuples(results, costs.update, costs.result, mine)
    print(f"{shape}: {online:.0f}; hindsight {keeping:.0f}, whole tuples {whole:.0f}, greedy {greedy:.0f}")
    assert 0.6 * keeping < online <= keeping
    assert greedy <= whole <= keeping


def _arrivals(stream: Stream) -> list[Arrival]:
    return [Arrival(ts, key) for ts, key in zip(stream.ts.tolist(), stream.key.tolist(), strict=True)]


def test_a_few_known_keys_are_nearly_as_good_as_all() -> None:
    left, right = unrelated()
    everything = by_rate(left, right)
    lefts, rights = (
        KeyRates(float(rates.sum()), {int(k): float(rates[k]) for k in np.argsort(-rates)[:50]})
        for rates in (left, right)
    )
    few = key_loads(lefts, rights, 10, 10, keys=KEYS)
    assert len(few.known) < 110
    assert few.whole.left_rate == pytest.approx(1000)
    budget = 0.5 * full_cost(everything).cost
    plan = by_keys(few, COSTS, budget)
    rng = np.random.default_rng(3)
    measured = shed_join(rng, poisson(rng, left, 200), poisson(rng, right, 200), (10, 10), plan.shares, COSTS)
    print(f"100 known keys: {measured.results:.0f}, all: {by_keys(everything, COSTS, budget).expected.results:.0f}")
    assert measured.results > 0.93 * by_keys(everything, COSTS, budget).expected.results
    assert measured.cost < 1.05 * budget


def test_a_key_that_one_side_does_not_know_is_average_there() -> None:
    loads = key_loads(KeyRates(100, {"a": 40, "b": 20}), KeyRates(60, {"a": 10}), 5, 5, keys=12)
    assert loads.known["b"].right_rate == pytest.approx(50 / 11)
    assert loads.others == JoinLoad(40, 50 / 11 * 10, 5, 5, 0.1)


def test_null_matches_nothing() -> None:
    loads = key_loads(KeyRates(10, {None: 10}), KeyRates(10, {None: 10}), 5, 5, keys=0)
    plan = by_keys(loads, COSTS, budget=0)
    assert (loads.known, plan.expected, plan.shares(None)) == ({}, Outcome(0, 0), NOTHING)
    assert by_keys(loads, COSTS, budget=1).shares(None) == NOTHING


def test_keys_of_one_side_only_are_dropped_first() -> None:
    loads = key_loads(KeyRates(20, {"a": 10, "b": 10}), KeyRates(10, {"a": 10, "b": 0}), 5, 5, keys=2)
    plan = by_keys(loads, COSTS, budget=0.9 * full_cost(loads).cost)
    assert plan.shares("b") == NOTHING
    assert plan.shares("a").insert_left == 1


def test_nothing_is_shed_while_all_fits() -> None:
    loads = by_rate(*correlated())
    plan = by_keys(loads, COSTS, 1000)
    assert plan.shares(3) == plan.shares("unheard of") == EVERYTHING
    assert plan.why.startswith("nothing is shed")


def test_a_plan_stays_unless_another_one_is_better() -> None:
    costs, (left, right) = JoinCosts(update=1.0, probe=1e-5, produce=2e-5), correlated(0.5)
    loads, budget = by_rate(left, right), 0.3 * full_cost(by_rate(left, right), costs).cost
    first = by_keys(loads, costs, budget)
    noise = np.random.default_rng(3).uniform(0.95, 1.05, (2, KEYS))
    noisy = by_rate(left * noise[0], right * noise[1])
    anew, stayed = (by_keys(noisy, costs, budget, last) for last in (None, first.known))

    def changed(plan: KeyPlan) -> int:
        return sum((plan.shares(k).insert_left > 0) != (first.shares(k).insert_left > 0) for k in range(KEYS))

    assert changed(stayed) < 0.5 * changed(anew)
    assert stayed.expected.results > 0.98 * anew.expected.results
    shuffled = np.random.default_rng(1).permutation(KEYS)
    drifted = by_rate(left[shuffled], right[shuffled])
    anew, stayed = (by_keys(drifted, costs, budget, last) for last in (None, first.known))
    assert stayed.expected.results > 0.9 * anew.expected.results


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("the rate of key 'a' is -1", lambda: KeyRates(5, {"a": -1})),
        ("the known keys have 7 tuples a second, the stream has 5", lambda: KeyRates(5, {"a": 4, "b": 3})),
        ("keys=1, but 2 are known", lambda: key_loads(KeyRates(5, {"a": 1}), KeyRates(5, {"b": 1}), 1, 1, keys=1)),
        ("selectivity=2", lambda: key_loads(KeyRates(5, {"a": 1}), KeyRates(5, {}), 1, 1, keys=1, passing=2)),
        ("budget=nan", lambda: by_keys(by_rate(*correlated()), COSTS, float("nan"))),
    ],
)
def test_bad_statistics_are_named(words: str, make: Callable[[], object]) -> None:
    with pytest.raises(FlowError, match=words):
        make()
