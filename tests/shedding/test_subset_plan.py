"""The plan of `subset`: published figures, least loss against a search, savings counted out, admission control."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Error, FlowError
from headgate.shed.subset.ledger import Ledger, decide, keep_ranges
from headgate.shed.subset.plan import Drop, Step, SubsetPlan, SubsetQuery, Tree, needed_drop, plan, saving
from headgate.windows import Landmark, Sliding


def query(
    name: str,
    *windows: tuple[int, int],
    gap: int = 10,
    costs: tuple[float, ...] = (1.0,),
    per_answer: float = 0.0,
    weight: float = 1.0,
    rate: float = 1.0,
) -> SubsetQuery:
    """A query over windows (range, slide) on an axis on which one tuple comes at each value, unless said otherwise."""
    steps = tuple(Step(Sliding(r, s, "ts"), cost) for (r, s), cost in zip(windows, costs, strict=True))
    return SubsetQuery(name, steps, gap, rate, per_answer, weight, pace=1.0)


def fractions(found: SubsetPlan) -> dict[str, float]:
    return {name: drop.fraction for drop in found.drops for name in drop.queries}


def test_the_published_estimates_for_one_aggregate() -> None:
    # the same work before and after the aggregate, a batch of 10, 25% more than fits: a fifth has to go
    for length in (25, 50, 100):
        tumbling = query("q", (length, length), costs=(5.0,), per_answer=5.0)
        assert needed_drop(tumbling, 0, 0.2 * tumbling.load) == pytest.approx(0.2)
        # one answer for each tuple and no early drops: published as 0.39, with measured costs
        by_one = query("q", (length, 1), costs=(5.0,), per_answer=5.0)
        assert needed_drop(by_one, 0, 0.2 * by_one.load) == pytest.approx(0.4)


def test_the_drop_first_rises_and_then_falls_with_the_slide() -> None:
    # range 100, batch 10: input is saved only from slide 10 on, and below that answers get fewer
    def share(slide: int) -> float:
        q = query("q", (100, slide), costs=(5.0,), per_answer=5.0)
        return 0.2 * q.load / saving(q, 0)

    rising, falling = [share(s) for s in (1, 2, 4, 9)], [share(s) for s in (10, 20, 50, 100)]
    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)


NESTED = query("nested", (10, 10), (100, 100), costs=(1.0, 10.0), per_answer=100.0)


def test_three_parts_of_a_nested_query_cost_the_same() -> None:
    assert NESTED.loads == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize("excess", [0.1, 0.25, 0.5, 0.65, 1.0, 2.0])
def test_the_earlier_the_drop_the_less_of_the_answer_is_lost(excess: float) -> None:
    # the rate is `excess` over capacity: at the input nothing more is lost than the load demands
    to_save = NESTED.load * excess / (1 + excess)
    drops = [needed_drop(NESTED, level, to_save) for level in (0, 1, 2)]
    lost = [math.inf if drop is None else drop for drop in drops]
    assert lost[0] == pytest.approx(excess / (1 + excess))
    assert lost == sorted(lost)
    assert (drops[2] is None) == (excess >= 0.5)  # Behind the aggregates a third of the work can be saved.


def ledger(q: SubsetQuery) -> Ledger:
    return Ledger.begun(q.name, [step.window for step in q.steps if isinstance(step.window, Sliding)], q.gap, at=0)


def work(q: SubsetQuery, book: Ledger, length: int, level: int) -> float:
    """The work a second for one tuple at each value, counted out; drops hold from a level on."""
    done = 0.0
    for i, load in enumerate(q.loads):
        kept = book.needed(0, length, i) if i >= level else ((0, length),)
        done += load * sum(float(b - a) for a, b in kept) / length
    return done


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("windows", [((10, 10), (100, 100)), ((30, 10), (200, 100)), ((50, 10), (400, 20))], ids=str)
def test_ledgers_save_what_was_predicted(windows: tuple[tuple[int, int], ...], level: int) -> None:
    q = query("q", *windows, costs=(1.0, 10.0), per_answer=50.0)
    length = windows[-1][1] * 5_000
    (book,) = decide([ledger(q)], length, 0.4)
    realised = 1 - sum(float(b - a) for a, b in book.needed(0, length, 2)) / length
    assert realised == pytest.approx(0.4, abs=0.05)
    assert q.load - work(q, book, length, level) == pytest.approx(realised * saving(q, level), rel=0.01, abs=0.01)


@pytest.mark.parametrize(
    ("inner", "outer", "gap"),
    [
        (Sliding(10, 10, "ts"), Sliding(100, 100, "ts"), 10),
        (Sliding(20, 20, "ts"), Sliding(47, 40, "ts"), 1),
        (Sliding(45, 20, "ts"), Sliding(45, 20, "ts"), 3),
        (Sliding(50, 50, "ts"), Sliding(55, 50, "ts"), 3),
        (Sliding(20, 20, "ts", origin=5), Sliding(47, 40, "ts"), 2),
        (Sliding(20, 20, "ts", origin=10), Sliding(47, 40, "ts"), 2),
        (Sliding(15, 15, "ts"), Sliding(17, 10, "ts"), 2),
        (Sliding(40, 40, "ts"), Sliding(75, 30, "ts", origin=3), 3),
    ],
    ids=str,
)
def test_between_aggregates_answers_are_saved_whole(inner: Sliding, outer: Sliding, gap: int) -> None:
    # inner  [---)---)---)---)     an answer at 0, 20, 40, 60
    # outer  [--------)            reaches 47, and needs three of them, as if it reached 60
    q = SubsetQuery("q", (Step(inner, 1.0), Step(outer, 1.0)), gap, rate=1.0, pace=1.0)
    length = int(outer.slide) * 10_000
    (book,) = decide([ledger(q)], length, 0.4)
    realised = 1 - sum(book.kept(k) for k in range(10_000)) / 10_000
    starts = np.arange(int(inner.origin), length, int(inner.slide))
    edges = np.searchsorted(starts, [(int(a), int(b)) for a, b in book.needed(0, length, 1)])
    kept = int(np.sum(edges[:, 1] - edges[:, 0]))
    assert 1 - kept / len(starts) == pytest.approx(realised * q.shares(gap)[1], abs=0.01)


def test_below_capacity_nothing_is_dropped() -> None:
    found = plan([Tree((NESTED,))], NESTED.load)
    assert fractions(found) == {"nested": 0.0}
    assert (found.suspended, found.load) == ((), NESTED.load)


@pytest.mark.parametrize("capacity", [2.9, 2.0, 1.0])
def test_a_plan_carried_out_by_ledgers_fits_the_capacity(capacity: float) -> None:
    found = plan([Tree((NESTED,))], capacity)
    assert found.load == pytest.approx(capacity)
    assert found.drops[0].places == ("input",)
    length = 100 * 5_000
    (book,) = decide([ledger(NESTED)], length, found.drops[0].fraction)
    assert work(NESTED, book, length, 0) == pytest.approx(capacity, rel=0.06)


def test_the_place_is_the_first_at_which_anything_is_saved() -> None:
    # gap 3: the outer batch is 3 * 20 long, the windows 40 and 40 + 50 - 10
    places = {
        (50, 10, 40, 20): ("middle",),
        (10, 10, 40, 20): ("input",),
        (10, 10, 400, 20): ("behind",),
    }
    for (r1, s1, r2, s2), place in places.items():
        q = query("q", (r1, s1), (r2, s2), gap=3, costs=(1.0, 1.0), per_answer=100.0)
        assert plan([Tree((q,))], 0.95 * q.load).drops[0].places == place


def test_queries_over_one_input_are_decided_together_where_that_saves_more() -> None:
    fast, slow = query("fast", (20, 10), gap=30), query("slow", (30, 30), gap=10)
    (drop,) = plan([Tree((fast, slow), shared=5.0)], 5.0).drops
    assert drop.queries == ("fast", "slow")
    books = decide([ledger(fast), ledger(slow)], 300_000, drop.fraction)
    read = sum(float(b - a) for a, b in keep_ranges(books, 0, 300_000)) / 300_000
    done = 5.0 * read + sum(work(q, b, 300_000, 0) for q, b in zip((fast, slow), books, strict=True))
    assert done == pytest.approx(5.0, rel=0.05)
    # Slides of 7 and 10 with gaps of 5: ten windows of the one make a common unit, which is too many.
    apart = plan([Tree((query("a", (7, 7), gap=5), query("b", (10, 10), gap=5)), shared=1.0)], 2.5).drops
    assert [d.queries for d in apart] == [("a",), ("b",)]


def test_a_tree_is_decided_apart_where_only_that_saves_enough() -> None:
    # together half of both can go; by itself, 10 of 11 windows of the fast one
    trees = [Tree((query("fast", (1, 1), gap=10, costs=(4.0,)), query("slow", (10, 10), gap=1)), shared=0.1)]
    assert [d.queries for d in plan(trees, 3.0).drops] == [("fast", "slow")]
    found = plan(trees, 2.0)
    assert [d.queries for d in found.drops] == [("fast",), ("slow",)]
    assert not found.suspended


costs = st.floats(0.1, 10)
weights = st.floats(0.2, 5)


@given(st.lists(st.tuples(costs, weights, st.integers(1, 4)), min_size=2, max_size=3), st.floats(0.05, 0.999))
def test_no_other_fractions_that_fit_lose_less(figures: list[tuple[float, float, int]], part: float) -> None:
    queries = [
        query(f"q{i}", (20, 10), gap=gap, costs=(cost,), per_answer=cost, weight=weight)
        for i, (cost, weight, gap) in enumerate(figures)
    ]
    most = sum(saving(q, 0) * q.gap / (q.gap + 1) for q in queries)
    capacity = sum(q.load for q in queries) - part * most
    found = plan([Tree((q,)) for q in queries], capacity)
    assert not found.suspended
    chosen = fractions(found)
    loss = sum(q.weight * chosen[q.name] for q in queries)
    grids = [np.linspace(0, q.gap / (q.gap + 1), 9) for q in queries]
    for tried in itertools.product(*grids):
        load = sum(q.load - saving(q, 0) * f for q, f in zip(queries, tried, strict=True))
        if load <= capacity:
            assert loss <= sum(q.weight * f for q, f in zip(queries, tried, strict=True)) + 1e-6
    assert all(chosen[q.name] <= q.gap / (q.gap + 1) for q in queries)
    assert found.load <= capacity * (1 + 1e-6)


def test_the_costliest_query_is_suspended_where_gaps_leave_no_room() -> None:
    # tumbling, gap 1: half of each can go
    trees = [
        Tree((query(name, (10, 10), gap=1, costs=(cost,)),)) for name, cost in (("a", 1.0), ("b", 6.0), ("c", 3.0))
    ]
    found = plan(trees, 3.0)
    assert [s.query for s in found.suspended] == ["b"]
    assert (
        found.suspended[0].reason == "its gap of 1 cannot be kept: it takes 600.00% of the time, and 300.00% are left"
    )
    assert found.load == pytest.approx(3.0)
    assert [s.query for s in plan(trees, 0.5).suspended] == ["c", "b"]
    assert plan(trees, 0.0) == SubsetPlan((), plan(trees, 0.0).suspended, 0.0)
    # A weight of ten makes it the last to go.
    heavy = [*trees[::2], Tree((query("b", (10, 10), gap=1, costs=(6.0,), weight=10.0),))]
    assert [s.query for s in plan(heavy, 3.5).suspended] == ["c"]


def test_a_suspended_query_resumes_with_room_to_spare_and_does_not_flap() -> None:
    trees = [Tree((query(name, (10, 10), gap=1, costs=(cost,)),)) for name, cost in (("a", 2.0), ("b", 6.0))]

    def suspended(capacities: list[float]) -> list[bool]:
        stopped: list[str] = []
        told = []
        for capacity in capacities:
            stopped = [s.query for s in plan(trees, capacity, stopped).suspended]
            told.append("b" in stopped)
        return told

    # Half of 8 can be dropped: it fits into 4, and resumes from 4 / 0.9 on.
    assert suspended([8.0, 4.1, 3.9, 4.1, 3.9, 4.3, 4.5, 4.1, 3.9]) == [
        False, False, True, True, True, True, False, False, True,
    ]  # fmt: skip


def test_a_plan_says_what_is_the_most() -> None:
    found = plan([Tree((query("q", (10, 10), gap=3),))], 0.25)
    assert found.drops == (Drop(("q",), 0.75, 0.75, ("input",)),)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: query("q", (10, 10), rate=-1.0), "query q: rate is -1.0: give zero or more"),
        (lambda: query("q", (10, 10), weight=0.0), "query q: weight is 0.0: give a number above 0"),
        (lambda: query("q", (10, 10), costs=(math.nan,)), "query q: cost of [RANGE 10, SLIDE 10, WA ts] is nan"),
        (lambda: query("q", (10, 10), gap=0), "gap=0: give the number of answers"),
        (lambda: SubsetQuery("q", (Step(Landmark(5, "ts"), 1.0),), 1, 1.0), "no window of [RANGE ALL, SLIDE 5, WA ts]"),
        (lambda: plan([], -1.0), "capacity is -1.0"),
    ],
)
def test_figures_that_make_no_sense(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(Error) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_rows_and_times_over_one_input_are_decided_apart() -> None:
    by_rows = SubsetQuery("rows", (Step(Sliding(10, 10, "row_num"), 1.0),), 3, rate=5.0, pace=5.0)
    found = plan([Tree((by_rows, query("times", (10, 10), rate=5.0)))], 8.0)
    assert [drop.queries for drop in found.drops] == [("rows",), ("times",)]
    with pytest.raises(FlowError):
        plan([], math.nan)
