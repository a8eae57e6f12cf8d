"""The experiments of `drops` in small: the earlier a drop, the fewer answers go, and as many as predicted."""

from __future__ import annotations

import math

import pytest
from benchmarks.drop_plans import (
    AROUND_ONE,
    IN_FAN_OUT,
    IN_PIPELINE,
    Placement,
    fan_out,
    load,
    one,
    pipeline,
    predicted,
    published,
)
from benchmarks.drop_simulation import Simulation
from hypothesis import given
from hypothesis import strategies as st

from headgate.shed.subset.plan import Tree, needed_drop

#: A batch of ten is a hundredth of the answers.
UNITS = 1_000
EXCESSES = (0.1, 0.25, 0.4, 0.6, 1.0, 1.4, 2.0)
NESTED, SIDE_BY_SIDE = pipeline((10, 10), (100, 100)), fan_out((30, 20), (30, 30))
ALIGNED = {
    "pipeline": (NESTED, IN_PIPELINE),
    "pipeline, overlapping": (pipeline((30, 10), (200, 100)), IN_PIPELINE),
    "pipeline, nothing saved at the input": (pipeline((50, 10), (40, 20), gap=3), IN_PIPELINE),
    "fan-out": (SIDE_BY_SIDE, IN_FAN_OUT),
}


def lost(rate: float | None) -> float:
    return math.inf if rate is None else rate


@pytest.mark.parametrize("name", ALIGNED)
def test_the_earlier_the_drop_the_fewer_answers_go_and_as_many_as_predicted(name: str) -> None:
    tree, placements = ALIGNED[name]
    simulation = Simulation(tree, UNITS)
    for excess in EXCESSES:
        measured = [lost(simulation.needed_drop(p, excess)) for p in placements]
        assert measured == sorted(measured), excess
        assert measured == pytest.approx([lost(predicted(tree, p, excess)) for p in placements], abs=0.03), excess


@pytest.mark.parametrize("slide", [1, 8, 10, 20, 100])
@pytest.mark.parametrize("placement", AROUND_ONE, ids=lambda p: p.name)
def test_one_aggregate_loses_what_was_predicted_whatever_its_slide(slide: int, placement: Placement) -> None:
    tree = one(100, slide)
    measured = lost(Simulation(tree, 2 * UNITS).needed_drop(placement, 0.1))
    assert measured == pytest.approx(lost(predicted(tree, placement, 0.1)), abs=0.03)


def test_windows_that_are_not_aligned_lose_no_more_than_predicted() -> None:
    tree = pipeline((60, 50), (120, 70), gap=3)
    simulation = Simulation(tree, UNITS)
    for placement in IN_PIPELINE:
        assert lost(simulation.needed_drop(placement, 0.25)) <= lost(predicted(tree, placement, 0.25)) + 0.01


lengths = st.integers(1, 12)
windows = st.tuples(lengths, lengths)


@given(windows, windows, st.integers(1, 4), st.floats(0, 1), st.booleans())
def test_all_that_is_delivered_is_exact(
    first: tuple[int, int], second: tuple[int, int], gap: int, drop: float, nested: bool
) -> None:
    tree, placements = (pipeline, IN_PIPELINE) if nested else (fan_out, IN_FAN_OUT)
    simulation = Simulation(tree(first, second, gap=gap), 40)
    assert [simulation.wrong(simulation.outcome(p, drop)) for p in placements] == [0, 0, 0]


@pytest.mark.parametrize("name", ALIGNED)
@pytest.mark.parametrize("drop", [0.3, 1.0])
def test_no_gap_is_broken_before_the_aggregates(name: str, drop: float) -> None:
    tree, placements = ALIGNED[name]
    simulation = Simulation(tree, UNITS)
    for placement in placements[:-1]:
        assert simulation.longest_gap(simulation.outcome(placement, drop)) <= tree.queries[0].gap


def test_random_drops_after_the_aggregates_break_the_gap() -> None:
    simulation = Simulation(NESTED, UNITS)
    assert simulation.longest_gap(simulation.outcome(IN_PIPELINE[-1], 0.85)) > 20


@pytest.mark.parametrize("excess", EXCESSES)
def test_predictions_are_those_of_the_planner(excess: float) -> None:
    (query,) = NESTED.queries
    for placement in IN_PIPELINE:
        planned = needed_drop(query, placement.level, query.load * excess / (1 + excess))
        assert lost(predicted(NESTED, placement, excess)) == pytest.approx(lost(planned))


@pytest.mark.parametrize("tree", [NESTED, SIDE_BY_SIDE], ids=["pipeline", "fan-out"])
def test_the_work_counted_without_drops_is_the_load(tree: Tree) -> None:
    assert Simulation(tree, UNITS).outcome(IN_FAN_OUT[0], 0.0).load == pytest.approx(load(tree), rel=0.01)


def test_published_formulas_agree_for_tumbling_windows_and_save_less_where_windows_overlap() -> None:
    at_input, after = AROUND_ONE
    for slide in (1, 8, 100):
        assert published(one(100, slide), at_input, 0.05) == pytest.approx(predicted(one(100, slide), at_input, 0.05))
    for slide in (10, 20, 50):
        assert lost(published(one(100, slide), at_input, 0.05)) > lost(predicted(one(100, slide), at_input, 0.05))
    for slide in (1, 10, 100):
        assert published(one(100, slide), after, 0.05) == predicted(one(100, slide), after, 0.05)
