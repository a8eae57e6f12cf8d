"""Whole groups are dropped: what a group delivers is exact, and a lower share keeps some of what a higher one keeps."""

from __future__ import annotations

import json
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import FlowError
from headgate.reference import evaluate
from headgate.shed.subset.groups import GroupRange, GroupShares
from headgate.shed.subset.rules import pipeline
from headgate.windows import Sliding

windows = st.builds(Sliding, st.integers(1, 9), st.integers(1, 7), st.just("ts"), st.integers(-4, 4))
chains = st.lists(windows, min_size=1, max_size=3).map(tuple)
some_steps = st.lists(st.tuples(st.integers(0, 25), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])), max_size=5)


def held(levels: tuple[Sliding, ...], changes: list[tuple[int, float]]) -> GroupShares:
    shares, at = GroupShares(levels), 0
    for further, share in changes:
        at += further
        shares = shares.hold(at, share)
    return shares


def place(key: object) -> float:
    """The place of a key in the space of hashes, from 0 to 1."""
    return int.from_bytes(blake2b(str(key).encode(), digest_size=8).digest()) / 2**64


@given(chains, some_steps, st.integers(-10, 60), st.integers(0, 60))
def test_a_tuple_is_kept_by_the_highest_share_of_the_windows_that_need_it(
    levels: tuple[Sliding, ...], changes: list[tuple[int, float]], low: int, length: int
) -> None:
    shares = held(levels, changes)
    highest: dict[int, float] = {}
    for k in range(-150, 250):
        start = int(levels[-1].bounds(k)[0])
        needs = {start}
        for window in reversed(levels):
            starts = {t for t in needs if (t - window.origin) % window.slide == 0}
            needs = {t for s in starts for t in range(s, s + int(window.range))}
        for t in needs:
            highest[t] = max(highest.get(t, 0.0), shares.share(start))
    pieces = shares.pieces(low, low + length)
    got = {t: piece.share for piece in pieces for t in range(int(piece.low), int(piece.high))}
    assert got == {t: highest[t] for t in range(low, low + length) if highest.get(t)}
    assert sum(int(piece.high - piece.low) for piece in pieces) == len(got)


@given(chains.filter(lambda levels: len(levels) < 3), some_steps, st.lists(st.integers(0, 5), min_size=80, max_size=80))
def test_groups_that_are_delivered_are_exact(
    levels: tuple[Sliding, ...], changes: list[tuple[int, float]], keys: list[int]
) -> None:
    levels = tuple(Sliding(w.range, w.slide, "ts") for w in levels)
    stream = [{"ts": ts, "key": key, "v": ts % 7} for ts, key in enumerate(keys)]
    shares = held(levels, changes)
    pieces = shares.pieces(-100, 200)
    left = [t for t in stream if any(p.low <= t["ts"] < p.high and place(t["key"]) < p.share for p in pieces)]
    query = "S"
    for i, window in enumerate(levels):
        attr = "window_start" if i else "ts"
        query = (
            f"SELECT key, sum(v) AS v [RANGE {window.range}, SLIDE {window.slide}, WA {attr}] FROM {query} GROUP BY key"
        )
        query = query if window is levels[-1] else f"({query})"

    def delivered(tuples: list[dict[str, int]]) -> dict[tuple[int, int], int]:
        rows = evaluate(query, {"S": {"ts": "int", "key": "int", "v": "int"}}, S=tuples)
        return {
            (row["window_start"], row["key"]): row["v"]
            for row in rows
            if place(row["key"]) < shares.share(row["window_start"])
        }

    assert delivered(left) == delivered(stream)


@given(chains, some_steps, st.sampled_from([0.0, 0.3, 0.6]))
def test_lower_shares_read_a_subset_of_what_higher_ones_read(
    levels: tuple[Sliding, ...], changes: list[tuple[int, float]], most: float
) -> None:
    def read(shares: GroupShares) -> set[tuple[int, int]]:
        pieces = shares.pieces(-20, 120)
        times = [(t, piece.share) for piece in pieces for t in range(int(piece.low), int(piece.high))]
        return {(t, key) for t, share in times for key in range(20) if place(key) < share}

    lower = held(levels, [(further, min(share, most)) for further, share in changes])
    assert read(lower) <= read(held(levels, changes))


def test_a_higher_share_holds_at_once_and_a_lower_one_when_windows_have_ended() -> None:
    #  15 [---------)           all groups
    #  20      [---------)      half of them
    #  30                [---------)     three quarters
    shares = GroupShares((Sliding(10, 5, "ts"),)).hold(20, 0.5).hold(30, 0.75)
    assert shares.pieces(10, 50) == (GroupRange(10, 25, 1.0), GroupRange(25, 30, 0.5), GroupRange(30, 50, 0.75))


def test_nothing_is_read_where_no_group_is_kept() -> None:
    shares = GroupShares((Sliding(10, 10, "ts"),)).hold(20, 0.0).hold(40, 1.0)
    assert shares.pieces(0, 60) == (GroupRange(0, 20, 1.0), GroupRange(40, 60, 1.0))


def test_a_share_may_be_put_right_before_a_window_has_a_tuple() -> None:
    assert GroupShares((Sliding(10, 10, "ts"),)).hold(20, 0.5).hold(20, 0.7).steps == ((20, 0.7),)
    assert GroupShares((Sliding(10, 10, "ts"),)).hold(20, 0.5).hold(30, 0.5).steps == ((20, 0.5),)


@given(chains, some_steps, st.integers(0, 120))
def test_what_is_forgotten_makes_no_difference_and_what_is_written_is_read(
    levels: tuple[Sliding, ...], changes: list[tuple[int, float]], p: int
) -> None:
    shares = held(levels, changes)
    reach = int(pipeline(levels, gap=1).extent)
    assert all(shares.forget(p).share(start) == shares.share(start) for start in range(p - reach + 1, 200))
    assert shares.forget(p).pieces(p, 200) == shares.pieces(p, 200)
    assert GroupShares.restored(levels, json.loads(json.dumps(shares.state()))) == shares
    assert len(shares.forget(10_000).steps) <= 1


def test_a_share_is_on_record_until_the_last_window_that_has_it_has_ended() -> None:
    shares = GroupShares((Sliding(100, 10, "ts"),)).hold(20, 0.5).hold(50, 0.2).hold(60, 0.7)
    assert shares.forget(139).share(40) == 0.5
    assert shares.forget(150).steps == ((50, 0.2), (60, 0.7))


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_shares_that_make_no_sense(share: float) -> None:
    with pytest.raises(FlowError, match="give the fraction of groups to keep, from 0 to 1"):
        GroupShares((Sliding(5, 5, "ts"),)).hold(0, share)
