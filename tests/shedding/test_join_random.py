"""Random shedding of a join: the closed forms against brute force, against one another, and against tuples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar
from tests.shedding.join_simulation import Floats, poisson, shed_join

from headgate.errors import FlowError, WindowError
from headgate.shed.join.cost import EVERYTHING, NOTHING, JoinCosts, JoinLoad, JoinShares, outcome
from headgate.shed.join.random import STRATEGIES, coin_flipping, insert_no_probe, probe_no_insert

rates = st.floats(0.5, 5000)
windows = st.floats(0.1, 600)
parts = st.floats(0, 1)
loads = st.builds(JoinLoad, rates, rates, windows, windows, st.floats(1e-5, 1))
prices = st.just(0.0) | st.floats(1e-6, 1e-2)
cost_models = st.builds(JoinCosts, prices, prices, prices)
#: The budget, as a part of what is needed.
budgets = st.just(0.0) | st.floats(1e-4, 1.2)


def needed(load: JoinLoad, costs: JoinCosts) -> float:
    return outcome(load, costs).cost


def best_probe_no_insert(load: JoinLoad, costs: JoinCosts, budget: float) -> float:
    gain = np.array([load.left_rate * load.left_partners, load.right_rate * load.right_partners])
    price = np.array([load.left_rate, load.right_rate]) * costs.update + gain * costs.result
    scale = max(price.sum(), 1e-300)  # The solver has absolute tolerances.
    solved = linprog(-gain / gain.sum(), A_ub=[price / scale], b_ub=[budget / scale], bounds=[(0, 1)] * 2)
    assert solved.fun is not None
    return float(-solved.fun * gain.sum())


def best_coin_flipping(load: JoinLoad, costs: JoinCosts, budget: float) -> float:
    full = outcome(load, costs).results

    def at(log_left: Floats) -> Floats:
        """The results for a share of the left side, with as much of the right side as is left over for it."""
        left = np.exp(log_left)
        rest = np.maximum(0.0, budget - left * load.left_rate * costs.update)
        price = load.right_rate * costs.update + left * full * costs.result
        return np.asarray(left * full * np.where(price <= rest, 1.0, rest / np.maximum(price, 1e-300)))

    # A part of each side is a power of e: shares may be tiny.
    grid = np.linspace(-40, 0, 4001)
    top = int(np.argmax(at(grid)))
    ends = grid[max(0, top - 1)], grid[min(len(grid) - 1, top + 1)]
    near = minimize_scalar(lambda log_left: -float(at(log_left)), bounds=ends, options={"xatol": 1e-12})
    return max(float(at(grid[top])), -float(near.fun))


@given(loads, cost_models, budgets)
def test_probe_no_insert_is_the_optimum_of_its_linear_program(load: JoinLoad, costs: JoinCosts, part: float) -> None:
    budget = part * needed(load, costs)
    found = outcome(load, costs, probe_no_insert(load, costs, budget))
    assert found.results == pytest.approx(best_probe_no_insert(load, costs, budget), rel=1e-6, abs=1e-6)
    assert found.cost <= budget * (1 + 1e-9)


@given(loads, cost_models, budgets)
def test_coin_flipping_is_the_optimum_found_by_search(load: JoinLoad, costs: JoinCosts, part: float) -> None:
    budget = part * needed(load, costs)
    found = outcome(load, costs, coin_flipping(load, costs, budget))
    assert found.results == pytest.approx(best_coin_flipping(load, costs, budget), rel=1e-6, abs=1e-12)
    assert found.cost <= budget * (1 + 1e-9)


@given(loads, cost_models, budgets)
def test_insert_no_probe_uses_up_what_inserting_leaves(load: JoinLoad, costs: JoinCosts, part: float) -> None:
    budget = part * needed(load, costs)
    found = outcome(load, costs, insert_no_probe(load, costs, budget))
    assert found.cost <= budget * (1 + 1e-9)
    updates = (load.left_rate + load.right_rate) * costs.update
    if updates <= budget < needed(load, costs):
        assert found.results == pytest.approx((budget - updates) / costs.result)


@given(loads, cost_models, budgets)
def test_probe_no_insert_dominates_coin_flipping_dominates_insert_no_probe(
    load: JoinLoad, costs: JoinCosts, part: float
) -> None:
    budget = part * needed(load, costs)
    best, middle, worst = (outcome(load, costs, shed(load, costs, budget)).results for shed in STRATEGIES.values())
    slack = 1 + 1e-9
    assert best * slack >= middle
    assert middle * slack >= worst
    if part < 0.99 and part > 0.01 and costs.update > 0:
        assert best > middle


@given(loads, cost_models, st.floats(1, 3))
def test_where_all_fits_nothing_is_shed(load: JoinLoad, costs: JoinCosts, part: float) -> None:
    assert {shed(load, costs, part * needed(load, costs) * (1 + 1e-12)) for shed in STRATEGIES.values()} == {EVERYTHING}


@given(loads, cost_models, parts, parts, parts, parts)
def test_no_other_shares_give_more_than_probe_no_insert(
    load: JoinLoad, costs: JoinCosts, a: float, b: float, c: float, d: float
) -> None:
    other = outcome(load, costs, JoinShares(a, b, c, d))
    best = outcome(load, costs, probe_no_insert(load, costs, other.cost))
    assert best.results * (1 + 1e-9) >= other.results


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "load",
    [JoinLoad(400, 400, 10, 10, 0.01), JoinLoad(600, 200, 4, 12, 0.01)],
    ids=["even", "uneven"],
)
def test_tuples_come_out_as_predicted(load: JoinLoad, strategy: str, part: float) -> None:
    costs = JoinCosts(update=0.01, probe=0.0002, produce=0.0003)
    budget = part * needed(load, costs)
    shares = STRATEGIES[strategy](load, costs, budget)
    expected = outcome(load, costs, shares)
    rng = np.random.default_rng(7)
    keys = round(1 / load.selectivity)
    left, right = (poisson(rng, np.full(keys, rate / keys), 200) for rate in (load.left_rate, load.right_rate))
    measured = shed_join(rng, left, right, (load.left_window, load.right_window), lambda _: shares, costs)
    print(f"{strategy}: {measured.results:.0f} results a second, {expected.results:.0f} expected")
    assert measured.results == pytest.approx(expected.results, rel=0.05)
    assert measured.cost == pytest.approx(expected.cost, rel=0.05)


def test_the_side_with_more_partners_is_kept_first() -> None:
    # One side's tuples meet 200 * 0.01 * 4 = 8 to come, the other's 600 * 0.01 * 12 = 72.
    costs = JoinCosts(1e-3, 0, 1e-4)
    shares = probe_no_insert(JoinLoad(600, 200, 4, 12, 0.01), costs, budget=0.3)
    assert (shares.insert_left, shares.insert_right) == pytest.approx((0.0, 0.3 / (200 * (1e-3 + 72e-4))), abs=1e-12)
    shares = probe_no_insert(JoinLoad(200, 600, 12, 4, 0.01), costs, budget=0.3)
    assert (shares.insert_left, shares.insert_right) == pytest.approx((0.3 / (200 * (1e-3 + 72e-4)), 0.0), abs=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_silent_side_and_no_budget_give_nothing_and_do_not_fail(strategy: str) -> None:
    shed = STRATEGIES[strategy]
    costs = JoinCosts(1e-3, 0, 1e-4)
    silent = JoinLoad(0, 2000, 10, 10, 0.1)
    assert outcome(silent, costs, shed(silent, costs, 1.0)).results == 0
    assert outcome(silent, costs, shed(silent, costs, 1.0)).cost <= 1.0
    assert shed(JoinLoad(0, 0, 10, 10, 0.1), costs, 0.0) == EVERYTHING
    busy = JoinLoad(1000, 2000, 10, 10, 0.1)
    assert outcome(busy, costs, shed(busy, costs, 0.0)).results == 0
    assert outcome(busy, JoinCosts(0, 0, 1), shed(busy, JoinCosts(0, 0, 1), 0.0)).results == 0


def test_where_inserting_alone_is_too_much_insert_no_probe_sheds_all() -> None:
    assert insert_no_probe(JoinLoad(600, 600, 10, 10, 0.1), JoinCosts(1e-3, 0, 0), budget=1.0) == NOTHING


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("update=-1: give a time in seconds", lambda: JoinCosts(-1, 0, 0)),
        ("produce=nan: give a time", lambda: JoinCosts(0, 0, float("nan"))),
        ("left_rate=-3: give tuples a second", lambda: JoinLoad(-3, 1, 1, 1, 0.5)),
        ("selectivity=1.5: give the part of pairs", lambda: JoinLoad(1, 1, 1, 1, 1.5)),
        (
            "budget=-0.1: give seconds of CPU",
            lambda: probe_no_insert(JoinLoad(1, 1, 1, 1, 1), JoinCosts(1, 1, 1), -0.1),
        ),
    ],
)
def test_bad_input_is_named(words: str, make: Callable[[], object]) -> None:
    with pytest.raises(FlowError, match=words):
        make()


@pytest.mark.parametrize("window", [0, -1, float("inf")])
def test_a_window_of_a_join_has_a_length(window: float) -> None:
    with pytest.raises(WindowError, match=f"right_window={window}: the window of a join is longer than zero"):
        JoinLoad(1, 1, 1, window, 0.5)
