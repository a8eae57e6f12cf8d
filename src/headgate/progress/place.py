"""What punctuation can be: nothing known yet, a place on the axis of the progressing attribute, or the end."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from headgate.windows import Number

Punctuation: TypeAlias = Number | float | None
"""No later tuple lies below it. None: nothing is known yet; `math.inf`, the only float: the input is over."""

Written: TypeAlias = int | str | None
"""Punctuation as JSON has it."""

_END = "end"


def least(marks: Iterable[Punctuation]) -> Punctuation:
    """Give the punctuation of all of these together: what is not known of one is not known of all.

    >>> least([20, 19]), least([20, None]), least([])
    (19, None, inf)
    """
    lowest: Number | float = math.inf
    for mark in marks:
        if mark is None:
            return None
        lowest = min(lowest, mark)
    return lowest


def furthest(marks: Iterable[Punctuation]) -> Punctuation:
    """Give the greatest of these; whatever is known is more than nothing.

    >>> furthest([None, 19, 20]), furthest([])
    (20, None)
    """
    return max((mark for mark in marks if mark is not None), default=None)


def from_spark(value: Any) -> Number | None:
    """Give a place as Spark tells it: a number that is not whole comes as a decimal.

    >>> from_spark(7), from_spark(Decimal("0.5"))
    (7, Fraction(1, 2))
    """
    return Fraction(value) if isinstance(value, Decimal) else value


def written(mark: Punctuation) -> Written:
    """Give punctuation as JSON can hold it exactly: fractions as text, the end by name.

    >>> written(Fraction(1, 3)), written(7), written(math.inf)
    ('1/3', 7, 'end')
    """
    if mark is None or isinstance(mark, int):
        return mark
    return _END if isinstance(mark, float) else str(mark)


def read(text: Written) -> Punctuation:
    """Give the punctuation that was written.

    >>> read("1/3"), read(7), read("end")
    (Fraction(1, 3), 7, inf)
    """
    if text is None or isinstance(text, int):
        return text
    return math.inf if text == _END else Fraction(text)
