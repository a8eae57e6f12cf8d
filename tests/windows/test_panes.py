"""Panes: pictures of single cases. The general laws are in test_laws.py."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import WindowError
from headgate.windows import EqualCut, Sliding, WindowType

if TYPE_CHECKING:
    from headgate.windows import Number


@pytest.mark.parametrize(
    ("range_", "slide", "expected"),
    [
        # [-|-|-|-|-)      overlapping: the gcd cuts both bounds of every window
        #     [-|-|-|-|-)
        (10, 4, (2, 5, 2)),
        # [----)[----)     tumbling: the window is the pane
        (5, 5, (5, 1, 1)),
        # [-|-).[-|-)      sampling: a third pane lies in the gap
        (4, 6, (2, 2, 3)),
        # [-|-|-)          a half, every third: a sixth each
        #     [-|-|-)
        (Fraction(1, 2), Fraction(1, 3), (Fraction(1, 6), 3, 2)),
        # [-|-|-|-|-|-|-|-|-|-)   ten minutes every minute
        #   [-|-|-|-|-|-|-|-|-|-)
        (600_000_000, 60_000_000, (60_000_000, 10, 1)),
    ],
)
def test_the_length_of_a_pane(range_: Number, slide: Number, expected: tuple[Number, int, int]) -> None:
    panes = Sliding(range_, slide, "v").type
    assert (panes.cut.length, panes.per_window, panes.per_slide) == expected


def test_a_pane_in_a_gap_is_in_no_window() -> None:
    #      [--|--)  .  [--|--)
    # pane  0  1    2   3  4
    panes = Sliding(4, 6, "v").type
    assert [list(panes.windows(pane)) for pane in range(5)] == [[0], [0], [], [1], [1]]


def test_panes_begin_at_the_origin_and_go_on_before_it() -> None:
    #      |--|--[--|--)
    # pane  -2 -1  0  1
    #     -3 -1  1  3  5
    panes = Sliding(4, 2, "v", origin=1).type
    assert [panes.start(pane) for pane in (-2, -1, 0)] == [-3, -1, 1]
    assert (panes.pane(0), panes.pane(1)) == (-1, 0)
    assert panes.panes(-1) == range(-1, 1)


@pytest.mark.parametrize("growing", [False, True])
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(-40, 40), st.integers(-40, 40))
def test_what_follows_from_the_panes(
    growing: bool, per_window: int, per_slide: int, length: int, origin: int, place: int
) -> None:
    cut = EqualCut(length, origin)
    type_ = WindowType(cut, growing=True) if growing else WindowType(cut, per_window, per_slide)
    last, begun, after = type_.closed_at(place), type_.begun_at(place), type_.next_at(place)
    assert type_.bounds(last)[1] <= place < type_.bounds(last + 1)[1]
    assert cut.start(begun * type_.per_slide) <= place < cut.start((begun + 1) * type_.per_slide)
    assert cut.start((after - 1) * type_.per_slide) < place <= cut.start(after * type_.per_slide)
    same = type_.coarsest
    assert [same.bounds(k) for k in range(-3, 3)] == [type_.bounds(k) for k in range(-3, 3)]
    assert same.within(cut) == type_


def test_cuts_are_shared_where_one_is_made_of_the_other() -> None:
    cut = EqualCut(60)
    assert cut.common(EqualCut(90)) == EqualCut(30)
    assert cut.common(EqualCut(90, origin=5)) is None
    assert (cut.parts_in(EqualCut(20)), cut.parts_in(EqualCut(40)), cut.parts_in(EqualCut(20, 10))) == (3, None, None)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"per_window": 0}, "per_window=0: give a whole number of panes"),
        ({"per_slide": 1.5}, "per_slide=1.5: give a whole number of panes"),
        ({"per_window": 2, "growing": True}, "windows that grow do so pane by pane"),
    ],
)
def test_windows_that_make_no_sense(counts: dict[str, Any], message: str) -> None:
    with pytest.raises(WindowError, match=message):
        WindowType(EqualCut(10), **counts)
