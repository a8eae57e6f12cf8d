"""Conversions between types, as Spark's CAST does them in ANSI mode. What does not fit is a ValueError."""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from headgate.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)

DECIMALS = Context(prec=38, rounding=ROUND_HALF_UP)
"""Decimal arithmetic with the digits of Spark's widest decimal."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}


def cast(value: Any, to: exp.DataType) -> Any:
    """Give a value that is not NULL as a value of another type.

    >>> from sqlglot import exp
    >>> cast("12", exp.DataType.build("INT")), cast(2.5, exp.DataType.build("STRING", dialect="spark"))
    (12, '2.5')
    """
    name = to.this.name
    if name in _INTEGER_BITS:
        return to_integer(value, _INTEGER_BITS[name])
    if name == "DECIMAL":
        precision, scale = ([int(p.name) for p in to.expressions] + [0])[:2] if to.expressions else (10, 0)
        return to_decimal(value, precision, scale)
    if name not in _CONVERTERS:
        raise Error(f"cannot evaluate a cast to {to.sql('spark')}: this type is not supported")
    return _CONVERTERS[name](value)


def to_integer(value: Any, bits: int = 64) -> int:
    """Give a whole number of so many bits. Fractions are cut off, and times count seconds since the epoch.

    >>> to_integer(-2.7), to_integer(True), to_integer(" 42 ")
    (-2, 1, 42)
    """
    if isinstance(value, str) and not _INTEGER.fullmatch(value.strip()):
        raise ValueError("not a whole number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    number = math.floor(to_double(value)) if isinstance(value, date) else int(value)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"out of the range of {bits} bits")
    return number


def to_double(value: Any) -> float:
    """Give a double. Times count seconds since the epoch.

    >>> to_double("1.5e3"), to_double(datetime(1970, 1, 1, 0, 1))
    (1500.0, 60.0)
    """
    if isinstance(value, date):
        return (to_timestamp(value) - EPOCH) / timedelta(seconds=1)
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text) and not _SPECIAL.fullmatch(text):
            raise ValueError("not a number")
        return float(text)
    return float(value)


def to_single(value: Any) -> float:
    """Give the double nearest to the value that a 4-byte float can hold.

    >>> to_single("0.1")
    0.10000000149011612
    """
    number = to_double(value)
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def to_decimal(value: Any, precision: int, scale: int) -> Decimal:
    """Give a decimal with `scale` digits after the point, rounded half up, and at most `precision` in all.

    >>> to_decimal(2.345, 10, 2), to_decimal("7", 10, 1)
    (Decimal('2.35'), Decimal('7.0'))
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise ValueError("not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(-scale), context=Context(prec=400, rounding=ROUND_HALF_UP))
    if abs(rounded) >= Decimal(10) ** (precision - scale):
        raise ValueError(f"more digits than a decimal({precision}, {scale}) holds")
    return rounded


def to_boolean(value: Any) -> bool:
    """Give a truth value. A number is true if it is not zero; a text says it in a word.

    >>> to_boolean("Yes"), to_boolean(0)
    (True, False)
    """
    if isinstance(value, str):
        word = value.strip().lower()
        if word not in _TRUE | _FALSE:
            raise ValueError("neither true nor false")
        return word in _TRUE
    return bool(value)


def to_timestamp(value: Any) -> datetime:
    """Give a time in UTC, without a zone. Numbers are seconds since the epoch.

    >>> to_timestamp("2024-05-01 12:00:00+02:00"), to_timestamp(90)
    (datetime.datetime(2024, 5, 1, 10, 0), datetime.datetime(1970, 1, 1, 0, 1, 30))
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return EPOCH + timedelta(seconds=value if isinstance(value, int) else float(value))


def to_date(value: Any) -> datetime:
    """Give the midnight at which the day of a time begins. The reference has no type of its own for dates.

    >>> to_date("2024-05-01 12:30:00")
    datetime.datetime(2024, 5, 1, 0, 0)
    """
    return to_timestamp(value).replace(hour=0, minute=0, second=0, microsecond=0)


def to_text(value: Any) -> str:
    """Give a value as Spark prints it.

    >>> to_text(True), to_text(1e10), to_text(datetime(2024, 5, 1, 0, 0, 0, 500_000))
    ('true', '1.0E10', '2024-05-01 00:00:00.5')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return _double_text(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
            return value.strftime("%Y-%m-%d %H:%M:%S") + fraction
        case _:
            return str(value)


def _double_text(value: float) -> str:
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"


_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}

_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "BOOLEAN": to_boolean,
    "DATE": to_date,
    "DOUBLE": to_double,
    "FLOAT": to_single,
    "TEXT": to_text,
    "TIMESTAMP": to_timestamp,
    "TIMESTAMPNTZ": to_timestamp,
    "TIMESTAMPTZ": to_timestamp,
    "VARCHAR": to_text,
}
