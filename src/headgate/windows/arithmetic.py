"""The arithmetic of an axis as Spark SQL text: exact for BIGINT and for DECIMAL, and below zero too."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.windows.axis import Number

#: Numbers that are not whole are placed with this many digits after the point.
DIGITS = 12


def literal(value: Number) -> str:
    """A number as a Spark SQL literal: a whole one as BIGINT, any other as DECIMAL.

    >>> literal(-60), literal(Fraction(1, 2))
    ('-60L', '0.5BD')
    """
    if isinstance(value, int) or value.denominator == 1:
        return f"{int(value)}L"
    digits = f"{float(value):.{DIGITS}f}".rstrip("0")
    return f"{digits}BD"


def floor_div(dividend: str, divisor: Number | str) -> str:
    """The greatest whole number not above dividend / divisor.

    >>> floor_div("x", 60)
    '((x) - pmod(x, 60L)) div 60L'
    """
    if divisor == 1:
        return f"CAST(floor({dividend}) AS BIGINT)"
    by = divisor if isinstance(divisor, str) else literal(divisor)
    return f"(({dividend}) - pmod({dividend}, {by})) div {by}"


def less(place: str, origin: Number) -> str:
    """A place counted from an origin.

    >>> less("x", 0), less("x", 5)
    ('x', 'x - 5L')
    """
    return f"{place} - {literal(origin)}" if origin else place


def gcd(a: Number, b: Number) -> Number:
    """Give the greatest number that divides both without a rest, for whole numbers and fractions.

    >>> gcd(10, 4), gcd(Fraction(1, 2), Fraction(1, 3))
    (2, Fraction(1, 6))
    """
    if isinstance(a, int) and isinstance(b, int):
        return math.gcd(a, b)
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def exact(place: float) -> Number:
    """A place that was rounded to a double, as the shortest decimal that rounds to it.

    >>> exact(60.0), exact(0.7)
    (60, Fraction(7, 10))
    """
    return int(place) if place == int(place) else Fraction(repr(place))
