"""The ledger: fates that last, gaps that hold, rates that are met, and no more of the input than is needed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import FlowError
from headgate.shed.subset.ledger import Ledger, decide, keep_ranges
from headgate.shed.subset.rules import early_share, fan_out, pipeline, single
from headgate.windows import Sliding

windows = st.builds(Sliding, st.integers(1, 9), st.integers(1, 7), st.just("ts"), st.integers(-4, 4))
chains = st.lists(windows, min_size=1, max_size=3).map(tuple)
rates = st.floats(0, 1)


def ledger(window: Sliding, gap: int, name: str = "q") -> Ledger:
    return Ledger.begun(name, [window], gap, at=0)


def dropped(book: Ledger, low: int, high: int) -> list[bool]:
    """Whether each window that begins in [low, high) is dropped."""
    window = book.windows[-1]
    first, past = (-((window.origin - edge) // window.slide) for edge in (low, high))
    return [not book.kept(k) for k in range(first, past)]


def longest_run(fates: list[bool]) -> int:
    longest = run = 0
    for gone in fates:
        run = run + 1 if gone else 0
        longest = max(longest, run)
    return longest


@given(windows, st.integers(1, 5), st.lists(st.tuples(st.integers(0, 60), rates), max_size=12))
def test_the_gap_holds_whatever_the_rates(window: Sliding, gap: int, calls: list[tuple[int, float]]) -> None:
    book, at = ledger(window, gap), 0
    for further, rate in [*calls, (200, 1.0)]:
        at += further
        (book,) = decide([book], at, rate)
    assert longest_run(dropped(book, 0, at)) <= gap


@given(
    st.lists(st.tuples(windows, st.integers(1, 40)), min_size=2, max_size=3),
    st.lists(st.tuples(st.integers(0, 80), rates, st.integers(1, 7)), min_size=1, max_size=10),
)
def test_each_gap_holds_whoever_decides_together(
    queries: list[tuple[Sliding, int]], calls: list[tuple[int, float, int]]
) -> None:
    """From call to call some of the queries are decided together, and the others each by itself."""
    books = [ledger(window, gap, f"q{i}") for i, (window, gap) in enumerate(queries)]
    at = 0
    for further, rate, mask in [*calls, (2_000, 0.9, 7)]:
        at += further
        members = [i for i in range(len(books)) if mask >> i & 1]
        alone = [[i] for i in range(len(books)) if i not in members]
        for together in [members, *alone] if members else alone:
            for i, book in zip(together, decide([books[i] for i in together], at, rate), strict=True):
                books[i] = book
    for book, (_, gap) in zip(books, queries, strict=True):
        assert longest_run(dropped(book, 0, at)) <= gap


@pytest.mark.parametrize("gap", [1, 3, 10])
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.75, 0.9, 1.0])
def test_the_rate_is_met_in_the_long_run_or_capped_by_the_gap(gap: int, rate: float) -> None:
    (book,) = decide([ledger(Sliding(60, 60, "ts"), gap)], 60 * 40_000, rate)
    fates = dropped(book, 0, 60 * 40_000)
    most = gap / (gap + 1)
    assert book.rate == min(rate, most)
    # Batches begin by chance: the spread of the share over n windows is below sqrt(gap / n).
    assert sum(fates) / len(fates) == pytest.approx(book.rate, abs=4 * math.sqrt(gap / len(fates)))
    assert longest_run(fates) == gap
    assert ("more would break a gap" in str(book)) == (rate > most)


def test_all_batches_are_whole() -> None:
    (book,) = decide([ledger(Sliding(10, 5, "ts"), 4)], 50_000, 0.4)
    *whole, last = book.drops
    assert {high - low for low, high in whole} == {4 * 5}
    assert last[1] - last[0] <= 4 * 5
    assert all(b[0] - a[1] >= 5 for a, b in pairwise(whole))


@given(windows, st.integers(1, 5), rates, st.lists(st.integers(0, 400), max_size=8))
def test_fates_do_not_depend_on_how_they_are_asked_for(
    window: Sliding, gap: int, rate: float, stops: list[int]
) -> None:
    (whole,) = decide([ledger(window, gap)], 400, rate)
    steps = ledger(window, gap)
    for stop in [*sorted(stops), 400]:
        (steps,) = decide([steps], stop, rate)
    assert steps == whole


def test_another_name_has_other_fates() -> None:
    a, b = (decide([ledger(Sliding(5, 5, "ts"), 2, name)], 1_000, 0.5)[0] for name in ("a", "b"))
    assert a.drops != b.drops


@given(windows, st.integers(1, 5), rates, rates, st.integers(0, 200))
def test_what_is_decided_stays_decided(window: Sliding, gap: int, rate: float, other: float, at: int) -> None:
    (before,) = decide([ledger(window, gap)], at, rate)
    (after,) = decide([before], 400, other)
    assert dropped(after, 0, at) == dropped(before, 0, at)
    (again,) = decide([after], at, 1.0)
    assert again.drops == after.drops


def test_a_rate_of_zero_ends_a_batch_that_goes_on() -> None:
    # [########----)   ten were to be dropped; after three the burst is over
    (book,) = decide([ledger(Sliding(1, 1, "ts"), 10)], 3, 1.0)
    assert book.drops == ((0, 3),)
    assert book.until == 10
    (book,) = decide([book], 30, 0.0)
    assert book.drops == ((0, 3),)
    (book,) = decide([book], 60, 1.0)
    assert book.drops == ((0, 3), (30, 40), (41, 51), (52, 60))


def test_a_rate_of_zero_holds_for_a_batch_that_reaches_on() -> None:
    (book,) = decide([ledger(Sliding(1, 1, "ts"), 10)], 3, 1.0)
    (book,) = decide([book], 5, 0.0)
    (book,) = decide([book], 16, 1.0)
    assert book.drops == ((0, 3), (5, 15))


def test_batches_of_queries_on_different_grids_go_on_together_as_far_as_both_allow() -> None:
    # a  [######----)         five windows from 0 on
    # b   [#####---)          three windows from 1 on; the common units begin at 0, 6, 12
    a = Ledger("a", (Sliding(2, 2, "ts"),), 5, decided=6, until=10, drops=((0, 6),))
    b = Ledger("b", (Sliding(3, 3, "ts", origin=1),), 10, decided=4, until=10, drops=((1, 4),))
    a, b = decide([a, b], 100, 1.0)
    assert a.drops[0] == (0, 6)  # The unit [6, 12) would have been one window of `a` too many.
    assert longest_run(dropped(a, 0, 100)) <= 5
    # With the same grid they go on to the nearer end.
    c, d = (
        Ledger(n, (Sliding(2, 2, "ts"),), 9, decided=6, until=u, drops=((0, 6),)) for n, u in (("c", 12), ("d", 10))
    )
    assert [book.drops for book in decide([c, d], 12, 0.5)] == [((0, 10),), ((0, 10),)]


def test_a_new_rate_holds_from_the_next_window_on() -> None:
    (book,) = decide([ledger(Sliding(60, 1, "ts"), 10)], 100, 0.0)
    (book,) = decide([book], 111, 1.0)
    assert book.drops == ((100, 110),)


@given(chains, st.integers(1, 4), rates, st.integers(-20, 60), st.integers(0, 60))
def test_no_more_and_no_less_than_what_kept_windows_need(
    levels: tuple[Sliding, ...], gap: int, rate: float, low: int, length: int
) -> None:
    (book,) = decide([Ledger.begun("q", levels, gap, at=0)], 120, rate)
    high = low + length
    needs = {int(levels[-1].bounds(k)[0]) for k in range(-150, 250) if book.kept(k)}
    for level in range(len(levels), -1, -1):
        # A level's own starts are what is needed there; below the last, those that lie on a window of the level below.
        ranges = book.needed(low, high, level)
        got = {t for a, b in ranges for t in range(int(a), int(b))}
        on_grid = {
            t for t in range(low, high) if level == 0 or (t - levels[level - 1].origin) % levels[level - 1].slide == 0
        }
        assert got & on_grid == needs & on_grid
        assert all(a < b for a, b in ranges)
        assert all(b < c for (_, b), (c, _) in pairwise(ranges))
        if level:
            window = levels[level - 1]
            starts = {t for t in needs if (t - window.origin) % window.slide == 0}
            needs = {t for start in starts for t in range(start, start + int(window.range))}


def test_an_undecided_window_needs_its_tuples() -> None:
    (book,) = decide([ledger(Sliding(10, 10, "ts"), 1)], 10, 1.0)
    assert book.drops == ((0, 10),)
    assert book.needed(0, 1_000) == ((10, 1_000),)


def test_queries_decided_together_drop_the_same_stretches() -> None:
    fast, slow = Sliding(20, 10, "ts"), Sliding(30, 30, "ts")
    together = decide([ledger(fast, 30, "fast"), ledger(slow, 10, "slow")], 30_000, 0.5)
    apart = [decide([book], 30_000, 0.5)[0] for book in (ledger(fast, 30, "fast"), ledger(slow, 10, "slow"))]
    assert together[0].drops == together[1].drops

    def unread(books: list[Ledger]) -> float:
        return 1 - sum(float(b - a) for a, b in keep_ranges(books, 0, 30_000)) / 30_000

    grid = fan_out([book.grid for book in together])
    assert (grid.slide, grid.extent, grid.gap) == (30, 40, 10)
    assert unread(together) == pytest.approx(0.5 * early_share(grid), abs=0.06)
    assert unread(apart) < 0.6 * unread(together)


@pytest.mark.parametrize(
    ("levels", "gap"),
    [
        ((Sliding(60, 60, "ts"),), 3),
        ((Sliding(100, 60, "ts"),), 3),
        ((Sliding(600, 60, "ts"),), 20),
        ((Sliding(600, 60, "ts"),), 5),
        ((Sliding(30, 60, "ts"),), 3),
        ((Sliding(10, 10, "ts"), Sliding(100, 100, "ts")), 10),
        ((Sliding(30, 10, "ts"), Sliding(200, 100, "ts")), 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_the_input_that_a_rate_saves_is_as_predicted(levels: tuple[Sliding, ...], gap: int, rate: float) -> None:
    book = Ledger.begun("q", levels, gap, at=0)
    length = int(levels[-1].slide) * 4_000
    wanted = sum(float(b - a) for a, b in book.needed(0, length))
    (book,) = decide([book], length, rate)
    left = sum(float(b - a) for a, b in book.needed(0, length))
    realised = sum(dropped(book, 0, length)) / 4_000
    # Against the fraction that came about, the formula is exact up to the ends of the record.
    assert 1 - left / wanted == pytest.approx(realised * early_share(book.grid), abs=0.005)
    assert realised == pytest.approx(rate, abs=0.1)


@given(chains.filter(lambda levels: all(w.range >= w.slide for w in levels[:-1])), st.integers(1, 4), rates)
def test_a_rate_never_saves_less_than_predicted(levels: tuple[Sliding, ...], gap: int, rate: float) -> None:
    book = Ledger.begun("q", levels, gap, at=0)
    length = int(levels[-1].slide) * 300
    wanted = sum(b - a for a, b in book.needed(0, length))
    (book,) = decide([book], length, rate)
    left = sum(b - a for a, b in book.needed(0, length))
    realised = sum(dropped(book, 0, length)) / 300
    edge = 2 * sum(float(w.range + w.slide) for w in levels) * (gap + 1)
    assert float(wanted - left) >= realised * early_share(book.grid) * float(wanted) - edge


@given(chains, st.integers(1, 4), rates, st.integers(0, 200))
def test_what_is_written_is_read_again(levels: tuple[Sliding, ...], gap: int, rate: float, at: int) -> None:
    (book,) = decide([Ledger.begun("q", levels, gap, at=0)], at, rate)
    restored = Ledger.restored("q", levels, gap, json.loads(json.dumps(book.state())))
    assert restored == book
    assert decide([restored], at + 100, rate) == decide([book], at + 100, rate)


def test_fractions_survive_json() -> None:
    half = Fraction(1, 2)
    (book,) = decide([ledger(Sliding(half, half, "v"), 2)], 50, 0.5)
    assert Ledger.restored("q", book.windows, 2, json.loads(json.dumps(book.state()))) == book


@given(chains, st.integers(1, 4), rates, st.integers(0, 300))
def test_what_is_forgotten_makes_no_difference_to_open_windows(
    levels: tuple[Sliding, ...], gap: int, rate: float, p: int
) -> None:
    (book,) = decide([Ledger.begun("q", levels, gap, at=0)], 300, rate)
    short = book.forget(p)
    assert all(
        short.kept(k) == book.kept(k) for k in range(-100, 400) if levels[-1].bounds(k)[0] + book.grid.extent > p
    )
    assert short.needed(p, 400) == book.needed(p, 400)
    assert decide([short], 500, rate)[0].needed(p, 500) == decide([book], 500, rate)[0].needed(p, 500)


def test_a_dropped_window_is_on_record_until_it_has_ended() -> None:
    # [0, 120) holds the starts of two windows, of which the second ends at 660
    (book,) = decide([ledger(Sliding(600, 60, "ts"), 2)], 1_000, 1.0)
    assert book.drops[:2] == ((0, 120), (180, 300))
    assert not book.forget(659).kept(1)
    assert book.forget(720).drops[0] == (180, 300)


def test_the_record_stays_short() -> None:
    book, window = ledger(Sliding(600, 60, "ts"), 5), Sliding(600, 60, "ts")
    longest = 0
    for now in range(0, 60 * 5_000, 300):
        (book,) = decide([book], now + 300, 0.5)
        book = book.forget(now - 120)
        longest = max(longest, len(json.dumps(book.state())))
    assert len(book.drops) < 5
    assert longest < 250
    assert book.forget(math.inf).drops == book.drops[-1:]
    assert book.windows == (window,)


def test_a_suspended_query_drops_everything_and_resumes_with_an_answer() -> None:
    (book,) = decide([ledger(Sliding(20, 10, "ts"), 2)], 100, 0.0)
    book = book.suspend(500)
    assert book.needed(0, 600) == ((0, 110), (500, 600))  # The window [90, 110) had begun, and is finished.
    (book,) = decide([book], 600, 1.0)
    assert not any(dropped(book, 500, 510))
    assert longest_run(dropped(book, 500, 600)) == 2


def test_a_query_that_joins_in_has_its_own_gap() -> None:
    (long,) = decide([ledger(Sliding(10, 10, "ts"), 20, "long")], 50, 1.0)
    assert long.until == 200
    short = Ledger.begun("short", [Sliding(10, 10, "ts")], 2, at=60)
    long, short = decide([long, short], 600, 1.0)
    assert longest_run(dropped(short, 60, 600)) == 2
    assert long.drops[0] == (0, 50)  # What began is dropped, the rest of the batch is given up.


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_rates_that_make_no_sense(rate: float) -> None:
    with pytest.raises(FlowError, match="for q: give a fraction from 0 to 1"):
        decide([ledger(Sliding(5, 5, "ts"), 1)], 10, rate)


def test_a_common_grid_without_room_drops_nothing_and_says_so() -> None:
    books = decide([ledger(Sliding(7, 7, "ts"), 5, "a"), ledger(Sliding(10, 10, "ts"), 5, "b")], 700, 0.5)
    assert all(book.drops == () for book in books)
    assert str(books[0]) == "a drops 0.0% of its windows, not 50.0%: more would break a gap"


def test_rows_are_an_axis_like_any_other() -> None:
    (book,) = decide([ledger(Sliding(100, 100, "row_num"), 2)], 1_000, 1.0)
    assert book.needed(0, 1_000) == ((200, 300), (500, 600), (800, 900))


def test_a_grid_is_the_pipeline_of_the_windows() -> None:
    book = Ledger.begun("q", [Sliding(3, 2, "ts"), Sliding(3, 3, "w")], 4, at=0)
    assert book.grid == pipeline(book.windows, 4) == replace(single(Sliding(5, 3, "ts"), 4), extent=5)
