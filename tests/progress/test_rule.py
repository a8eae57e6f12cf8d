"""Progress rules: what users and scripts may say, and one clear error for everything else."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import headgate as hg
from headgate.errors import ProgressError
from headgate.lang import CreateStream, parse_script
from headgate.progress import StreamProgress, progress
from headgate.progress.builtin import Ordered, PunctuatedBy, Within
from headgate.progress.slack import SlackRows

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("within", "distance", "numeric"),
    [
        ("10 seconds", 10 * SECOND, False),
        ("1 minute 30 seconds", 90 * SECOND, False),
        ("0.5 milliseconds", 500, False),
        ("0 seconds", 0, False),
        (timedelta(minutes=1, microseconds=1), 60 * SECOND + 1, False),
        (10, 10, True),
        (0, 0, True),
        (0.1, Fraction(1, 10), True),
        (Decimal("2.50"), Fraction(5, 2), True),
        (Fraction(1, 3), Fraction(1, 3), True),
        ("5", 5, True),
        ("0.1", Fraction(1, 10), True),
    ],
)
def test_within_is_in_the_units_of_the_attribute(within: Any, distance: Any, numeric: bool) -> None:
    found = progress("ts", within=within)
    assert (found.rule, found.numeric) == (Within(distance, numeric), numeric)


@pytest.mark.parametrize(
    ("idle", "microseconds"),
    [
        ("30 seconds", 30 * SECOND),
        (timedelta(seconds=30), 30 * SECOND),
        (30, 30 * SECOND),
        (0.1, 100_000),
        (Fraction(1, 3), 333_333),
        ("30", 30 * SECOND),
        ("1 microsecond", 1),
    ],
)
def test_idle_is_in_microseconds_and_a_number_is_seconds(idle: Any, microseconds: int) -> None:
    assert progress("ts", ordered=True, idle=idle).idle == microseconds


def test_the_other_promises() -> None:
    assert progress("ts", ordered=True) == StreamProgress("ts", Ordered())
    assert progress("ts", slack_rows=0, by="router") == StreamProgress("ts", SlackRows(0), by="router")
    assert progress("ts", punctuated_by="mark") == StreamProgress("ts", PunctuatedBy("mark"))


def test_names_that_are_no_plain_words_stand_in_backquotes() -> None:
    rule = progress("`@timestamp`", ordered=True, by="`the ``best`` router`")
    assert (rule.attr, rule.by) == ("@timestamp", "the `best` router")


BAD: list[tuple[dict[str, Any], str]] = [
    # promises
    ({}, "progress on ts has no rule: give one of within, ordered, slack_rows, punctuated_by"),
    ({"by": "router", "idle": 30}, "has no rule"),
    ({"ordered": False}, "has no rule"),
    ({"within": 5, "ordered": True}, "has the rules within and ordered: give only one"),
    ({"within": 0, "slack_rows": 0}, "has the rules within and slack_rows"),
    ({"ordered": True, "slack_rows": 1, "punctuated_by": "mark"}, "ordered and slack_rows and punctuated_by"),
    ({"ordered": "yes"}, "ordered='yes' for progress on ts: give True or False"),
    # distances
    ({"within": -5}, "within=-5 for progress on ts is negative"),
    ({"within": "-10 seconds"}, "is negative"),
    ({"within": timedelta(seconds=-1)}, "is negative"),
    ({"within": "10 rows"}, "within='10 rows' counts rows: use slack_rows"),
    ({"within": "soon"}, "within='soon' is not a length such as '10 seconds'"),
    ({"within": ""}, "is not a length"),
    ({"within": "1 month"}, "expected a unit of fixed length"),
    ({"within": "0.5 microseconds"}, "finer than a microsecond"),
    ({"within": math.inf}, "within=inf is not a length"),
    ({"within": math.nan}, "within=nan is not a length"),
    ({"within": Decimal("NaN")}, "is not a length"),
    ({"within": True}, "within=True is not a length"),
    ({"within": [5]}, "is not a length"),
    # rows
    ({"slack_rows": -1}, "progress on ts: slack_rows=-1: give a number of rows"),
    ({"slack_rows": 2.5}, "slack_rows=2.5"),
    ({"slack_rows": True}, "slack_rows=True"),
    ({"slack_rows": "5"}, "slack_rows='5'"),
    # quiet time
    ({"ordered": True, "idle": 0}, "idle for progress on ts is 0 microseconds: give more than zero"),
    ({"ordered": True, "idle": "0 seconds"}, "give more than zero"),
    ({"ordered": True, "idle": -1}, "give more than zero"),
    ({"ordered": True, "idle": 1e-9}, "give more than zero"),
    ({"ordered": True, "idle": "10 rows"}, "idle='10 rows' counts rows: give a time"),
    ({"ordered": True, "idle": "a while"}, "idle='a while' is not a length"),
    # names
    ({"ordered": True, "by": "a b"}, "by='a b' is not the name of a column"),
    ({"punctuated_by": ""}, "punctuated_by='' is not the name of a column"),
    ({"punctuated_by": True}, "punctuated_by=True is not the name of a column"),
    ({"attr": "ts + 1", "ordered": True}, "attr='ts + 1' is not the name of a column"),
    ({"attr": "", "ordered": True}, "attr=''"),
    ({"attr": "`", "ordered": True}, "attr='`'"),
    ({"attr": None, "ordered": True}, "attr=None"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_rules(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ProgressError) as raised:
        progress(**{"attr": "ts", **arguments})
    assert message in str(raised.value)
    assert isinstance(raised.value, hg.Error)


def stated(text: str) -> StreamProgress:
    """Give the rule that a script states behind PROGRESS ON."""
    (statement,) = parse_script(f"CREATE STREAM S FROM kafka PROGRESS ON {text}")
    assert isinstance(statement, CreateStream)
    assert statement.progress is not None
    return StreamProgress.of(statement.progress)


def test_a_script_states_the_same_rules() -> None:
    assert stated("ts WITHIN 10 seconds BY router IDLE 1 minute") == progress(
        "ts", within="10 seconds", by="router", idle="1 minute"
    )
    assert stated("v WITHIN 0.5") == progress("v", within=0.5)
    assert stated("ts ORDERED IDLE 30") == progress("ts", ordered=True, idle=30)
    assert stated("ts SLACK 100 ROWS") == progress("ts", slack_rows=100)
    assert stated("ts PUNCTUATED BY mark") == progress("ts", punctuated_by="mark")
    assert stated("`@timestamp` ORDERED") == progress("`@timestamp`", ordered=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ts WITHIN 10 rows", "within=10 rows counts rows"),
        ("ts WITHIN -10 seconds", "is negative"),
        ("ts WITHIN 0.5 microseconds", "within=0.5 microseconds is finer than a microsecond"),
        ("ts ORDERED IDLE 0 seconds", "give more than zero"),
        ("ts ORDERED IDLE 5 rows", "idle=5 rows counts rows"),
    ],
)
def test_bad_rules_of_a_script(text: str, message: str) -> None:
    with pytest.raises(ProgressError) as raised:
        stated(text)
    assert message in str(raised.value)


def test_the_type_of_the_column_decides_whether_the_wall_clock_says_anything() -> None:
    rule = progress("v", ordered=True)
    assert rule.over("timestamp") == rule.over("unknown") == rule
    assert rule.over("decimal(10,2)").numeric
    assert progress("v", within=5).over("bigint").numeric
    assert not progress("v", within="5 seconds").over("timestamp_ntz").numeric


@pytest.mark.parametrize(
    ("rule", "type_", "message"),
    [
        (progress("v", within=5), "timestamp", "within=5 for progress on the time v needs a unit"),
        (progress("v", within="5 seconds"), "bigint", "is a time, but v is bigint: give a number"),
        (progress("v", ordered=True), "string", "v is string, and only a time or a number can progress"),
    ],
)
def test_a_rule_over_a_column_of_another_kind(rule: StreamProgress, type_: str, message: str) -> None:
    with pytest.raises(ProgressError) as raised:
        rule.over(type_)
    assert message in str(raised.value)
