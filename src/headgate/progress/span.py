"""Lengths of time and of numbers: as users give them, and back in words."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import TypeAlias

from headgate.errors import ParseError, ProgressError
from headgate.lang import Length, parse_length, to_sql
from headgate.lang.units import MICROSECONDS
from headgate.plan.logical.render import counted
from headgate.windows import Number

Span: TypeAlias = str | timedelta | float | Decimal | Number | Length
"""A length as users give it: '10 seconds', a timedelta, a plain number, or one that a script states."""

_SECOND = 1_000_000


def distance(span: Span) -> tuple[Number, bool]:
    """The length of `within` in the units of the attribute, and whether these are plain numbers.

    >>> distance("10 seconds"), distance(0.5)
    ((10000000, False), (Fraction(1, 2), True))
    """
    found, timed = _measured("within", span)
    if timed and found.denominator != 1:
        raise ProgressError(f"within={_shown(span)} is finer than a microsecond, the precision of time")
    return (int(found) if found.denominator == 1 else found), not timed


def idle_time(span: Span) -> int:
    """The microseconds of `idle`, where a plain number is seconds.

    >>> idle_time(30), idle_time("1 minute")
    (30000000, 60000000)
    """
    amount, timed = _measured("idle", span)
    return round(amount if timed else amount * _SECOND)


def time_text(microseconds: Number) -> str:
    """A length of time in the largest unit that leaves no rest.

    >>> time_text(90_000_000), time_text(60_000_000)
    ('90 seconds', '1 minute')
    """
    unit = next(u for u in reversed(MICROSECONDS) if microseconds % MICROSECONDS[u] == 0)
    return counted(int(microseconds / MICROSECONDS[unit]), unit)


def _measured(word: str, span: Span) -> tuple[Fraction, bool]:
    """The length of a span and whether it is a time, in microseconds then."""
    if isinstance(span, timedelta):
        return Fraction(span // timedelta(microseconds=1)), True
    if isinstance(span, str | Length):
        length = _length(word, span)
        if length.microseconds is not None:
            return Fraction(length.microseconds), True
        if length.unit is not None:
            hint = "use slack_rows" if word == "within" else "give a time, such as '30 seconds'"
            raise ProgressError(f"{word}={_shown(span)} counts rows: {hint}")
        return Fraction(length.number), False
    if isinstance(span, Real | Decimal) and not isinstance(span, bool):
        try:
            return Fraction(str(span)), False  # The digits that the user wrote: 0.1 is a tenth.
        except ValueError:
            pass
    raise ProgressError(f"{word}={span!r} is not a length: give a text such as '10 seconds', a timedelta or a number")


def _length(word: str, span: str | Length) -> Length:
    if isinstance(span, Length):
        return span
    try:
        return parse_length(span)
    except ParseError as error:
        raise ProgressError(f"{word}={span!r} is not a length such as '10 seconds': {error}") from None


def _shown(span: Span) -> str:
    return to_sql(span) if isinstance(span, Length) else repr(span)
