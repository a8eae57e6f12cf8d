"""Whatever is measured, the planners of an overload have an answer: clocks stand still, and values run wild."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.shed.controller import Controller, overload
from headgate.shed.estimate.plan import Budget, estimate_plan
from headgate.shed.estimate.tree import Leaf, Segment, Stream, Trees
from headgate.shed.learn.costs import CostModel
from headgate.shed.learn.statistics import Arrived, Passed, Statistics, Summed
from headgate.shed.subset.plan import Step, SubsetQuery, Tree, plan
from headgate.windows import Sliding

seconds = st.floats(1e-9, 1e9)
amounts = st.sampled_from([0.0, 1.0]) | st.floats(0, 1e15) | st.floats(0, 1e-9)
batches = st.lists(st.tuples(st.dictionaries(st.sampled_from("abc"), amounts), seconds), min_size=1, max_size=15)


@given(batches, st.dictionaries(st.sampled_from("abcd"), amounts))
@settings(max_examples=150)
def test_the_cost_model_learns_from_any_batches(
    seen: list[tuple[dict[str, float], float]], asked: dict[str, float]
) -> None:
    model = CostModel()
    for did, took in seen:
        model.observe(did, took)
        assert 0 <= model.predict(asked) < math.inf
    assert CostModel.restored(model.state()).predict(asked) == model.predict(asked)


@given(st.lists(st.tuples(amounts, amounts, seconds, seconds, st.booleans()), max_size=20))
def test_the_controller_decides_whatever_is_measured(
    measured: list[tuple[float, float, float, float, bool]],
) -> None:
    controller = Controller(overload(5))
    for exact, fixed, interval, took, calibrated in measured:
        decision = controller.decide(exact_seconds=exact, fixed_seconds=fixed, interval=interval, calibrated=calibrated)
        assert 0 < decision.budget_seconds < math.inf
        controller.observe(predicted=exact, observed=took)
        assert math.exp(-1) <= controller.correction <= math.e


values = st.floats(-1e308, 1e308) | st.sampled_from([math.inf, -math.inf, math.nan, 0.0])


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12), values, values, seconds), max_size=20))
def test_statistics_follow_any_figures(figures: list[tuple[int, int, float, float, float]]) -> None:
    statistics = Statistics()
    for n, seen, total, squares, took in figures:
        statistics.observe(
            seconds=took,
            streams={"S": Arrived(n, n)},
            segments={"q": Passed(n, seen, seen)},
            aggregates={"a": {None: Summed(n, total, abs(squares), seen)}},
        )
        rate = statistics.rate("S")
        assert rate is not None
        assert math.isfinite(rate.a_batch)
        assert not math.isnan(rate.a_second or 0.0)
    Statistics.restored(statistics.state())


@given(
    st.lists(st.tuples(amounts, st.floats(1e-12, 1.0), st.integers(0, 2), amounts), min_size=1, max_size=5),
    amounts,
    amounts,
)
def test_samples_are_planned_for_any_budget(
    queries: list[tuple[float, float, int, float]], tuples: float, budget: float
) -> None:
    leaves = tuple(
        Segment(f"t{i}", cost, 1.0, (Leaf(f"q{i}", cost=own, constant=constant, priority=priority),))
        for i, (cost, constant, priority, own) in enumerate(queries)
    )
    found = estimate_plan(Trees((Stream("S", tuples, leaves),)), Budget(budget))
    assert all(0 <= outlook.rate <= 1 for outlook in found.queries.values())


@given(st.lists(st.tuples(amounts, amounts, st.integers(1, 9)), min_size=1, max_size=5), st.floats(0, 1.5))
def test_drops_are_planned_for_any_capacity(queries: list[tuple[float, float, int]], part: float) -> None:
    own = tuple(
        SubsetQuery(f"q{i}", (Step(Sliding(60, 20, "ts"), cost),), gap, rate)
        for i, (cost, rate, gap) in enumerate(queries)
    )
    found = plan([Tree(own, 1.0)], part * sum(query.load for query in own))
    assert all(0 <= drop.fraction <= drop.highest for drop in found.drops)
