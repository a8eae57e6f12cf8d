"""Which windows punctuation closes, and that coarser punctuation closes the same."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from headgate.progress import closed, coarsened, late_before
from headgate.windows import Number, Sliding

Scale: TypeAlias = tuple[st.SearchStrategy[Number], st.SearchStrategy[Number]]

# Lengths, none much longer than another, with places on the axis that windows of such a length lie around.
SMALL: Scale = (st.integers(1, 12), st.integers(-30, 30))
FRACTIONAL: Scale = (st.fractions(Fraction(1, 4), 6, max_denominator=6), st.fractions(-9, 9, max_denominator=12))
HOUR, NOW = 3_600_000_000, 1_700_000_000_000_000
TODAY: Scale = (st.integers(HOUR // 10, HOUR), st.integers(NOW, NOW + HOUR))
scales = st.sampled_from([SMALL, FRACTIONAL, TODAY])


@st.composite
def windows_and_places(draw: st.DrawFn) -> tuple[list[Sliding], list[Number]]:
    """Give windows (overlapping, tumbling or with gaps, with any origin) and places on their axis."""
    lengths, places = draw(scales)
    window = st.builds(Sliding, lengths, lengths, st.just("v"), st.just(0) | places)
    return draw(st.lists(window, min_size=1, max_size=4)), draw(st.lists(places, min_size=2, max_size=8))


@given(windows_and_places())
def test_a_closed_window_is_complete_and_the_next_one_is_not(case: tuple[list[Sliding], list[Number]]) -> None:
    (window, *_), (p, *values) = case
    last = closed(window, p)
    assert isinstance(last, int)
    tuples = [{"v": value} for value in values]
    before = [t for t in tuples if t["v"] < p]
    for k in [last - 1, last, *(k for k in window.windows(tuples) if isinstance(k, int) and k <= last)]:
        assert window.extent(k, tuples) == window.extent(k, before)
    start, _ = window.bounds(last + 1)
    still_to_come = {"v": max(start, p)}
    assert window.extent(last + 1, [still_to_come]) == [still_to_come]


@given(windows_and_places())
def test_a_tuple_is_late_where_a_closed_window_would_hold_it(case: tuple[list[Sliding], list[Number]]) -> None:
    (window, *_), (p, *values) = case
    last, bound = closed(window, p), late_before(window, p)
    assert last is not None
    assert bound is not None
    for value in [*values, p, p - 1, p - window.range]:
        windows = window.wid_range(value)
        assert any(k <= last for k in windows) == (bool(windows) and value < bound)


@given(windows_and_places())
def test_coarser_punctuation_closes_the_same_windows(case: tuple[list[Sliding], list[Number]]) -> None:
    windows, (p, *_) = case
    coarse = coarsened(p, windows)
    assert coarse is not None
    assert coarse <= p
    assert [closed(window, coarse) for window in windows] == [closed(window, p) for window in windows]
    assert coarsened(coarse, windows) == coarse


@given(windows_and_places())
def test_coarser_punctuation_moves_only_where_a_window_closes(case: tuple[list[Sliding], list[Number]]) -> None:
    windows, (p, q, *_) = case
    same = all(closed(window, p) == closed(window, q) for window in windows)
    assert (coarsened(p, windows) == coarsened(q, windows)) == same


def test_with_a_slide_of_five_seconds_it_has_a_grain_of_five_seconds() -> None:
    #  [----)[----)[----)      5 seconds
    #  [----------)[-------    10 seconds, every 10
    fine, coarse = Sliding(5, 5, "ts"), Sliding(10, 10, "ts")
    assert [coarsened(p, [fine, coarse]) for p in (9, 10, 11, 14, 15)] == [5, 10, 10, 10, 15]
    assert [coarsened(p, [coarse]) for p in (9, 10, 11, 14, 15)] == [0, 10, 10, 10, 10]


def test_ends_count_rather_than_starts() -> None:
    #  0 [-------)
    #  1     [-------)         range 7, slide 4: they end at 7, 11, 15
    assert [coarsened(p, [Sliding(7, 4, "v")]) for p in (7, 8, 10, 11)] == [7, 7, 7, 11]


def test_nothing_and_the_end_stay_what_they_are() -> None:
    window = Sliding(5, 5, "ts")
    assert (coarsened(None, [window]), closed(window, None), late_before(window, None)) == (None, None, None)
    assert coarsened(math.inf, [window]) == closed(window, math.inf) == late_before(window, math.inf) == math.inf
    assert coarsened(math.inf, []) == math.inf
    assert coarsened(7, []) is None
