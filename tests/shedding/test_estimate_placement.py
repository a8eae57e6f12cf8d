"""Where drops go, against drops tried out everywhere, and the load equation against tuples that are really dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shedding.estimate_trees import changed, least_load, random_trees

from headgate.errors import FlowError
from headgate.shed.estimate.placement import place
from headgate.shed.estimate.tree import Kind, Leaf, Node, Segment, Stream, Trees

SHARED = Trees((Stream("S", 100, (Segment("A", 1, 1, (Leaf("q1", cost=1), Leaf("q2", cost=1))),)),))


def random_rates(trees: Trees, seed: int) -> dict[str, float]:
    """Rates of all sizes; some queries are not shed, and fixed rates are what they are."""
    rng = np.random.default_rng(seed)
    return {q.name: q.fixed_rate or min(1.0, float(rng.uniform(0.05, 1.4))) for q in trees.queries}


def top_down(trees: Trees, rates: Mapping[str, float]) -> dict[str, float]:
    """The placement for drops without cost, step by step as it is published."""
    keep: dict[str, float] = {}

    def largest(node: Node) -> float:
        return rates[node.name] if isinstance(node, Leaf) else max(largest(child) for child in node.below)

    def descend(below: tuple[Node, ...], rate: float) -> None:
        for node in below:
            if largest(node) < rate:
                keep[node.name] = largest(node) / rate
            if isinstance(node, Segment):
                descend(node.below, largest(node))

    for stream in trees.streams:
        descend(stream.below, 1.0)
    return keep


def test_rates_of_a_half_and_four_fifths_below_one_segment() -> None:
    found = place(SHARED, {"q1": 0.5, "q2": 0.8})
    assert found.keep == pytest.approx({"A": 0.8, "q1": 0.625, "q2": 1.0})
    assert found.load == pytest.approx(80 + 50 + 80)


def test_a_drop_that_takes_longer_than_it_saves_is_left_out() -> None:
    rates = {"q1": 0.5, "q2": 0.8}
    assert place(SHARED, rates, drop_cost=0.37).keep == pytest.approx({"A": 0.8, "q1": 0.625, "q2": 1.0})
    assert place(SHARED, rates, drop_cost=0.38).keep == pytest.approx({"A": 0.8, "q1": 1.0, "q2": 1.0})
    assert place(SHARED, rates, drop_cost=0.61).keep == {"A": 1.0, "q1": 1.0, "q2": 1.0}


def test_a_drop_may_wait_for_a_filter_that_leaves_it_fewer_tuples() -> None:
    filtered = Segment("filter", cost=0.01, selectivity=0.1, below=(Leaf("rare", cost=10),))
    trees = Trees((Stream("S", 100, (Segment("A", 1, 1, (filtered, Leaf("all", cost=1))),)),))
    found = place(trees, {"rare": 0.2, "all": 0.8}, drop_cost=0.1)
    assert found.keep == pytest.approx({"A": 0.8, "filter": 1.0, "rare": 0.25, "all": 1.0})
    assert found.load == pytest.approx(trees.load(found.keep, 0.1))


def test_a_drop_that_saves_nothing_is_left_out() -> None:
    free = changed(SHARED, lambda q: Leaf(q.name))
    assert place(free, {"q1": 0.5, "q2": 0.8}).keep == pytest.approx({"A": 0.8, "q1": 1.0, "q2": 1.0})


def test_a_way_that_nothing_goes_is_closed_without_cost() -> None:
    found = place(SHARED, {"q1": 0.0, "q2": 1.0}, drop_cost=5)
    assert found.keep == {"A": 1.0, "q1": 0.0, "q2": 1.0}
    assert found.load == 200


@pytest.mark.parametrize("seed", range(6))
def test_no_set_of_drops_has_a_smaller_load(seed: int) -> None:
    """Every set of places is tried out, each with the best rates by linear programming."""
    trees = random_trees(seed, queries=4, depth=2)
    if seed % 3 == 0:
        trees = changed(trees, lambda q: Leaf(q.name, cost=q.cost, rate=0.3) if q.name == "q1" else q)
    rates = random_rates(trees, seed)
    drop_cost = (0.05, 0.3)[seed % 2]
    found = place(trees, rates, drop_cost)
    assert found.load == pytest.approx(least_load(trees, rates, drop_cost), rel=1e-7)
    assert found.load == pytest.approx(trees.load(found.keep, drop_cost))


@given(st.integers(0, 10**9), st.integers(1, 25), st.integers(1, 3), st.sampled_from([0.0, 0.02, 0.1, 0.5]))
def test_it_is_never_worse_than_drops_from_the_top_down(
    seed: int, queries: int, streams: int, drop_cost: float
) -> None:
    trees = random_trees(seed, max(queries, streams), streams, depth=4)
    rates = random_rates(trees, seed)
    found, plain = place(trees, rates, drop_cost), top_down(trees, rates)
    assert found.load == pytest.approx(trees.load(found.keep, drop_cost))
    assert found.load <= trees.load(plain, drop_cost) * (1 + 1e-12)
    reached = trees.rates(found.keep)
    assert all(reached[name] >= rate * (1 - 1e-12) for name, rate in rates.items())
    if not drop_cost:
        assert reached == pytest.approx(trees.rates(plain))


@given(st.integers(0, 10**9), st.sampled_from([0.0, 0.1, 3.0]))
def test_fixed_rates_are_reached_whatever_drops_cost(seed: int, drop_cost: float) -> None:
    trees = random_trees(seed, queries=8, streams=2)
    kinds = {
        "q0": Leaf("q0", Kind.EXACT, cost=1),
        "q3": Leaf("q3", rate=0.3),
        "q5": Leaf("q5", Kind.SET, cost=1, rate=0.2),
    }
    trees = changed(trees, lambda q: kinds.get(q.name, q))
    rates = random_rates(trees, seed)
    found = place(trees, rates, drop_cost)
    reached = trees.rates(found.keep)
    assert reached["q0"] == 1.0
    assert (reached["q3"], reached["q5"]) == pytest.approx((0.3, 0.2))
    assert found.load == pytest.approx(trees.load(found.keep, drop_cost))


@given(st.integers(0, 10**9), st.sampled_from([0.0, 0.1, 0.5]), st.floats(0, 1))
def test_the_load_does_not_fall_where_rates_rise(seed: int, drop_cost: float, less: float) -> None:
    trees = random_trees(seed, queries=10, streams=2)
    rates = random_rates(trees, seed)
    lower = {name: rate * less for name, rate in rates.items()}
    assert place(trees, lower, drop_cost).load <= place(trees, rates, drop_cost).load * (1 + 1e-12)


def test_the_load_is_that_of_tuples_that_are_really_dropped() -> None:
    """A million tuples go through two filters and four drops; what each node does is counted."""
    rng = np.random.default_rng(7)
    inner = Segment("inner", cost=3, selectivity=0.4, below=(Leaf("a", cost=5), Leaf("b", cost=1)))
    trees = Trees((Stream("S", 1_000_000, (Segment("outer", 2, 0.7, (inner, Leaf("c", cost=4))),)),))
    keep, drop_cost, seconds = {"outer": 0.8, "inner": 0.5, "a": 0.25, "c": 0.9}, 0.5, 0.0
    kept: dict[str, int] = {}

    def run(node: Node, arriving: int) -> None:
        nonlocal seconds
        if node.name in keep:
            seconds += drop_cost * arriving
            arriving = rng.binomial(arriving, keep[node.name])
        seconds += node.cost * arriving
        kept[node.name] = arriving
        if isinstance(node, Segment):
            passed = rng.binomial(arriving, node.selectivity)
            for child in node.below:
                run(child, passed)

    run(trees.streams[0].below[0], 1_000_000)
    assert seconds == pytest.approx(trees.load(keep, drop_cost), rel=0.005)
    by_paths = {"outer": 0.8, "inner": 0.4, "a": 0.1, "b": 0.4, "c": 0.72}
    assert trees.rates(keep) == pytest.approx(by_paths)
    share = {"outer": 1, "inner": 0.7, "a": 0.28, "b": 0.28, "c": 0.7}
    for name, rate in by_paths.items():
        assert kept[name] == pytest.approx(1_000_000 * rate * share[name], rel=0.02)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Leaf("q", rate=1.5), r"query q: rate=1.5: give a number above 0 and not above 1"),
        (lambda: Leaf("q", Kind.EXACT, rate=0.5), r"query q is exact and has rate=0.5: leave out one of them"),
        (lambda: Leaf("q", constant=math.inf), r"query q: constant=inf: give a number above 0"),
        (lambda: Leaf("q", weight=0), r"query q: weight=0: give a number above 0"),
        (lambda: Segment("s", -1, 1, (Leaf("q"),)), r"segment s: cost=-1: give a number, zero or more"),
        (lambda: Segment("s", 1, 1, ()), r"segment s leads to no query: leave it out"),
        (lambda: Stream("S", math.nan, ()), r"stream S: tuples=nan: give a number, zero or more"),
        (lambda: Trees((Stream("S", 1, (Leaf("q"), Leaf("q"))),)), r"q names two parts of the trees"),
    ],
)
def test_bad_trees_are_named(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises(FlowError, match=message):
        build()
