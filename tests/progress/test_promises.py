"""The laws of progress: streams that keep their promise are never overtaken, whatever the batches."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.progress import Punctuation, Seen, StreamProgress, Tracker, progress
from headgate.progress.builtin import Within
from headgate.progress.slack import SlackRows
from headgate.windows import Number


@dataclass(frozen=True)
class Row:
    value: Number | None
    marked: bool = False
    group: str | None = None


Batch: TypeAlias = list[Row]

steps: st.SearchStrategy[Number] = st.integers(0, 9) | st.fractions(0, 9, max_denominator=4)
backwards: st.SearchStrategy[Number] = st.integers(-9, 9) | st.fractions(-9, 9, max_denominator=4)


def seen(rule: StreamProgress, batch: Batch) -> dict[str | None, Seen]:
    """Give what a batch showed of each of its groups."""
    shown = {}
    for group in {row.group for row in batch}:
        rows = [row for row in batch if row.group == group]
        values = [row.value for row in rows if row.value is not None]
        marks = [row.value for row in rows if row.value is not None and row.marked]
        ranked: list[Number] = []
        if rule.rule.needs.ranks:
            highest = sorted(values, reverse=True)
            ranked = [highest[rank - 1] for rank in rule.rule.needs.ranks if rank <= len(highest)]
        shown[group] = Seen(len(rows), max(values, default=None), max(marks, default=None), ranked)
    return shown


def floor(rule: StreamProgress, before: Batch) -> Number | None:
    """Give the least value that the next row behind these may have, straight from the promise; None for any."""
    if isinstance(rule.rule, SlackRows):
        before = before[: max(0, len(before) - rule.rule.slack)]
    if rule.rule.needs.marked_by is not None:
        before = [row for row in before if row.marked]
    highest = max((row.value for row in before if row.value is not None), default=None)
    return None if highest is None else highest - (rule.rule.distance if isinstance(rule.rule, Within) else 0)


@st.composite
def kept(draw: st.DrawFn, rule: StreamProgress, group: str | None = None) -> Batch:
    """Give rows in an order of arrival that keeps the promise, some right at its limit."""
    rows: Batch = []
    for _ in range(draw(st.integers(1, 20))):
        lowest = floor(rule, rows)
        value = draw(backwards) if lowest is None else lowest + draw(steps)
        missing = draw(st.integers(0, 9)) == 0
        rows.append(Row(None if missing else value, draw(st.booleans()), group))
    return rows


@st.composite
def in_batches(draw: st.DrawFn, rows: Batch) -> list[Batch]:
    """Give the rows cut anywhere, with empty batches among them."""
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=8)))
    bounds = [0, *cuts, len(rows)]
    return [rows[a:b] for a, b in pairwise(bounds)]


def told(rule: StreamProgress, batches: list[Batch]) -> list[Punctuation]:
    """Give the punctuation behind each batch."""
    tracker = Tracker(rule)
    answers = []
    for now, batch in enumerate(batches):
        tracker.observe(seen(rule, batch), now)
        answers.append(tracker.punctuation(now))
    return answers


def check(batches: list[Batch], answers: list[Punctuation]) -> None:
    """Check that no punctuation overtakes a later row, and that none falls behind an earlier one."""
    reached: Number | float = -math.inf
    for number, p in enumerate(answers):
        assert p is not None or reached == -math.inf
        if p is not None:
            assert p >= reached
            reached = p
            assert all(row.value is None or row.value >= p for batch in batches[number + 1 :] for row in batch)


rules = st.one_of(
    st.builds(lambda distance: progress("v", within=distance), steps),
    st.just(progress("v", ordered=True)),
    st.builds(lambda n: progress("v", slack_rows=n), st.integers(0, 6)),
    st.just(progress("v", punctuated_by="mark")),
)


@given(st.data(), rules)
def test_punctuation_never_overtakes_a_later_row(data: st.DataObject, rule: StreamProgress) -> None:
    batches = data.draw(in_batches(data.draw(kept(rule))))
    check(batches, told(rule, batches))


@given(st.data(), rules)
def test_punctuation_is_all_that_the_promise_allows(data: st.DataObject, rule: StreamProgress) -> None:
    # Batches of one row have no grain to lose by; a slack this small merges none.
    rows = data.draw(kept(rule))
    answers = told(rule, [[row] for row in rows])
    best: Number | None = None
    for number, answer in enumerate(answers):
        lowest = floor(rule, rows[: number + 1])
        best = lowest if best is None or (lowest is not None and lowest > best) else best
        assert answer == best


@given(st.data(), rules)
def test_punctuation_never_overtakes_a_later_row_of_any_group(data: st.DataObject, rule: StreamProgress) -> None:
    rule = replace(rule, by="g")
    groups = [data.draw(kept(rule, name)) for name in ("a", "b", None)]
    # All groups show up in the first batch: what nobody has heard of cannot be waited for.
    first, rest = [rows[0] for rows in groups], [rows[1:] for rows in groups]
    turns = data.draw(st.permutations([n for n, rows in enumerate(rest) for _ in rows]))
    later = [rest[n].pop(0) for n in turns]
    batches = [first, *data.draw(in_batches(later))]
    check(batches, told(rule, batches))


@given(
    st.integers(64, 500),
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 1000)), min_size=1, max_size=300),
)
def test_merging_batches_of_a_slack_loses_little_and_promises_nothing_more(
    slack: int, batches: list[tuple[int, int]]
) -> None:
    def exact(rows_late: int, upto: int) -> int:
        arrived = 0
        best = -1
        for rows, highest in reversed(batches[:upto]):
            best = max(best, highest) if arrived >= rows_late else best
            arrived += rows
        return best

    tracker = Tracker(progress("v", slack_rows=slack))
    for number, (rows, highest) in enumerate(batches):
        tracker.observe({None: Seen(rows, highest)}, now=0)
        p = tracker.punctuation(now=0)
        answer = -1 if p is None else p
        assert exact(slack + slack // 64, number + 1) <= answer <= exact(slack, number + 1)


def least_certain(batches: list[Batch], slack: int) -> Number | None:
    """Give what no row to come is below, whatever the order within batches: row by row, from the promise alone."""
    ascending = [
        row.value for batch in batches for row in sorted(batch, key=lambda r: (r.value is not None, r.value or 0))
    ]
    return max((v for v in ascending[: max(0, len(ascending) - slack)] if v is not None), default=None)


@given(st.data(), st.integers(0, 12))
def test_slack_says_all_that_is_certain(data: st.DataObject, slack: int) -> None:
    rule = progress("v", slack_rows=slack)
    batches = data.draw(in_batches(data.draw(kept(rule))))
    assert told(rule, batches) == [least_certain(batches[: n + 1], slack) for n in range(len(batches))]


@given(st.data(), st.integers(0, 3))
def test_an_order_of_rows_within_batches_allows_no_more(data: st.DataObject, slack: int) -> None:
    """The ascending order keeps the promise if any does, and then the next row may be right at the bound."""
    rule = progress("v", slack_rows=slack)
    batches = data.draw(in_batches([row for row in data.draw(kept(rule)) if row.value is not None]))
    ascending = [row for batch in batches for row in sorted(batch, key=lambda r: r.value or 0)]
    for n, row in enumerate(ascending):
        lowest = floor(rule, ascending[:n])
        assert row.value is None or lowest is None or row.value >= lowest
    assert floor(rule, ascending) == least_certain(batches, slack)


@given(st.integers(64, 2_000), st.lists(st.lists(st.integers(0, 5_000), max_size=1_000), max_size=8))
def test_a_large_slack_loses_little_and_promises_nothing_more(slack: int, batches: list[list[int]]) -> None:
    rule, tracker = progress("v", slack_rows=slack), Tracker(progress("v", slack_rows=slack))
    arrived: list[Batch] = []
    for values in batches:
        arrived.append([Row(value) for value in values])
        tracker.observe(seen(rule, arrived[-1]), now=0)
        p = tracker.punctuation(now=0)
        answer = -1 if p is None else p
        least, most = (least_certain(arrived, late) for late in (slack + 2 * (slack // 64 + 1), slack))
        assert (-1 if least is None else least) <= answer <= (-1 if most is None else most)
        assert len(json.dumps(tracker.state())) < 10_000


@st.composite
def moments(draw: st.DrawFn) -> list[tuple[str, int, dict[str | None, Seen]]]:
    """Give what may happen to a tracker: batches, held batches, questions and the end, on a jumping clock."""
    some = st.none() | backwards
    shown = st.dictionaries(
        st.sampled_from(["a", "b", None]), st.builds(Seen, st.integers(0, 5), some, some), max_size=3
    )
    kinds = st.sampled_from(["batch", "batch", "held", "ask", "ask"])
    happening = st.tuples(kinds, st.integers(-50, 200), shown)
    events = draw(st.lists(happening, max_size=15))
    return [*events, ("end", 0, {})] if draw(st.booleans()) else events


def happen(tracker: Tracker, kind: str, now: int, shown: dict[str | None, Seen]) -> None:
    """Let one of the moments happen."""
    match kind:
        case "end":
            tracker.end()
        case "ask":
            tracker.punctuation(now)
        case _:
            tracker.observe(shown, now, held=kind == "held")


idle_rules = st.builds(
    lambda rule, idle, numeric: replace(rule, by="g", idle=idle, numeric=numeric),
    rules,
    st.none() | st.integers(1, 40),
    st.booleans(),
)


@given(idle_rules, moments(), st.integers(0, 300))
def test_a_restored_tracker_behaves_the_same(
    rule: StreamProgress, events: list[tuple[str, int, dict[str | None, Seen]]], later: int
) -> None:
    kept_on, again = Tracker(rule), Tracker(rule)
    for kind, now, shown in events:
        happen(kept_on, kind, now, shown)
        happen(again, kind, now, shown)
        again = Tracker.restored(rule, json.loads(json.dumps(again.state())))
        assert again.state() == kept_on.state()
        assert again.is_idle(now) == kept_on.is_idle(now)
    assert again.is_idle(later) == kept_on.is_idle(later)
    assert again.punctuation(later) == kept_on.punctuation(later)


@given(idle_rules, moments())
def test_punctuation_never_decreases_whatever_happens(
    rule: StreamProgress, events: list[tuple[str, int, dict[str | None, Seen]]]
) -> None:
    tracker = Tracker(rule)
    reached: Number | float = -math.inf
    for kind, now, shown in events:
        happen(tracker, kind, now, shown)
        p = tracker.punctuation(now)
        assert p is not None or reached == -math.inf
        if p is not None:
            assert p >= reached
            reached = p


@pytest.mark.parametrize("rule", [progress("v", within=3), progress("v", slack_rows=2)])
def test_a_broken_promise_is_seen_by_these_checks(rule: StreamProgress) -> None:
    batches = [[Row(10)], [Row(11), Row(12)], [Row(2)]]
    with pytest.raises(AssertionError):
        check(batches, told(rule, batches))
