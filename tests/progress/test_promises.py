"""The laws of progress: streams that keep their promise are never overtaken, whatever the batches."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.progress import Punctuation, Rule, Seen, Tracker, progress
from headgate.windows import Number


@dataclass(frozen=True)
class Row:
    value: Number | None
    marked: bool = False
    group: str | None = None


Batch: TypeAlias = list[Row]

steps: st.SearchStrategy[Number] = st.integers(0, 9) | st.fractions(0, 9, max_denominator=4)
backwards: st.SearchStrategy[Number] = st.integers(-9, 9) | st.fractions(-9, 9, max_denominator=4)


def seen(batch: Batch) -> dict[str | None, Seen]:
    """Give what a batch showed of each of its groups."""
    shown = {}
    for group in {row.group for row in batch}:
        rows = [row for row in batch if row.group == group]
        values = [row.value for row in rows if row.value is not None]
        marks = [row.value for row in rows if row.value is not None and row.marked]
        shown[group] = Seen(len(rows), max(values, default=None), max(marks, default=None))
    return shown


def floor(rule: Rule, before: Batch) -> Number | None:
    """Give the least value that the next row behind these may have, straight from the promise; None for any."""
    if rule.slack_rows is not None:
        before = before[: max(0, len(before) - rule.slack_rows)]
    if rule.punctuated_by is not None:
        before = [row for row in before if row.marked]
    highest = max((row.value for row in before if row.value is not None), default=None)
    return None if highest is None else highest - (rule.within or 0)


@st.composite
def kept(draw: st.DrawFn, rule: Rule, group: str | None = None) -> Batch:
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


def told(rule: Rule, batches: list[Batch]) -> list[Punctuation]:
    """Give the punctuation behind each batch."""
    tracker = Tracker(rule)
    answers = []
    for now, batch in enumerate(batches):
        tracker.observe(seen(batch), now)
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
def test_punctuation_never_overtakes_a_later_row(data: st.DataObject, rule: Rule) -> None:
    batches = data.draw(in_batches(data.draw(kept(rule))))
    check(batches, told(rule, batches))


@given(st.data(), rules)
def test_punctuation_is_all_that_the_promise_allows(data: st.DataObject, rule: Rule) -> None:
    # Batches of one row have no grain to lose by; a slack this small merges none.
    rows = data.draw(kept(rule))
    answers = told(rule, [[row] for row in rows])
    best: Number | None = None
    for number, answer in enumerate(answers):
        lowest = floor(rule, rows[: number + 1])
        best = lowest if best is None or (lowest is not None and lowest > best) else best
        assert answer == best


@given(st.data(), rules)
def test_punctuation_never_overtakes_a_later_row_of_any_group(data: st.DataObject, rule: Rule) -> None:
    rule = Rule(rule.attr, rule.within, rule.ordered, rule.slack_rows, rule.punctuated_by, by="g")
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
    lambda rule, idle, numeric: Rule(
        rule.attr, rule.within, rule.ordered, rule.slack_rows, rule.punctuated_by, "g", idle, numeric
    ),
    rules,
    st.none() | st.integers(1, 40),
    st.booleans(),
)


@given(idle_rules, moments(), st.integers(0, 300))
def test_a_restored_tracker_behaves_the_same(
    rule: Rule, events: list[tuple[str, int, dict[str | None, Seen]]], later: int
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
    rule: Rule, events: list[tuple[str, int, dict[str | None, Seen]]]
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
def test_a_broken_promise_is_seen_by_these_checks(rule: Rule) -> None:
    batches = [[Row(10)], [Row(11), Row(12)], [Row(2)]]
    with pytest.raises(AssertionError):
        check(batches, told(rule, batches))
