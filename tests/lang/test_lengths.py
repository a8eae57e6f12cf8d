"""Lengths: every way to write one gives the same node."""

from __future__ import annotations

from decimal import Decimal

import pytest

from headgate.lang import Length, parse_query, to_sql


def length_of(text: str) -> Length:
    length = parse_query(f"SELECT a FROM S [RANGE {text}]").find(Length)
    assert length is not None
    return length


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("10 minutes", "10", "minutes"),
        ("10 minute", "10", "minutes"),
        ("10 MIN", "10", "minutes"),
        ("10 mins", "10", "minutes"),
        ("5 sec", "5", "seconds"),
        ("5 secs", "5", "seconds"),
        ("1 second", "1", "seconds"),
        ("7 microseconds", "7", "microseconds"),
        ("7 millisecond", "7", "milliseconds"),
        ("2 hours", "2", "hours"),
        ("2 day", "2", "days"),
        ("2 weeks", "2", "weeks"),
        ("1000 rows", "1000", "rows"),
        ("1 row", "1", "rows"),
        ("3 tuples", "3", "rows"),
        ("1 tuple", "1", "rows"),
        ("5", "5", None),
        ("0.5", "0.5", None),
        ("1e3", "1000", None),
        ("-5 minutes", "-5", "minutes"),
        ("-0.5", "-0.5", None),
        ("'10 minutes'", "10", "minutes"),
        ('"10 minutes"', "10", "minutes"),
        ("' interval  10 Minutes '", "10", "minutes"),
        ("'-10 minutes'", "-10", "minutes"),
        ("'5'", "5", None),
        ("INTERVAL 10 minutes", "10", "minutes"),
        ("INTERVAL '10 minutes'", "10", "minutes"),
        ("INTERVAL '10' MINUTES", "10", "minutes"),
        ("1 hour 30 minutes", "90", "minutes"),
        ("'1 day 1 hour 30 minutes'", "1530", "minutes"),
        ("1.5 hours 1 second", "5401", "seconds"),
        ("1 row 2 rows", "3", "rows"),
    ],
)
def test_number_and_unit(text: str, number: str, unit: str | None) -> None:
    length = length_of(text)
    assert (length.number, length.unit) == (Decimal(number), unit)
    assert to_sql(length) == (f"{number} {unit}" if unit else number)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("1 microsecond", 1), ("2 ms", None), ("1.5 minutes", 90_000_000), ("1 week", 604_800_000_000)],
)
def test_microseconds(text: str, microseconds: int | None) -> None:
    if microseconds is None:
        with pytest.raises(Exception, match="fixed length"):
            length_of(text)
    else:
        assert length_of(text).microseconds == microseconds


@pytest.mark.parametrize("text", ["5", "5 rows"])
def test_rows_and_bare_numbers_have_no_microseconds(text: str) -> None:
    assert length_of(text).microseconds is None
