"""What queries need: the constants of the bound, and the rates of least error that fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import FlowError
from headgate.shed.estimate.rates import Rates, error, error_constant, group_constant, needed, target_rates
from headgate.shed.estimate.tree import Kind, Leaf

constants = st.floats(0.001, 1.0)
weights = st.floats(0.1, 10.0)
aggregates = st.builds(Leaf, st.just("q"), constant=constants, weight=weights)
sets = st.builds(Leaf, st.just("q"), st.just(Kind.SET), weight=weights)


def test_the_constant_is_the_one_of_the_values_themselves() -> None:
    values = np.random.default_rng(1).lognormal(sigma=1.5, size=700)
    by_values = math.sqrt((values**2).sum() / (2 * values.sum() ** 2) * math.log(2 / 0.05))
    assert error_constant(700, values.mean(), values.std(), confidence=0.95) == pytest.approx(by_values)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_bound_holds_in_simulation(rate: float) -> None:
    """Of 4,000 samples of skewed values at most 1 % are off by more than the bound of 99 % allows."""
    rng = np.random.default_rng(2)
    values = rng.lognormal(sigma=1.0, size=400)
    kept = rng.random((4_000, 400)) < rate
    errors = np.abs((kept @ values) / rate - values.sum()) / values.sum()
    bound = error(Leaf("q", constant=error_constant(400, values.mean(), values.std())), rate)
    assert np.mean(errors > bound) <= 0.01
    assert bound < 20 * errors.std()  # And it is no empty word.


@pytest.mark.parametrize(("tuples", "mean", "deviation"), [(0, 1, 0), (100, 0, 5), (100, 0, 0), (1, 1, 0), (5, 1, 9)])
def test_a_bound_beyond_the_answer_is_one(tuples: float, mean: float, deviation: float) -> None:
    assert error_constant(tuples, mean, deviation) == 1.0


groups = st.lists(
    st.tuples(st.integers(1, 10_000), st.floats(0.1, 9), st.floats(0, 9), st.floats(0.001, 1)), min_size=1, max_size=12
)


@given(groups, st.sampled_from([0.0, 0.05, 0.3]))
def test_the_worst_group_that_matters_sets_the_constant(
    groups: list[tuple[int, float, float, float]], tail: float
) -> None:
    left, allowed = sorted(groups, key=lambda g: g[3]), tail * sum(g[3] for g in groups)
    while left[0][3] <= allowed:
        allowed -= left.pop(0)[3]
    worst = max(error_constant(n, mean, deviation) for n, mean, deviation, _ in left)
    tuples, means, deviations, shares = zip(*groups, strict=True)
    assert group_constant(tuples, means, deviations, shares, tail=tail) == pytest.approx(worst)


def test_many_small_groups_set_the_rate_though_none_has_a_share_worth_the_name() -> None:
    same = group_constant(np.full(5_000, 200), 1, 0, share=np.full(5_000, 1 / 5_000))
    assert same == pytest.approx(error_constant(200))
    assert group_constant([], [], [], []) == 1.0


@given(aggregates | sets, st.floats(0.001, 20))
def test_what_is_needed_is_the_least_rate_with_that_error(query: Leaf, largest: float) -> None:
    rate = needed(query, largest)
    assert query.weight * error(query, rate) <= largest * (1 + 1e-9) + 1e-12
    if rate > 0.01:
        assert query.weight * error(query, rate - 0.01) > largest


def evenly(rates: Rates) -> float:
    return sum(rates.values())


def test_rates_are_proportional_to_weight_and_constant() -> None:
    queries = [Leaf("a", constant=0.02), Leaf("b", constant=0.01, weight=4), Leaf("c", constant=0.03)]
    found = target_rates(queries, evenly, capacity=1.35)
    assert found.rates == pytest.approx({"a": 0.3, "b": 0.6, "c": 0.45})
    assert found.largest == pytest.approx(0.02 / 0.3)


def test_under_a_light_overload_the_query_that_would_be_worst_is_not_shed() -> None:
    """With the same error for all, it could not be below 0.1, the constant of the first: ten times as much."""
    queries = [Leaf("few", constant=0.1), Leaf("many", constant=0.01)]
    found = target_rates(queries, evenly, capacity=1.98)
    assert found.rates == pytest.approx({"few": 1.0, "many": 0.98})
    assert found.rates["few"] == 1.0
    assert found.largest == pytest.approx(0.01 / 0.98)


def test_a_query_is_shed_only_once_its_own_error_is_not_above_the_others() -> None:
    queries = [Leaf("few", constant=0.1), Leaf("many", constant=0.01)]
    assert target_rates(queries, evenly, capacity=1.1000001).rates["few"] == 1.0
    assert target_rates(queries, evenly, capacity=1.0999).rates["few"] < 1.0


def test_sets_of_tuples_lose_the_same_fraction_and_less_with_more_weight() -> None:
    same = target_rates([Leaf("a", Kind.SET), Leaf("b", Kind.SET)], evenly, capacity=1.2)
    assert same.rates == pytest.approx({"a": 0.6, "b": 0.6})
    weighted = target_rates([Leaf("a", Kind.SET), Leaf("b", Kind.SET, weight=3)], evenly, capacity=1.2)
    assert weighted.rates == pytest.approx({"a": 0.4, "b": 0.8})  # 0.6 of one is missing and 0.2 of the other.


def test_sets_and_aggregates_are_held_to_the_same_error() -> None:
    found = target_rates([Leaf("a", constant=0.1), Leaf("b", Kind.SET)], evenly, capacity=1.25)
    assert 0.1 / found.rates["a"] == pytest.approx(1 - found.rates["b"]) == pytest.approx(found.largest)


def test_a_load_with_a_jump_is_met_from_below() -> None:
    queries = [Leaf("a", constant=0.1)]
    found = target_rates(queries, lambda rates: rates["a"] + (0.5 if rates["a"] > 0.3 else 0.0), capacity=0.6)
    assert found.rates["a"] == pytest.approx(0.3)
    assert found.rates["a"] <= 0.3


def test_where_no_sample_fits_the_priority_gets_nothing() -> None:
    found = target_rates([Leaf("a")], lambda rates: 1.0 if rates["a"] else 0.0, capacity=0.5)
    assert found.met
    assert found.rates == {"a": 0.0}
    assert found.largest == math.inf


def test_fixed_rates_come_first_and_are_not_changed() -> None:
    queries = [Leaf("paid", Kind.EXACT), Leaf("rough", rate=0.3), Leaf("a", constant=0.1, priority=9)]
    assert target_rates(queries, evenly, capacity=3).rates == {"paid": 1.0, "rough": 0.3, "a": 1.0}
    assert target_rates(queries, evenly, capacity=1.4).rates == pytest.approx({"paid": 1.0, "rough": 0.3, "a": 0.1})
    short = target_rates(queries, evenly, capacity=1.2)
    assert not short.met
    assert short.rates == {"paid": 1.0, "rough": 0.3, "a": 0.0}


@pytest.mark.parametrize(
    ("capacity", "rates"),
    [
        (4.0, {"high": 1.0, "middle": 1.0, "other": 1.0, "low": 1.0}),
        (3.5, {"high": 1.0, "middle": 1.0, "other": 1.0, "low": 0.5}),
        (3.0, {"high": 1.0, "middle": 1.0, "other": 1.0, "low": 0.0}),
        (1.6, {"high": 1.0, "middle": 0.2, "other": 0.4, "low": 0.0}),
        (0.7, {"high": 0.7, "middle": 0.0, "other": 0.0, "low": 0.0}),
    ],
)
def test_a_priority_gets_something_only_after_all_higher_ones(capacity: float, rates: Rates) -> None:
    queries = [
        Leaf("high", constant=0.001, priority=2),
        Leaf("middle", constant=0.1, priority=1),
        Leaf("other", constant=0.2, priority=1),
        Leaf("low", constant=0.5),
    ]
    assert target_rates(queries, evenly, capacity).rates == pytest.approx(rates, abs=1e-9)


def test_bad_shares_and_confidences_are_named() -> None:
    with pytest.raises(FlowError, match=r"confidence=1: give a number between 0 and 1"):
        error_constant(10, confidence=1)
    with pytest.raises(FlowError, match=r"tail=1: give a share of the tuples"):
        group_constant([1], [1], [0], [1], tail=1)
