"""The laws of windows and panes, for every kind of window, random specifications and disordered streams."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.windows import Called, Cut, Landmark, Number, Sliding, TupleSlide, Window, WindowType

if TYPE_CHECKING:
    from random import Random

Stream: TypeAlias = list[dict[str, Any]]
Scale: TypeAlias = tuple[st.SearchStrategy[Number], st.SearchStrategy[Number]]

HOUR = 3_600_000_000
NOW = 1_700_000_000_000_000
ON_THE_HOUR = NOW - NOW % HOUR

# A scale pairs lengths with values of which a window of such a length holds some. Times are microseconds.
LENGTHS_OF_TIME = st.integers(HOUR // 10, HOUR) | st.sampled_from([HOUR, HOUR // 2, HOUR // 3])
SMALL = (st.integers(1, 12), st.integers(-30, 30))
FRACTIONAL = (st.fractions(Fraction(1, 4), 6, max_denominator=6), st.fractions(-9, 9, max_denominator=12))
TODAY = (
    LENGTHS_OF_TIME,
    st.integers(NOW - 3 * HOUR, NOW + 3 * HOUR) | st.sampled_from([ON_THE_HOUR - 1, ON_THE_HOUR]),
)
AROUND_THE_EPOCH = (LENGTHS_OF_TIME, st.integers(-3 * HOUR, 3 * HOUR))
scales = st.sampled_from([cast(Scale, scale) for scale in (SMALL, FRACTIONAL, TODAY, AROUND_THE_EPOCH)])


@st.composite
def streams(draw: st.DrawFn, values: st.SearchStrategy[Number], length: Number) -> Stream:
    """Give tuples (v, src, row_num) in any order, with equal values, NULL values and NULL keys among them.

    Many values are `length` apart, since that is where the bound of one window meets another tuple.
    """
    some = draw(st.lists(values, min_size=1, max_size=4))
    related = st.sampled_from([v + step * length for v in some for step in (-1, 0, 1)])
    drawn = draw(st.lists(st.none() | values | related, max_size=12))
    numbers = draw(st.permutations(range(len(drawn))))
    sources = st.sampled_from(["a", "b", None])
    return [{"v": value, "src": draw(sources), "row_num": n} for value, n in zip(drawn, numbers, strict=True)]


@st.composite
def windows_with_streams(draw: st.DrawFn, kind: str) -> tuple[Window, Stream]:
    """Give a specification of a kind and a stream on its scale."""
    # The panes of a cut from outside are short, and those that grow are listed one by one.
    lengths, values = SMALL if kind == "called" else draw(scales)
    rows, row_origins = st.integers(1, 5), st.integers(-3, 3)
    length = draw(lengths)
    tuples = draw(streams(values, length))
    partition = draw(st.sampled_from([(), ("src",), ("src", "row_num")]))
    match kind:
        case "sliding":
            return Sliding(length, draw(lengths), "v", draw(st.just(0) | values), partition), tuples
        case "rows":
            return Sliding(draw(rows), draw(rows), "row_num", draw(row_origins), partition), tuples
        case "landmark":
            return Landmark(length, "v", draw(st.just(0) | values), partition), tuples
        case "landmark rows":
            return Landmark(draw(rows), "row_num", draw(row_origins), partition), tuples
        case "called":
            growing = draw(st.booleans())
            type_ = WindowType(Uneven(), growing=True) if growing else WindowType(Uneven(), draw(rows), draw(rows))
            return Called("uneven(v)", type_.coarsest, "v", partition), tuples
        case _:
            order: Literal["row_num", "rank"] = draw(st.sampled_from(["row_num", "rank"]))
            return TupleSlide(length, "v", draw(rows), order), tuples


every_kind = pytest.mark.parametrize("kind", ["sliding", "rows", "landmark", "landmark rows", "called", "tuples"])


class Uneven(Cut):
    """Panes of three and of seven in turns."""

    def pane(self, place: Number) -> int:
        return place // 10 * 2 + (place % 10 >= 3)

    def start(self, pane: int) -> Number:
        return pane // 2 * 10 + (3 if pane % 2 else 0)

    def pane_sql(self, place: str) -> str:
        return f"floor({place} / 10) * 2 + CAST(pmod({place}, 10L) >= 3 AS INT)"

    def start_sql(self, pane: str) -> str:
        return f"floor({pane} / 2) * 10 + pmod({pane}, 2L) * 3"


@st.composite
def slidings_with_values(draw: st.DrawFn) -> tuple[Sliding, Number]:
    """Give a sliding window (overlapping, tumbling or sampling, with any origin) and a value on its scale."""
    lengths, values = draw(scales)
    return Sliding(draw(lengths), draw(lengths), "v", draw(st.just(0) | values)), draw(values)


@every_kind
@given(st.data())
def test_wids_is_the_inverse_of_extent(kind: str, data: st.DataObject) -> None:
    window, tuples = cast(tuple[Any, Stream], data.draw(windows_with_streams(kind)))
    place = {id(t): i for i, t in enumerate(tuples)}
    by_extent = {(w, place[id(t)]) for w in window.windows(tuples) for t in window.extent(w, tuples)}
    by_wids = {(w, i) for i, t in enumerate(tuples) for w in window.wids(t, tuples)}
    assert by_wids == by_extent


@every_kind
@given(st.data(), st.randoms(use_true_random=False))
def test_the_order_of_the_tuples_means_nothing(kind: str, data: st.DataObject, random: Random) -> None:
    window, tuples = cast(tuple[Any, Stream], data.draw(windows_with_streams(kind)))
    shuffled = random.sample(tuples, len(tuples))
    assert window.windows(shuffled) == window.windows(tuples)
    assert [window.wids(t, shuffled) for t in tuples] == [window.wids(t, tuples) for t in tuples]


@every_kind
@given(st.data())
def test_every_window_holds_a_tuple_and_its_neighbours_are_listed_if_they_do(kind: str, data: st.DataObject) -> None:
    # `windows` could hide an id from both sides of the inverse law: ask `extent` about the ids beside
    window, tuples = cast(tuple[Any, Stream], data.draw(windows_with_streams(kind)))
    listed = window.windows(tuples)
    assert all(window.extent(w, tuples) for w in listed)
    if isinstance(window, Sliding):
        for w in listed:
            for step in (-1, 1):
                beside = (w[0] + step, w[1]) if isinstance(w, tuple) else w + step
                assert (beside in listed) == bool(window.extent(beside, tuples))


@every_kind
@given(st.data())
def test_a_tuple_is_left_out_only_without_a_value_or_in_a_gap(kind: str, data: st.DataObject) -> None:
    window, tuples = cast(tuple[Any, Stream], data.draw(windows_with_streams(kind)))
    for t in tuples:
        match window:
            case TupleSlide():
                value = t["v"]
                assert (value in window.wids(t, tuples)) == (value in window.windows(tuples))
            case Sliding(attr=attr) | Landmark(attr=attr) | Called(attr=attr) if t[attr] is None:
                assert window.wids(t, tuples) == []
            case Sliding(range=length, slide=slide) if length < slide:
                assert len(window.wids(t, tuples)) <= 1
            case Called(type=type_) if type_.gaps:
                assert len(window.wids(t, tuples)) <= 1
            case _:
                assert window.wids(t, tuples)


@given(slidings_with_values())
def test_the_windows_of_the_pane_of_a_value_are_the_windows_of_the_value(
    case: tuple[Sliding, Number],
) -> None:
    window, value = case
    panes = window.type
    assert list(panes.windows(panes.pane(value))) == list(window.wid_range(value))


@given(slidings_with_values())
def test_a_value_lies_within_its_pane(case: tuple[Sliding, Number]) -> None:
    window, value = case
    panes = window.type
    pane = panes.pane(value)
    assert panes.start(pane) <= value < panes.start(pane + 1)
    assert panes.start(pane + 1) - panes.start(pane) == panes.cut.length


@given(slidings_with_values(), st.integers(-20, 20))
def test_the_panes_of_a_window_cover_it_and_no_more(case: tuple[Sliding, Number], k: int) -> None:
    window, _ = case
    panes = window.type
    mine = panes.panes(k)
    assert (panes.start(mine.start), panes.start(mine.stop)) == window.bounds(k)
    assert all(k in panes.windows(pane) for pane in (mine.start, mine.stop - 1))
    assert not any(k in panes.windows(pane) for pane in (mine.start - 1, mine.stop))


@given(slidings_with_values(), st.data())
def test_the_tuples_of_the_panes_are_the_extent_of_the_window(
    case: tuple[Sliding, Number], data: st.DataObject
) -> None:
    window, value = case
    panes = window.type
    near = st.fractions(value - 3 * window.range, value + 3 * window.range)
    tuples = [{"v": v} for v in data.draw(st.lists(near, max_size=10))]
    for k in window.windows(tuples):
        assert isinstance(k, int)
        assert [t for t in tuples if panes.pane(t["v"]) in panes.panes(k)] == window.extent(k, tuples)
