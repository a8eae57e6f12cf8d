"""Comparison and arithmetic of values that are not NULL, with Spark's rules for mixed types and NaN."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from headgate.reference.casts import DECIMALS, to_boolean, to_double, to_integer, to_timestamp


def aligned(a: Any, b: Any) -> tuple[Any, Any]:
    """Give both values as the type in which Spark compares or adds them.

    A text meets a time, a number or a truth value as that type; a double makes the other a double.

    >>> aligned("7", 3), aligned(Decimal("0.5"), 2.0)
    ((7, 3), (0.5, 2.0))
    """
    return _towards(a, b), _towards(b, a)


def _towards(value: Any, other: Any) -> Any:
    if isinstance(value, date):
        return to_timestamp(value)
    if isinstance(value, str):
        match other:
            case bool():
                return to_boolean(value)
            case int():
                return to_integer(value)
            case float() | Decimal():
                return to_double(value)
            case date():
                return to_timestamp(value)
    if isinstance(value, int | Decimal) and isinstance(other, float):
        return float(value)
    if isinstance(value, Decimal) and isinstance(other, str):
        return float(value)
    return value


def compare(a: Any, b: Any) -> int:
    """Give -1, 0 or 1 as `a` is less than, equal to or greater than `b`. NaN equals itself and is the greatest.

    >>> compare(1, 1.5), compare(float("nan"), float("nan")), compare(float("inf"), float("nan"))
    (-1, 0, -1)
    """
    left, right = (_sortable(value) for value in aligned(a, b))
    return int(left > right) - int(left < right)


def _sortable(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise TypeError("only single values are compared")
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0.0 if is_nan else value)


def add(a: Any, b: Any) -> Any:
    """Give a + b: numbers, a time and an interval, or two intervals.

    >>> add(1, Decimal("0.05"))
    Decimal('1.05')
    """
    a, b = _operands(a, b)
    return DECIMALS.add(a, b) if isinstance(a, Decimal) else a + b


def subtract(a: Any, b: Any) -> Any:
    """Give a - b. For two times, it is the interval between them.

    >>> subtract(Decimal("1.5"), 1)
    Decimal('0.5')
    """
    a, b = _operands(a, b)
    return DECIMALS.subtract(a, b) if isinstance(a, Decimal) else a - b


def multiply(a: Any, b: Any) -> Any:
    """Give a * b.

    >>> multiply(Decimal("0.1"), 0.5)
    0.05
    """
    a, b = _operands(a, b)
    return DECIMALS.multiply(a, b) if isinstance(a, Decimal) else a * b


def negate(value: Any) -> Any:
    """Give -value.

    >>> negate(5), negate(Decimal("0.0"))
    (-5, Decimal('0.0'))
    """
    return DECIMALS.minus(value) if isinstance(value, Decimal) else -value


def absolute(value: Any) -> Any:
    """Give the value without its sign.

    >>> absolute(-5), absolute(Decimal("-0.5"))
    (5, Decimal('0.5'))
    """
    return DECIMALS.abs(value) if isinstance(value, Decimal) else abs(value)


def divide(a: Any, b: Any) -> Any:
    """Give a / b: a decimal if one of them is a decimal and none is a double, else a double.

    Decimals keep 38 digits, where Spark rounds to a scale that it derives from the declared types.

    >>> divide(7, 2), divide(Decimal("7.0"), 2)
    (3.5, Decimal('3.5'))
    """
    a, b = _operands(a, b)
    _refuse_zero(b)
    if isinstance(a, Decimal):
        return DECIMALS.divide(a, b)
    return a / b if isinstance(a, timedelta) else float(a) / float(b)


def divide_whole(a: Any, b: Any) -> int:
    """Give a DIV b: the quotient without its fraction, cut towards zero.

    >>> divide_whole(-7, 2)
    -3
    """
    a, b = _operands(a, b)
    _refuse_zero(b)
    if isinstance(a, int):
        quotient: int = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return int(DECIMALS.divide_int(a, b)) if isinstance(a, Decimal) else int(a / b)


def remainder(a: Any, b: Any) -> Any:
    """Give a % b, with the sign of `a`.

    >>> remainder(-7, 3), remainder(7, -3), remainder(Decimal("-7.5"), 2)
    (-1, 1, Decimal('-1.5'))
    """
    a, b = _operands(a, b)
    _refuse_zero(b)
    if isinstance(a, int):
        return a - b * divide_whole(a, b)
    return DECIMALS.remainder(a, b) if isinstance(a, Decimal) else math.fmod(a, b)


def _operands(a: Any, b: Any) -> tuple[Any, Any]:
    """Give both values aligned, and both as decimals if one is a decimal."""
    a, b = aligned(a, b)
    # Python would add texts and truth values. Spark has no such arithmetic.
    if isinstance(a, str | bool | list) or isinstance(b, str | bool | list):
        raise TypeError("not numbers")
    if isinstance(a, int) and isinstance(b, Decimal):
        return Decimal(a), b
    if isinstance(a, Decimal) and isinstance(b, int):
        return a, Decimal(b)
    return a, b


def _refuse_zero(divisor: Any) -> None:
    # By hand, because Python's decimals raise another error for 0 / 0.
    if divisor == 0:
        raise ZeroDivisionError
