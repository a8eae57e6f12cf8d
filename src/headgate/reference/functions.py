"""The scalar functions of Spark SQL that the reference evaluator knows, over values that are not NULL."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from headgate.reference.casts import DECIMALS, EPOCH, MICROSECOND, to_double, to_text, to_timestamp

UNITS = {
    "MICROSECOND": MICROSECOND,
    "MILLISECOND": timedelta(milliseconds=1),
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}
"""The units of fixed length. Months and years are not among them."""


def interval(count: str, unit: str) -> timedelta:
    """Give so many of a unit.

    >>> interval("5", "MINUTES"), interval("1.5", "second")
    (datetime.timedelta(seconds=300), datetime.timedelta(seconds=1, microseconds=500000))
    """
    word = unit.upper().removesuffix("S")
    if word not in UNITS:
        raise ValueError(f"{unit} is not a unit of fixed length")
    return int(Decimal(count) * (UNITS[word] // MICROSECOND)) * MICROSECOND


def intervals(text: str) -> timedelta:
    """Give the sum of the intervals in a text of counts and units.

    >>> intervals("1 day 2 hours")
    datetime.timedelta(days=1, seconds=7200)
    """
    words = text.split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return sum((interval(count, unit) for count, unit in pairs), timedelta())


def floor(value: Any) -> Any:
    """Give the greatest whole number not above the value: a decimal for a decimal, else an integer.

    >>> floor(-1.5), floor(Decimal("2.7"))
    (-2, Decimal('2'))
    """
    return _whole(value, ROUND_FLOOR)


def ceil(value: Any) -> Any:
    """Give the least whole number not below the value.

    >>> ceil(-1.5), ceil(Decimal("2.1"))
    (-1, Decimal('3'))
    """
    return _whole(value, ROUND_CEILING)


def _whole(value: Any, rounding: str) -> Any:
    whole = Decimal(value).to_integral_value(rounding=rounding)
    return whole if isinstance(value, Decimal) else int(whole)


def round_half_up(value: Any, places: int = 0) -> Any:
    """Give the value to so many digits after the point, halves away from zero.

    >>> round_half_up(2.5), round_half_up(-0.125, 2), round_half_up(1250, -2)
    (3.0, -0.13, 1300)
    """
    if isinstance(value, float) and not math.isfinite(value):
        return value
    # Goes by the digits that are printed: 2.675 goes up, although the double is a little below.
    digits = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    exponent = digits.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -places:
        return value
    rounded = digits.quantize(Decimal(1).scaleb(-places), context=DECIMALS)
    return rounded if isinstance(value, Decimal) else type(value)(rounded)


def sqrt(value: Any) -> float:
    """Give the square root, NaN for a number below zero.

    >>> sqrt(9), sqrt(-1)
    (3.0, nan)
    """
    number = to_double(value)
    return math.sqrt(number) if number >= 0 else math.nan


def power(base: Any, exponent: Any) -> float:
    """Give a power as a double: infinity or NaN where Python would raise an error.

    >>> power(2, 10), power(0, -1), power(-8, 0.5)
    (1024.0, inf, nan)
    """
    x, y = to_double(base), to_double(exponent)
    odd = y.is_integer() and y % 2 == 1
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:
        if x == 0:
            return math.copysign(math.inf, x) if odd else math.inf
        return math.nan


def ln(value: Any) -> float | None:
    """Give the natural logarithm, NULL for zero and below.

    >>> ln(1), ln(0) is None
    (0.0, True)
    """
    number = to_double(value)
    return None if number <= 0 else math.log(number)


def exponential(value: Any) -> float:
    """Give e to a power, infinity where a double cannot hold it.

    >>> exponential(0), exponential(1000)
    (1.0, inf)
    """
    try:
        return math.exp(to_double(value))
    except OverflowError:
        return math.inf


def sign(value: Any) -> float:
    """Give -1.0, 0.0 or 1.0, and NaN for NaN.

    >>> sign(-3), sign(0.5)
    (-1.0, 1.0)
    """
    number = to_double(value)
    return math.copysign(1.0, number) if number > 0 or number < 0 else number


def concat(*values: Any) -> str:
    """Give the texts of all values in a row.

    >>> concat("a", 1, True)
    'a1true'
    """
    return "".join(to_text(value) for value in values)


def length(value: Any) -> int:
    """Give the number of characters.

    >>> length("wörld"), length(1234)
    (5, 4)
    """
    return len(to_text(value))


def substring(value: Any, start: int, count: int | None = None) -> str:
    """Give `count` characters from position `start`. It counts from 1, or from the end if it is below zero.

    >>> substring("abcde", 2, 3), substring("abcde", -2), substring("abcde", 0, 2), substring("abc", -5, 3)
    ('bcd', 'de', 'ab', 'a')
    """
    text = to_text(value)
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if count is None else first + count
    return text[max(first, 0) : max(end, 0)]


def trim(value: Any, position: str, characters: str = " ") -> str:
    """Give a text without the given characters at its LEADING end, its TRAILING end, or BOTH.

    >>> trim("  a ", "BOTH"), trim("xxaxx", "LEADING", "x")
    ('a', 'axx')
    """
    text = to_text(value)
    if position != "TRAILING":
        text = text.lstrip(characters)
    return text if position == "LEADING" else text.rstrip(characters)


def like(value: Any, pattern: str, escape: str = "\\", *, ignore_case: bool = False) -> bool:
    """Give whether the whole text fits a pattern: % is any text, _ any character; after `escape`, themselves.

    >>> like("headgate", "head%"), like("a_b", "a!_b", "!"), like("axb", "a!_b", "!")
    (True, True, False)
    """
    parts = re.findall(f"{re.escape(escape)}.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(part, re.escape(part[-1])) for part in parts)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return re.fullmatch(regex, to_text(value), flags) is not None


def truncate_time(value: Any, unit: str) -> datetime:
    """Give the start of the unit (second, minute, hour, day) that a time is in.

    >>> truncate_time(datetime(2024, 5, 1, 12, 34, 56), "HOUR")
    datetime.datetime(2024, 5, 1, 12, 0)
    """
    since = to_timestamp(value) - EPOCH
    return EPOCH + since // UNITS[unit] * UNITS[unit]


def since_epoch(value: Any, unit: str) -> int:
    """Give how many whole units a time is past the epoch. Before the epoch it is below zero.

    >>> since_epoch(datetime(1970, 1, 1, 0, 1), "SECOND"), since_epoch(datetime(1969, 12, 31), "SECOND")
    (60, -86400)
    """
    return (to_timestamp(value) - EPOCH) // UNITS[unit]


def from_epoch(count: Any, unit: str) -> datetime:
    """Give the time that is so many units past the epoch.

    >>> from_epoch(60_000_000, "MICROSECOND")
    datetime.datetime(1970, 1, 1, 0, 1)
    """
    return EPOCH + int(Decimal(count) * (UNITS[unit] // MICROSECOND)) * MICROSECOND
