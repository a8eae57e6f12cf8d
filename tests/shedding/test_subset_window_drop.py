"""The ledger against window drop by marks on tuples, and both against the exact answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from headgate.progress import closed, opened
from headgate.reference import evaluate
from headgate.reference.window_drop import Marked, aggregate, select, window_drop
from headgate.shed.subset.ledger import Ledger, decide, keep_ranges
from headgate.windows import Sliding

Answers = dict[int, Any]
END = 90

windows = st.builds(Sliding, st.integers(1, 12), st.integers(1, 8), st.just("ts"))
chains = st.lists(windows, min_size=1, max_size=3).map(tuple)
rates = st.floats(0.1, 1)
#: Up to two tuples at a time, at some times none.
streams = st.lists(st.lists(st.integers(1, 99), max_size=2), min_size=END, max_size=END).map(
    lambda times: [{"ts": ts, "v": v} for ts, values in enumerate(times) for v in values]
)


def sql(levels: Sequence[Sliding], below: str = "S") -> str:
    for i, window in enumerate(levels):
        where = " WHERE v % 3 > 0" if i else ""
        attr = "window_start" if i else "ts"
        text = f"SELECT sum(v) AS v [RANGE {window.range}, SLIDE {window.slide}, WA {attr}] FROM {below}{where}"
        below = f"({text})"
    return text


def last_closed(levels: Sequence[Sliding]) -> list[int]:
    """How far the input of each level is complete, and last that of the answers."""
    ends = [END]
    for window in levels:
        ends.append(int(opened(window, cast(int, closed(window, ends[-1])))))
    return ends


def exact(levels: Sequence[Sliding], stream: list[dict[str, int]]) -> Answers:
    """The answers of windows that are complete, by the reference evaluator."""
    if not stream:
        return {}
    rows = evaluate(sql(levels), S=stream)
    return {row["window_start"]: row["v"] for row in rows if 0 <= row["window_start"] < last_closed(levels)[-1]}


def by_ledger(book: Ledger, books: Sequence[Ledger], stream: list[dict[str, int]]) -> Answers:
    """The answers of kept windows over what the ledgers keep of the input."""
    ranges = keep_ranges(books, -100, END)
    left = [t for t in stream if any(a <= t["ts"] < b for a, b in ranges)]
    window = book.windows[-1]
    return {start: v for start, v in exact(book.windows, left).items() if book.kept(int(start // window.slide))}


def by_marks(levels: Sequence[Sliding], marked: list[Marked], *, as_printed: bool = False) -> Answers:
    """The answers of a pipeline over a stream that has been through the window drop."""
    for i, (window, end) in enumerate(zip(levels, last_closed(levels), strict=False)):
        if i:
            marked = select(marked, lambda v: v % 3 > 0)
        marked = aggregate(marked, window, sum, end, as_printed=as_printed)
    return {t.time: t.value for t in marked if not t.fake}


def marks(stream: list[dict[str, int]], grid: Sliding, books: Sequence[Ledger]) -> list[Marked]:
    """The stream through a window drop that has the fates of the ledgers."""
    drops = books[0].drops
    kept = [not any(a <= start < b for a, b in drops) for start in range(END)]
    return window_drop([Marked(t["ts"], t["v"]) for t in stream], grid, END, kept.__getitem__)


def published(levels: Sequence[Sliding]) -> Sliding:
    """The unit of a pipeline by the published rule, whose raster is one."""
    return Sliding(sum(int(w.range) for w in levels) - (len(levels) - 1), levels[-1].slide, "ts")


@given(chains, st.integers(1, 5), rates, streams)
def test_a_pipeline_delivers_what_the_marks_deliver_and_all_of_it_is_exact(
    levels: tuple[Sliding, ...], gap: int, rate: float, stream: list[dict[str, int]]
) -> None:
    books = decide([Ledger.begun("q", levels, gap, at=0)], END, rate)
    whole, delivered = exact(levels, stream), by_ledger(books[0], books, stream)
    assert delivered == by_marks(levels, marks(stream, published(levels), books))
    assert delivered == {start: v for start, v in whole.items() if books[0].kept(start // int(levels[-1].slide))}


siblings_ = st.lists(
    st.builds(Sliding, st.integers(1, 12), st.sampled_from([1, 2, 3, 4, 6]), st.just("ts")), min_size=2, max_size=3
)


@given(siblings_, st.none() | windows, st.integers(1, 3), rates, streams)
def test_a_fan_out_is_exact_and_delivers_no_more_than_the_marks(
    siblings: list[Sliding], shared: Sliding | None, gap: int, rate: float, stream: list[dict[str, int]]
) -> None:
    paths = [(shared, w) if shared else (w,) for w in siblings]
    slide = math.lcm(*(int(w.slide) for w in siblings))
    begun = [Ledger.begun(f"q{i}", p, gap * slide // int(p[-1].slide), at=0) for i, p in enumerate(paths)]
    books = decide(begun, END, rate)
    # By the published rule, where the raster of the shared aggregate is one.
    extent = max(int(published(path).range) - int(path[-1].slide) for path in paths) + slide
    marked = marks(stream, Sliding(extent, slide, "ts"), books)
    for book, path in zip(books, paths, strict=True):
        whole, delivered = exact(path, stream), by_ledger(book, books, stream)
        assert delivered == {start: v for start, v in whole.items() if book.kept(start // int(path[-1].slide))}
        assert delivered.items() <= by_marks(path, marked).items() <= whole.items()


def test_marks_also_deliver_dropped_windows_that_a_longer_sibling_needs_the_tuples_of() -> None:
    # unit       [-)#####           only the first of these units is kept, for A1 (6, 2): [-----)
    # A2 (2, 2)  [-)[-)[-)          all the tuples of its next two windows are there, so they are opened
    stream = [{"ts": ts, "v": 1} for ts in range(END)]
    a1, a2 = Sliding(6, 2, "ts"), Sliding(2, 2, "ts")
    books = [Ledger(str(w), (w,), 9, decided=20, until=20, drops=((2, 20),)) for w in (a1, a2)]
    early = {start for start in by_marks([a2], marks(stream, Sliding(6, 2, "ts"), books)) if start < 20}
    assert early == {0, 2, 4}
    assert {start for start in by_ledger(books[1], books, stream) if start < 20} == {0}


def test_siblings_that_reach_equally_far_deliver_just_what_the_marks_deliver() -> None:
    stream = [{"ts": ts, "v": ts * ts % 97 + 1} for ts in range(END)]
    siblings = [Sliding(3, 2, "ts"), Sliding(4, 3, "ts")]
    books = decide([Ledger.begun(str(w), [w], 6, at=0) for w in siblings], END, 0.5)
    marked = marks(stream, Sliding(7, 6, "ts"), books)
    assert books[0].drops
    for book, window in zip(books, siblings, strict=True):
        assert by_ledger(book, books, stream) == by_marks([window], marked)


def test_marks_as_printed_open_a_window_whose_tuples_are_dropped() -> None:
    # unit      [-----)[######)     the second unit of (7, 6) is dropped
    # A1 (3, 2) [--)
    #             [--)
    #               [--)            it ends after the unit, so the window at 6 seems to be wanted as well,
    #                 [--)          though only the first of its tuples is there
    stream = [{"ts": ts, "v": 1} for ts in range(END)]
    a1 = Sliding(3, 2, "ts")
    books = [Ledger("q", (a1,), 3, decided=12, until=12, drops=((6, 12),))]
    marked = marks(stream, Sliding(7, 6, "ts"), books)
    whole = exact([a1], stream)
    assert by_marks([a1], marked).items() <= whole.items()
    assert by_marks([a1], marked, as_printed=True)[6] == 1
    assert whole[6] == 3


def test_early_drops_leave_what_the_ledger_keeps_where_units_are_single_windows() -> None:
    stream = [{"ts": ts, "v": 1} for ts in range(END)]
    window = Sliding(7, 3, "ts")
    books = decide([Ledger.begun("q", [window], 5, at=0)], END, 0.6)
    read = {t.time for t in marks(stream, window, books) if not t.fake}
    # Up to 4 reach windows that begin before there is a tuple to be marked.
    assert {t for t in read if t > 4} == {t for a, b in keep_ranges(books, 5, END) for t in range(int(a), int(b))}
    assert len(read) < END - 5
