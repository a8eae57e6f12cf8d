"""Sliding and tumbling windows: pictures of single cases. The general law is in test_laws.py."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from headgate.errors import WindowError
from headgate.windows import Category, Sliding

SECOND = 1_000_000
MINUTE = 60 * SECOND


def test_a_tuple_is_in_ten_windows_of_ten_minutes_every_minute() -> None:
    # thesis section 5.1.1, a tuple five seconds past midnight; ours are numbered by their start
    #  -9 [---------)
    #  -8  [---------)
    #      ...
    #   0           [---------)
    #               ^ 00:00:05
    window = Sliding(10 * MINUTE, MINUTE, "ts")
    assert window.wids({"ts": 5 * SECOND}, []) == list(range(-9, 1))


def test_a_value_on_a_bound_is_in_the_window_that_begins_there() -> None:
    #  0 [----)
    #  1      [----)
    #         ^ 5
    window = Sliding(5, 5, "v")
    assert window.wids({"v": 4}, []) == [0]
    assert window.wids({"v": 5}, []) == [1]


def test_range_need_not_be_a_multiple_of_slide() -> None:
    # -1 [-------)
    #  0     [-------)
    #  1         [-------)
    #    -4  0  3 4  7 8
    window = Sliding(7, 4, "v")
    assert window.wids({"v": 2}, []) == [-1, 0]
    assert window.wids({"v": 3}, []) == [0]
    assert window.wids({"v": 4}, []) == [0, 1]


def test_sampling_windows_leave_gaps() -> None:
    #  0 [--)
    #  1           [--)
    #    0  3   7  10
    window = Sliding(3, 10, "v")
    assert window.wids({"v": 2}, []) == [0]
    assert window.wids({"v": 3}, []) == []
    assert window.windows([{"v": 7}, {"v": 12}, {"v": 40}]) == [1, 4]


def test_windows_before_the_epoch_have_negative_ids() -> None:
    # -2 [----)
    # -1      [----)
    #  0           [----)
    #         ^ -5  0
    window = Sliding(5, 5, "ts")
    assert window.wids({"ts": -5}, []) == [-1]
    assert window.wids({"ts": -6}, []) == [-2]
    assert window.bounds(-1) == (-5, 0)


def test_origin_shifts_every_window() -> None:
    # -1 [----)
    #  0      [----)
    #   -2    3    8
    window = Sliding(5, 5, "v", origin=3)
    assert window.wids({"v": 2}, []) == [-1]
    assert window.bounds(0) == (3, 8)


def test_fractions_are_exact() -> None:
    #  0 [-)
    #  1   [-)
    #  2     [-)     one third each: 2/3 begins window 2, where a double would be in doubt
    third = Fraction(1, 3)
    window = Sliding(third, third, "v")
    assert window.wids({"v": Fraction(2, 3)}, []) == [2]
    assert window.wids({"v": 0.5}, []) == [1]


@pytest.mark.parametrize("nowhere", [None, float("nan"), float("inf")])
def test_a_tuple_without_a_place_is_in_no_window(nowhere: float | None) -> None:
    tuples: list[dict[str, Any]] = [{"v": nowhere}, {"v": 1}]
    window = Sliding(5, 5, "v")
    assert window.wids(tuples[0], tuples) == []
    assert window.windows(tuples) == [0]
    assert window.extent(0, tuples) == [{"v": 1}]


def test_each_partition_counts_its_own_rows() -> None:
    # row_num   0 1 2 3 4
    # a       0 [a . a)           two rows of a, though b came between
    #         1     [. . a)       the second and the third
    # b      -1   [b)
    #         0   [b . b)
    tuples = [{"src": src, "row_num": n} for n, src in enumerate("abaab")]
    window = Sliding(2, 1, "row_num", partition=("src",))
    assert [t["row_num"] for t in window.extent((0, ("a",)), tuples)] == [0, 2]
    assert [t["row_num"] for t in window.extent((1, ("a",)), tuples)] == [2, 3]
    assert [t["row_num"] for t in window.extent((0, ("b",)), tuples)] == [1, 4]
    assert window.windows(tuples) == [
        *((-1, (src,)) for src in "ab"),
        *((0, (src,)) for src in "ab"),
        *((1, (src,)) for src in "ab"),
        (2, ("a",)),
    ]


def test_null_is_a_partition_of_its_own() -> None:
    # NULL  0 [. .)   rows 0 and 2 of the stream are rows 0 and 1 of the partition
    tuples = [{"src": src, "row_num": n} for n, src in enumerate([None, "a", None])]
    window = Sliding(2, 2, "row_num", partition=("src",))
    assert window.extent((0, (None,)), tuples) == [tuples[0], tuples[2]]


def test_a_partition_over_time_splits_windows_as_group_by_does() -> None:
    #      0 [-----)       a at 1, b at 4
    #      1       [-----) a at 7
    tuples = [{"ts": 1, "src": "a"}, {"ts": 4, "src": "b"}, {"ts": 7, "src": "a"}]
    window = Sliding(5, 5, "ts", partition=("src",))
    assert window.windows(tuples) == [(0, ("a",)), (0, ("b",)), (1, ("a",))]
    assert window.extent((0, ("b",)), tuples) == [tuples[1]]


def test_rank_needs_the_tuples_before_and_nothing_else_does() -> None:
    assert Sliding(10, 5, "ts").category is Category.CONTEXT_FREE
    assert Sliding(10, 5, "row_num").category is Category.CONTEXT_FREE
    assert Sliding(10, 5, "ts", partition=("src",)).category is Category.CONTEXT_FREE
    assert Sliding(10, 5, "row_num", partition=("src",)).category is Category.FORWARD_CONTEXT_FREE


def test_it_reads_like_the_language() -> None:
    assert str(Sliding(600, 60, "ts")) == "[RANGE 600, SLIDE 60, WA ts]"
    assert str(Sliding(Fraction(1, 2), 1, "v", origin=2)) == "[RANGE 1/2, SLIDE 1, WA v, ORIGIN 2]"


@pytest.mark.parametrize(
    ("range_", "slide", "attr", "message"),
    [
        (0, 1, "ts", "RANGE of the window over ts is 0: give a length greater than zero"),
        (-5, 1, "ts", "RANGE of the window over ts is -5: give a length greater than zero"),
        (5, 0, "ts", "SLIDE of the window over ts is 0: give a length greater than zero"),
        (5, Fraction(-1, 2), "v", "SLIDE of the window over v is -1/2: give a length greater than zero"),
        (
            5,
            Fraction(5, 2),
            "row_num",
            "SLIDE of the window over row_num is 5/2: give a whole number of rows",
        ),
    ],
)
def test_lengths_that_make_no_window(range_: int, slide: int | Fraction, attr: str, message: str) -> None:
    with pytest.raises(WindowError) as caught:
        Sliding(range_, slide, attr)
    assert str(caught.value) == message
