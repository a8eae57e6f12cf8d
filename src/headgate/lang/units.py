"""The units of a length, and how several numbers with units add up to one."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

#: How many microseconds each unit of time has, from the smallest to the largest.
MICROSECONDS: dict[str, int] = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "seconds": 1_000_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "days": 86_400_000_000,
    "weeks": 604_800_000_000,
}

ROWS = "rows"

_SHORT = {"sec": "seconds", "secs": "seconds", "min": "minutes", "mins": "minutes", "tuples": ROWS}

_SPELLINGS: dict[str, str] = {
    **{unit: unit for unit in (*MICROSECONDS, ROWS)},
    **{unit.removesuffix("s"): unit for unit in (*MICROSECONDS, ROWS)},
    **_SHORT,
    "tuple": ROWS,
}


def unit_of(word: str) -> str | None:
    """The unit that a word stands for, or None if it stands for none of a fixed length.

    >>> unit_of("Minute"), unit_of("tuples"), unit_of("month")
    ('minutes', 'rows', None)
    """
    return _SPELLINGS.get(word.lower())


def number_of(text: str) -> Decimal | None:
    """The finite number that a text stands for, or None.

    >>> number_of("0.5"), number_of("x")
    (Decimal('0.5'), None)
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def add_up(parts: list[tuple[Decimal, str]]) -> tuple[Decimal, str] | None:
    """The sum of numbers with units, in the smallest of their units. None if rows and time are mixed.

    >>> add_up([(Decimal(1), "hours"), (Decimal(30), "minutes")])
    (Decimal('90'), 'minutes')
    >>> add_up([(Decimal(1), "hours"), (Decimal(30), "rows")]) is None
    True
    """
    units = {unit for _, unit in parts}
    if units == {ROWS}:
        return sum((number for number, _ in parts), Decimal(0)), ROWS
    if ROWS in units:
        return None
    smallest = min(units, key=MICROSECONDS.__getitem__)
    total = sum((number * MICROSECONDS[unit] for number, unit in parts), Decimal(0))
    return total / MICROSECONDS[smallest], smallest


def plain(number: Decimal) -> str:
    """A number as text, without an exponent and without zeros that say nothing.

    >>> plain(Decimal("1E+3")), plain(Decimal("0.50")), plain(Decimal("-0"))
    ('1000', '0.5', '0')
    """
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
