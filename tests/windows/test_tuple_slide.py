"""Slide-by-tuple windows: pictures of single cases. The general law is in test_laws.py."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from headgate.errors import WindowError
from headgate.windows import Category, TupleSlide


def arriving(*values: int | None) -> list[dict[str, Any]]:
    """Give tuples with these `ts`, numbered in this order of arrival."""
    return [{"ts": value, "row_num": n} for n, value in enumerate(values)]


def test_every_tuple_ends_a_window_that_holds_it() -> None:
    #  4 (----]
    #  9      (----]      without 4, which is as old as the range
    # 12         (----]
    #    -1   4    9  12
    tuples = arriving(4, 9, 12)
    window = TupleSlide(5, "ts", 1, "row_num")
    assert window.windows(tuples) == [4, 9, 12]
    assert [[t["ts"] for t in window.extent(w, tuples)] for w in (4, 9, 12)] == [[4], [9], [9, 12]]
    assert window.wids(tuples[1], tuples) == [9, 12]


def test_arrival_order_decides_which_tuples_end_windows() -> None:
    # arrived   9 4 12 6    rows 0 and 2
    #  9 (----]
    # 12    (----]
    assert TupleSlide(5, "ts", 2, "row_num").windows(arriving(9, 4, 12, 6)) == [9, 12]


def test_rank_decides_in_the_order_of_the_attribute() -> None:
    # in order  4 6 9 12    ranks 0 and 2
    #  4 (----]
    #  9      (----]
    assert TupleSlide(5, "ts", 2, "rank").windows(arriving(9, 4, 12, 6)) == [4, 9]


def test_arrival_decides_between_equal_ranks() -> None:
    # in order  4 4 4 7     ranks 0 and 2 are both 4, rank 3 ends none
    assert TupleSlide(5, "ts", 2, "rank").windows(arriving(4, 7, 4, 4)) == [4]


def test_null_ends_no_window_is_in_none_and_has_no_rank() -> None:
    # arrived   NULL 5 8   by rows only 8 (row 2), by rank only 5 (rank 0)
    tuples = arriving(None, 5, 8)
    assert TupleSlide(5, "ts", 2, "row_num").windows(tuples) == [8]
    assert TupleSlide(5, "ts", 2, "rank").windows(tuples) == [5]
    assert TupleSlide(5, "ts", 1, "rank").wids(tuples[0], tuples) == []


def test_row_numbers_count_in_the_whole_stream() -> None:
    # rows 3 and 4 are left of a filter: row 4 ends a window
    tuples = [{"ts": 10, "row_num": 3}, {"ts": 20, "row_num": 4}]
    assert TupleSlide(5, "ts", 2, "row_num").windows(tuples) == [20]
    assert TupleSlide(5, "ts", 2, "rank").windows(tuples) == [10]


def test_bounds_and_category() -> None:
    window = TupleSlide(Fraction(1, 2), "v", 5, "rank")
    assert window.bounds(Fraction(3, 4)) == (Fraction(1, 4), Fraction(3, 4))
    assert window.category is Category.FORWARD_CONTEXT_AWARE


def test_it_reads_like_the_language() -> None:
    assert str(TupleSlide(300, "ts", 1, "row_num")) == "[RANGE 300, RATTR ts, SLIDE 1 rows, SATTR row_num]"


@pytest.mark.parametrize(
    ("range_", "slide", "order", "message"),
    [
        (0, 1, "rank", "RANGE of the window over ts is 0: give a length greater than zero"),
        (5, -1, "rank", "SLIDE of the window over row_num is -1: give a length greater than zero"),
        (5, Fraction(1, 2), "rank", "SLIDE of the window over row_num is 1/2: give a whole number of rows"),
        (5, 1, "price", "SATTR of the window is price: give row_num or rank(ts)"),
    ],
)
def test_specifications_that_make_no_window(range_: int, slide: int | Fraction, order: Any, message: str) -> None:
    with pytest.raises(WindowError) as caught:
        TupleSlide(range_, "ts", slide, order)
    assert str(caught.value) == message
