"""The whole decision of the `estimate` policy, against optima that know nothing of how it is made."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import NonlinearConstraint, minimize
from tests.shedding.estimate_trees import changed, least_error, random_trees, subsets

from headgate.errors import FlowError
from headgate.shed.estimate.plan import Budget, EstimatePlan, estimate_plan
from headgate.shed.estimate.rates import error_constant
from headgate.shed.estimate.tree import Kind, Leaf, Segment, Stream, Trees

MAIN = Trees(
    (
        Stream(
            "Main",
            1_000,
            (
                Segment(
                    "read",
                    1e-3,
                    1.0,
                    (
                        Leaf("bytes", cost=5e-4, constant=0.02),
                        Segment("tcp", 1e-3, 0.5, (Leaf("web", cost=1e-3, constant=0.04), Leaf("mail", cost=1e-3))),
                    ),
                ),
            ),
        ),
    )
)


def largest_error(trees: Trees, plan: EstimatePlan) -> float:
    return max(q.weight * plan.queries[q.name].error for q in trees.queries if q.fixed_rate is None)


def rates(plan: EstimatePlan) -> dict[str, float]:
    return {name: outlook.rate for name, outlook in plan.queries.items()}


@pytest.mark.parametrize("seed", range(6))
def test_no_choice_of_queries_left_alone_has_a_smaller_error(seed: int) -> None:
    """Each set of queries that are not shed is tried out, with the best rates for the others everywhere."""
    trees = random_trees(seed, queries=5, streams=1 + seed % 2)
    for share in (0.98, 0.85, 0.5, 0.1):
        capacity = share * trees.load({})
        plan = estimate_plan(trees, Budget(capacity))
        assert largest_error(trees, plan) == pytest.approx(least_error(trees, capacity), rel=1e-6)
        assert plan.load == pytest.approx(capacity)
        assert plan.load == pytest.approx(trees.load(plan.keep))


@pytest.mark.parametrize("seed", range(4))
def test_no_choice_of_queries_and_places_has_a_smaller_error_where_drops_cost(seed: int) -> None:
    """Here each set of drops is tried out too, and one of the queries has a fixed rate."""
    trees = random_trees(seed, queries=3, depth=2)
    if seed % 2:
        trees = changed(trees, lambda q: replace(q, rate=0.3) if q.name == "q1" else q)
    capacity = 0.7 * trees.load({})
    plan = estimate_plan(trees, Budget(capacity, drop_cost=0.1))
    assert largest_error(trees, plan) == pytest.approx(least_error(trees, capacity, drop_cost=0.1), rel=1e-6)
    assert plan.load == pytest.approx(trees.load(plan.keep, 0.1))
    assert plan.load <= capacity


def _first(x: np.ndarray) -> float:
    return float(x[0])


def numerical_optimum(trees: Trees, capacity: float) -> tuple[float, dict[str, float]]:
    """The least error that a general optimiser finds over the probabilities at all edges, and the rates with it.

    All sets of aggregates that are not shed are tried out.
    """
    edges = [p.node.name for p in trees.places()]
    best, kept = math.inf, dict.fromkeys(edges, 0.0)
    for untouched in subsets([q.name for q in trees.queries if q.kind is Kind.AGGREGATE]):

        def slack(x: np.ndarray, untouched: frozenset[str] = untouched) -> list[float]:
            keep = dict(zip(edges, x[1:], strict=True))
            reached = trees.rates(keep)
            slacks = [1 - trees.load(keep) / capacity]
            for q in trees.queries:
                rate = reached[q.name]
                if q.name in untouched:
                    slacks.append(rate - 1)
                elif q.kind is Kind.SET:
                    slacks.append(x[0] - q.weight * (1 - rate))
                else:
                    slacks.append(x[0] * rate - q.weight * q.constant)
            return slacks

        found = minimize(
            _first,
            [2.0] + [0.7] * len(edges),
            method="SLSQP",
            bounds=[(0, 100)] + [(0.001, 1)] * len(edges),
            constraints=NonlinearConstraint(slack, 0, math.inf),
            tol=1e-9,
        )
        if min(slack(found.x)) > -1e-6 and found.x[0] < best:
            best, kept = float(found.x[0]), dict(zip(edges, found.x[1:], strict=True))
    return best, trees.rates(kept)


@pytest.mark.parametrize("seed", range(8))
def test_rates_and_places_match_a_general_optimiser(seed: int) -> None:
    """Sets and aggregates together, with the probabilities at all edges free to choose: no more than 1 % apart."""
    trees = random_trees(100 + seed, queries=3)
    trees = changed(trees, lambda q: replace(q, kind=Kind.SET) if q.name == "q0" else q)
    capacity = (0.9, 0.5)[seed % 2] * trees.load({})
    plan = estimate_plan(trees, Budget(capacity))
    best, reached = numerical_optimum(trees, capacity)
    assert largest_error(trees, plan) == pytest.approx(best, rel=0.01)
    assert trees.rates(plan.keep) == pytest.approx(reached, rel=0.01, abs=0.001)


@pytest.mark.parametrize("seed", range(6))
def test_each_priority_is_served_as_if_there_were_none_below_it(seed: int) -> None:
    """What a priority can reach is tried out on trees without the lower ones, with the higher ones exact."""
    trees = random_trees(seed, queries=6, streams=2)
    levels = {f"q{i}": i % 3 for i in range(6)}
    trees = changed(trees, lambda q: replace(q, priority=levels[q.name]))
    for share in (0.95, 0.7, 0.4, 0.1):
        capacity = share * trees.load({})
        plan = estimate_plan(trees, Budget(capacity))
        shed = False
        for level in (2, 1, 0):
            own = [q for q in trees.queries if q.priority == level]
            if shed:
                assert all(plan.queries[q.name].rate == 0 for q in own)
                continue
            alone = changed(trees, lambda q, level=level: _as_seen_from(level, q))  # type: ignore[misc]
            best = least_error(alone, capacity)
            reached = max(q.weight * plan.queries[q.name].error for q in own)
            assert reached == pytest.approx(best, rel=1e-6)
            shed = best > 0


def _as_seen_from(level: int, query: Leaf) -> Leaf | None:
    if query.priority < level:
        return None
    return replace(query, kind=Kind.EXACT) if query.priority > level else query


@pytest.mark.parametrize("capacity", [1.0, 2.0, 2.3, 2.6, 2.9])
def test_priorities_are_the_lexicographic_optimum_over_a_grid(capacity: float) -> None:
    """All rates in steps of 2 %, costed by the highest rate below each segment, best priority first."""
    trees = changed(MAIN, lambda q: replace(q, constant=0.1, priority={"bytes": 0, "web": 1, "mail": 1}[q.name]))
    steps = np.linspace(0, 1, 51)
    n, web, mail = np.meshgrid(steps, steps, steps, indexing="ij")
    tcp = np.maximum(web, mail)
    load = np.maximum(n, tcp) + 0.5 * n + tcp + 0.5 * web + 0.5 * mail
    with np.errstate(divide="ignore"):
        high, low = (np.where(x < 1, 0.1 / x, 0.0) for x in (np.minimum(web, mail), n))
    fits = load <= capacity + 1e-9
    best_high = high[fits].min()
    best_low = low[fits & (high == best_high)].min()
    plan = estimate_plan(trees, Budget(capacity))
    found = plan.queries["web"].error
    assert best_high >= found * (1 - 1e-9) >= (0.1 / (0.1 / best_high + 0.02) if best_high else 0.0)
    if not found:
        assert plan.queries["bytes"].rate == pytest.approx(0.1 / best_low if best_low else 1.0, abs=0.02)
    else:
        assert plan.queries["bytes"].rate == 0.0


def test_nothing_is_shed_within_the_budget() -> None:
    plan = estimate_plan(MAIN, Budget(capacity=3.5, drop_cost=1e-4))
    assert set(plan.keep.values()) == {1.0}
    assert plan.met
    assert plan.load == pytest.approx(3.5)
    assert {o.error for o in plan.queries.values()} == {0.0}
    assert plan.why == "all that is asked for takes 3.5 s of the 3.5 s that are allowed"


def test_fixed_rates_hold_with_and_without_overload() -> None:
    trees = changed(MAIN, lambda q: replace(q, rate=0.3) if q.name == "web" else q)
    for capacity in (0.9, 1.5, 10):
        plan = estimate_plan(trees, Budget(capacity))
        assert plan.met
        assert plan.queries["web"].rate == pytest.approx(0.3)
        assert plan.queries["web"].error == pytest.approx(0.04 / 0.3)
        assert plan.queries["web"].why == "sampled at the rate it asks for"
    assert plan.keep == pytest.approx({"read": 1.0, "bytes": 1.0, "tcp": 1.0, "web": 0.3, "mail": 1.0})


def test_nothing_is_sampled_on_the_way_to_an_exact_query() -> None:
    trees = changed(MAIN, lambda q: replace(q, kind=Kind.EXACT) if q.name == "web" else q)
    plan = estimate_plan(trees, Budget(capacity=2.8))
    assert (plan.keep["read"], plan.keep["tcp"], plan.keep["web"]) == (1.0, 1.0, 1.0)
    assert plan.queries["web"].error == 0.0
    assert plan.queries["mail"].rate < 1
    assert plan.met


@pytest.mark.parametrize("fixed", [0.0, 2.0])
def test_a_budget_that_cannot_be_met_is_said_so(fixed: float) -> None:
    trees = changed(MAIN, lambda q: replace(q, kind=Kind.EXACT) if q.name == "web" else q)
    plan = estimate_plan(trees, Budget(capacity=1.5, fixed=fixed))
    assert not plan.met
    assert plan.load == pytest.approx(fixed + 2.5)
    assert (plan.keep["bytes"], plan.keep["mail"]) == (0.0, 0.0)
    assert plan.queries["mail"].error == math.inf
    assert plan.queries["mail"].why == "gets nothing: there is no time left for it"
    assert plan.why == (
        f"what may not be shed takes {fixed + 2.5:.3g} s, more than the 1.5 s that are allowed"
        f" ({fixed:.3g} s for the batch itself, the rest for web): suspend a query or allow more time"
    )


def test_a_batch_that_is_too_long_by_itself_cannot_be_met() -> None:
    plan = estimate_plan(MAIN, Budget(capacity=1, fixed=1.2))
    assert not plan.met
    assert plan.load == pytest.approx(1.2)
    assert "(1.2 s for the batch itself)" in plan.why


def test_safety_keeps_a_share_of_the_capacity_free() -> None:
    careful = estimate_plan(MAIN, Budget(capacity=2, fixed=0.1, safety=0.25))
    assert careful.load == pytest.approx(1.5)
    assert rates(careful) == pytest.approx(rates(estimate_plan(MAIN, Budget(capacity=1.4))))


def test_each_query_knows_why() -> None:
    trees = changed(MAIN, lambda q: replace(q, priority=-1, cost=0.0) if q.name == "bytes" else q)
    plan = estimate_plan(trees, Budget(capacity=2.8))
    assert {name: outlook.why for name, outlook in plan.queries.items()} == {
        "bytes": "gets more than it needs: a drop of its own would not pay",
        "web": "sampled: evens out the errors",
        "mail": "not shed: its error would be the largest at any rate",
    }
    assert plan.why == (
        "all that is asked for would take 3 s, more than the 2.8 s that are allowed: sheds web;"
        " the largest weighted error at priority 0 is 0.0667"
    )
    relaxed = estimate_plan(changed(MAIN, lambda q: replace(q, priority=int(q.name == "web"))), Budget(capacity=2.6))
    assert relaxed.queries["web"].why == "not shed: all of it fits"
    many = Trees((Stream("S", 1, tuple(Leaf(f"q{i}", cost=1) for i in range(9))),))
    assert "sheds q0, q1, q2, q3, q4 and 4 more;" in estimate_plan(many, Budget(capacity=1)).why


def test_where_drops_take_all_the_time_the_plan_says_that_no_sample_fits() -> None:
    plan = estimate_plan(MAIN, Budget(capacity=0.5, drop_cost=6e-4))
    assert plan.met
    assert plan.load == 0.0
    assert plan.why.endswith("there is no time for any sample at priority 0")


@given(
    seed=st.integers(0, 10**9),
    kinds=st.lists(st.sampled_from(Kind), min_size=6, max_size=6),
    fixed=st.lists(st.none() | st.floats(0.05, 1), min_size=6, max_size=6),
    priorities=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    share=st.floats(0.01, 1.2),
    drop_cost=st.sampled_from([0.0, 0.05, 0.5]),
)
def test_what_always_holds(
    seed: int,
    kinds: list[Kind],
    fixed: list[float | None],
    priorities: list[int],
    share: float,
    drop_cost: float,
) -> None:
    def change(query: Leaf) -> Leaf:
        i = int(query.name[1:])
        rate = None if kinds[i] is Kind.EXACT else fixed[i]
        return replace(query, kind=kinds[i], rate=rate, priority=priorities[i])

    trees = changed(random_trees(seed, queries=6, streams=2), change)
    budget = Budget(share * trees.load({}), safety=0.1, drop_cost=drop_cost)
    plan = estimate_plan(trees, budget)
    assert all(0 <= keep <= 1 for keep in plan.keep.values())
    assert plan.keep.keys() == {p.node.name for p in trees.places()}
    assert plan.load == pytest.approx(trees.load(plan.keep, drop_cost))
    assert plan.met == (plan.load <= budget.usable)
    for query in trees.queries:
        outlook = plan.queries[query.name]
        assert outlook.rate == pytest.approx(trees.rates(plan.keep)[query.name])
        if query.fixed_rate is not None:
            assert outlook.rate == pytest.approx(query.fixed_rate)
        elif not plan.met:
            assert outlook.rate == 0.0
    shed = [q for q in trees.queries if q.fixed_rate is None and plan.queries[q.name].rate < 1]
    for query in trees.queries:
        if query.fixed_rate is None and any(q.priority > query.priority for q in shed):
            assert plan.queries[query.name].rate == 0.0


def test_errors_of_sampled_sums_stay_within_what_was_predicted() -> None:
    """A window of packets goes through the drops of a plan 1,000 times over; sums are scaled by the rate."""
    rng = np.random.default_rng(5)
    length = rng.lognormal(6, 0.8, size=20_000)
    tcp = rng.random(20_000) < 0.3
    filtered = Segment("tcp", 1e-4, 0.3, (Leaf("sum_tcp", cost=1e-4, constant=_constant(length[tcp])),))
    read = Segment("read", 1e-4, 1.0, (Leaf("sum_all", cost=1e-4, constant=_constant(length)), filtered))
    plan = estimate_plan(Trees((Stream("Main", 20_000, (read,)),)), Budget(capacity=1.5))
    misses, work = {"sum_all": 0, "sum_tcp": 0}, 0.0
    for _ in range(1_000):
        through = rng.random(20_000) < plan.keep["read"]
        to_all = through & (rng.random(20_000) < plan.keep["sum_all"])
        to_tcp = through & (rng.random(20_000) < plan.keep["tcp"])
        kept = {"sum_all": length[to_all], "sum_tcp": length[to_tcp & tcp]}
        work += 1e-4 * (through.sum() + to_all.sum() + to_tcp.sum() + (to_tcp & tcp).sum())
        for (name, values), exact in zip(kept.items(), (length.sum(), length[tcp].sum()), strict=True):
            outlook = plan.queries[name]
            misses[name] += abs(values.sum() / outlook.rate - exact) / exact > outlook.error
    assert work / 1_000 == pytest.approx(plan.load, rel=0.01)
    assert all(n <= 10 for n in misses.values())


def _constant(values: np.ndarray) -> float:
    return error_constant(len(values), values.mean(), values.std())


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"capacity": -1}, r"capacity=-1: give seconds, zero or more"),
        ({"capacity": math.inf}, r"capacity=inf: give seconds, zero or more"),
        ({"capacity": 1, "fixed": math.nan}, r"fixed=nan: give seconds, zero or more"),
        ({"capacity": 1, "safety": 1}, r"safety=1: give a share of the capacity, from 0 to below 1"),
    ],
)
def test_bad_budgets_are_named(budget: dict[str, float], message: str) -> None:
    with pytest.raises(FlowError, match=message):
        Budget(**budget)
