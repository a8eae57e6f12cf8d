"""Landmark windows: pictures of single cases. The general law is in test_laws.py."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.errors import WindowError
from headgate.windows import Category, Landmark


def test_each_window_holds_the_ones_before() -> None:
    #  0 ----)
    #  1 ---------)
    #  2 --------------)
    #       5    12  20
    tuples: list[dict[str, Any]] = [{"v": 20}, {"v": 5}, {"v": 12}, {"v": None}]
    window = Landmark(10, "v")
    assert window.windows(tuples) == [0, 1, 2]
    assert [len(window.extent(k, tuples)) for k in (-1, 0, 1, 2)] == [0, 1, 2, 3]
    assert [window.wids(t, tuples) for t in tuples] == [[2], [0, 1, 2], [1, 2], []]


def test_slides_without_a_tuple_are_answered_too() -> None:
    # -1 ----)
    #  0 ---------)        nothing new, but an answer all the same
    #  1 --------------)
    window = Landmark(10, "ts")
    assert window.windows([{"ts": 15}, {"ts": -1}]) == [-1, 0, 1]
    assert window.windows([]) == []


def test_origin_shifts_every_end() -> None:
    #  0 ------)
    #          13
    window = Landmark(10, "v", origin=3)
    assert window.bounds(0) == (None, 13)
    assert window.windows([{"v": 12}]) == [0]
    assert window.windows([{"v": 13}]) == [1]


def test_a_silent_key_is_answered_as_long_as_the_stream_goes_on() -> None:
    #  0 -a--)
    #  1 -a---b---)
    #  2 -a---b----b---)
    tuples = [{"v": 5, "src": "a"}, {"v": 15, "src": "b"}, {"v": 25, "src": "b"}]
    window = Landmark(10, "v", partition=("src",))
    assert window.wids(tuples[0], tuples) == [(0, ("a",)), (1, ("a",)), (2, ("a",))]
    assert window.wids(tuples[1], tuples) == [(1, ("b",)), (2, ("b",))]


def test_a_partition_that_counts_its_rows_ends_with_its_last_row() -> None:
    # a  0 -- --)        rows 0 and 1 of a
    #    1 -- -- --)     row 2 of a
    # b  0 --)           row 0 of b
    tuples = [{"src": src, "row_num": n} for n, src in enumerate("abaa")]
    window = Landmark(2, "row_num", partition=("src",))
    assert window.windows(tuples) == [(0, ("a",)), (0, ("b",)), (1, ("a",))]
    assert window.extent((0, ("a",)), tuples) == [tuples[0], tuples[2]]


def test_categories() -> None:
    assert Landmark(10, "ts", partition=("src",)).category is Category.CONTEXT_FREE
    assert Landmark(10, "row_num", partition=("src",)).category is Category.FORWARD_CONTEXT_FREE


def test_it_reads_like_the_language() -> None:
    assert str(Landmark(5, "row_num", partition=("a", "b"))) == "[RANGE ALL, SLIDE 5 rows, WA row_num, PA a, b]"


def test_a_slide_of_zero_makes_no_window() -> None:
    with pytest.raises(WindowError, match="SLIDE of the window over ts is 0: give a length"):
        Landmark(0, "ts")
