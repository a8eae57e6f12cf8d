"""The rules for slide, extent and gap: the published examples, and what windows really need, counted out."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Error, FlowError, WindowError
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.stream.stages import continuous
from headgate.shed.subset.rules import Grid, before, chain, early_share, fan_out, pipeline, single
from headgate.windows import Landmark, Number, Sliding, TupleSlide

A0, A1, A2 = Sliding(4, 1, "ts"), Sliding(3, 2, "ts"), Sliding(3, 3, "ts")

windows = st.builds(Sliding, st.integers(1, 9), st.integers(1, 7), st.just("ts"), st.integers(-4, 4))


def shape(grid: Grid) -> tuple[Number, Number]:
    return grid.extent, grid.slide


def test_the_published_pipeline() -> None:
    # A1 (3, 2)  [--)        begins at 0, 2, 4 ...
    #              [--)
    # A2 (3, 3)  [--)        holds the answers of 0 and 2
    # unit       [----)
    assert shape(pipeline([A1, A2], gap=1)) == (5, 3)


def test_the_published_fan_out() -> None:
    assert shape(fan_out([single(A1, 10), single(A2, 10)])) == (7, 6)


def test_both_published_compositions_are_the_same() -> None:
    split_first = before(A0, fan_out([single(A1, 9), single(A2, 9)]))
    paths_first = fan_out([pipeline([A0, A1], 9), pipeline([A0, A2], 9)])
    assert shape(pipeline([A0, A1], 9)) == (6, 2)
    assert shape(pipeline([A0, A2], 9)) == (6, 3)
    assert shape(split_first) == shape(paths_first) == (10, 6)
    assert split_first == paths_first


def test_the_gap_of_a_fan_out_counts_the_windows_of_each_query() -> None:
    # a unit of 6 holds three windows of A1 and two of A2
    assert fan_out([single(A1, 9), single(A2, 9)]).gap == 3
    assert fan_out([single(A1, 9), single(A2, 5)]).gap == 2
    assert fan_out([single(A1, 2), single(A2, 9)]).gap == 0


@given(st.lists(windows, min_size=2, max_size=2), st.integers(1, 6))
def test_over_a_slide_of_one_both_compositions_are_the_same(siblings: list[Sliding], length: int) -> None:
    inner = Sliding(length, 1, "ts")
    split_first = before(inner, fan_out([single(w, 99) for w in siblings]))
    paths_first = fan_out([pipeline([inner, w], 99) for w in siblings])
    assert split_first == paths_first


def input_of(levels: list[Sliding], start: int) -> set[int]:
    """The values that the window of the last level which begins here is made of, found by looking at every value."""
    needs = {start}
    for window in reversed(levels):
        starts = {t for t in needs if (t - window.origin) % window.slide == 0}
        needs = {t for start in starts for t in range(start, start + int(window.range))}
    return needs


@given(st.lists(windows, min_size=1, max_size=3))
def test_a_unit_of_a_pipeline_covers_all_that_its_window_needs(levels: list[Sliding]) -> None:
    grid = pipeline(levels, gap=1)
    for k in range(-8, 8):
        low, high = grid.bounds(k)
        needs = input_of(levels, int(levels[-1].bounds(k)[0]))
        assert all(low <= t < high for t in needs)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), st.integers(1, 4))
def test_no_unit_is_longer_than_it_must_be_where_windows_are_aligned(s: int, m: int, over: int, n: int) -> None:
    inner, outer = Sliding(s + over, s, "ts"), Sliding(m * n * s, m * s, "ts")
    needs = input_of([inner, outer], int(outer.bounds(1)[0]))
    grid = pipeline([inner, outer], gap=1)
    assert (min(needs), max(needs) + 1) == grid.bounds(1)


@given(st.lists(windows, min_size=1, max_size=3))
def test_a_unit_of_a_fan_out_covers_all_windows_that_begin_in_it(siblings: list[Sliding]) -> None:
    grid = fan_out([single(w, 1_000) for w in siblings])
    for unit in (-1, 0, 3):
        low, high = grid.bounds(unit)
        ends = []
        for w in siblings:
            inside = [k for k in range(-500, 3_000) if low <= w.bounds(k)[0] < low + grid.slide]
            assert len(inside) == grid.slide / w.slide
            ends.append(w.bounds(inside[-1])[1])
        assert max(ends) == high


def test_lengths_may_be_fractions() -> None:
    third, half = Fraction(1, 3), Fraction(1, 2)
    assert fan_out([single(Sliding(third, third, "v"), 6), single(Sliding(half, half, "v"), 6)]) == Grid("v", 1, 1, 2)
    assert pipeline([Sliding(third, third, "v"), Sliding(1, 1, "window_start")], 2).extent == 1


def test_tuples_unread_in_a_published_batch() -> None:
    # B = 3 windows of (5, 2) are dropped between kept ones: (B + 1) * 2 - 5 = 3 tuples are for nobody, of 6
    #  kept    [----)
    #  dropped   [----)
    #              [----)
    #                [----)
    #  kept            [----)
    #               ###
    assert early_share(single(Sliding(5, 2, "ts"), gap=3)) == 3 / 6


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (Landmark(60, "ts"), "no window of [RANGE ALL, SLIDE 60, WA ts] can be dropped"),
        (TupleSlide(10, "ts", 1, "row_num"), "can be dropped: shed by 'estimate'"),
        (Sliding(5, 5, "row_num", partition=("src",)), "counts them by partition"),
    ],
)
def test_windows_that_cannot_be_dropped(window: Sliding | Landmark | TupleSlide, message: str) -> None:
    with pytest.raises(WindowError) as caught:
        pipeline([Sliding(5, 5, "ts"), window], gap=1)
    assert message in str(caught.value)


@pytest.mark.parametrize("gap", [0, -1, True, 1.5])
def test_gaps_that_make_no_sense(gap: int) -> None:
    with pytest.raises(FlowError, match="give the number of answers that may be missing in a row"):
        single(A1, gap)


def test_a_pipeline_has_a_window() -> None:
    with pytest.raises(FlowError, match="no windows to drop"):
        pipeline([], gap=1)


def test_rows_and_times_are_not_dropped_together() -> None:
    with pytest.raises(WindowError, match="over ts and over row_num cannot be dropped together"):
        fan_out([single(Sliding(5, 5, "ts"), 1), single(Sliding(5, 5, "row_num"), 1)])


COLUMNS = (Field("ts", "timestamp"), Field("src", "string"), Field("len", "int"))
STREAMS = Catalog([Source("A", COLUMNS, "ts"), Source("B", COLUMNS, "ts")])
INNER = "SELECT src, count(*) AS n [RANGE 2 minutes, SLIDE 1 minute] FROM A GROUP BY src"


def chained(sql: str) -> tuple[Sliding, ...]:
    return chain(continuous("q", bind(parse_query(sql), STREAMS)))


def test_the_windows_of_a_nested_query_from_the_inside() -> None:
    minute = 60_000_000
    nested = chained(f"SELECT max(n) AS m [RANGE 1 hour, SLIDE 30 minutes] FROM ({INNER}) WHERE n > 1")
    assert nested == (Sliding(2 * minute, minute, "ts"), Sliding(60 * minute, 30 * minute, "window_start"))
    (united,) = chained("SELECT count(*) AS n [RANGE 1 minute, WA ts] FROM A UNION B")
    assert united == Sliding(minute, minute, "ts")
    assert chained(f"SELECT window_start, max(n) AS m FROM ({INNER}) GROUP BY window_start")[-1].tumbling


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT src FROM A WHERE len > 5", "query q is more than aggregates"),
        ("SELECT A.ts FROM A [RANGE 1 minute], B [RANGE 1 minute] WHERE A.src = B.src", "is more than aggregates"),
        (f"SELECT max(n) AS m [RANGE 1 hour] FROM (({INNER}) UNION ({INNER}))", "unites the answers of aggregates"),
        ("SELECT count(*) AS n [RANGE ALL, SLIDE 1 minute, WA ts] FROM A", "no window of [RANGE ALL"),
    ],
)
def test_queries_that_are_no_pipeline(sql: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        chained(sql)
    assert message in str(caught.value)
