"""Panes: pictures of single cases. The general laws are in test_laws.py."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from headgate.windows import Sliding

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
