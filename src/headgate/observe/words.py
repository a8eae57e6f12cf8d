"""Figures of a flow in words, for a shell, a log and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.filesize import decimal

from headgate.plan.logical.render import counted

_LONGER = {"days": 86_400, "hours": 3_600, "minutes": 60}


class Text(str):
    r"""Text that a shell shows as it is, with its lines, and not in quotes.

    >>> Text("two\nlines")
    two
    lines
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def speed(rows: int, seconds: float) -> str:
    """How many rows that is a second.

    >>> speed(9_000, 0.75)
    '12,000 rows/s'
    """
    return f"{rows / seconds:,.0f} rows/s" if seconds > 0 else "at once"


def took(rows: int, seconds: float) -> str:
    """How long some rows took.

    >>> took(1, 0.75)
    '1 row in 0.75 s'
    """
    return f"{counted(rows, 'rows')} in {seconds:.2f} s"


def size(state: Mapping[str, int]) -> str:
    """How large a state is.

    >>> size({"rows": 1200, "files": 3, "bytes": 12_000})
    '1,200 rows, 12.0 kB in 3 files'
    """
    return f"{counted(state['rows'], 'rows')}, {decimal(state['bytes'])} in {counted(state['files'], 'files')}"


def without(late: Iterable[int], shed: Iterable[int], dropped: Iterable[int]) -> str:
    """What some answers are without; what was shed only where there is any.

    >>> without([3], [6000, 500], [2]), without([0], [0], [0])
    ('3 late, 6,500 shed, 2 windows dropped', '0 late')
    """
    words = [f"{sum(late):,} late"]
    words += [f"{tuples:,} shed"] if (tuples := sum(shed)) else []
    words += [f"{counted(windows, 'windows')} dropped"] if (windows := sum(dropped)) else []
    return ", ".join(words)


def reached(place: Any, now: datetime | None = None) -> str:
    """How far a stream has come; with the time `now`, also how far behind the clock that is.

    >>> from datetime import UTC
    >>> reached("2025-12-30T00:00:00+00:00", now=datetime(2026, 1, 1, 12, tzinfo=UTC))
    '2025-12-30 00:00:00, 2 days behind'
    >>> reached("+294247-01-10T04:00:54.775807+00:00", now=datetime(2026, 1, 1, tzinfo=UTC))
    '+294247-01-10 04:00:54'
    >>> reached(1700), reached("2025-12-30T00:00:00+00:00")
    ('1,700', '2025-12-30 00:00:00')
    """
    match place:
        case None:
            return "without progress yet"
        case "end":
            return "at its end"
        case str():
            return _time(place, now)
    return f"{place:,}"


def _time(place: str, now: datetime | None) -> str:
    whole = place.replace("T", " ").partition("+00:00")[0].partition(".")[0]
    if now is None:
        return whole
    try:
        at = datetime.fromisoformat(place)
    except ValueError:  # In a year that Python does not reach.
        return whole
    behind = (now - at).total_seconds()
    day = "" if at.date() == now.date() else "%Y-%m-%d "
    return f"{at:{day}%H:%M:%S}, {_long(abs(behind))} {'behind' if behind >= 0 else 'ahead'}"


def _long(seconds: float) -> str:
    """A time in the largest unit of which it has two or more.

    >>> _long(7.25), _long(150), _long(90_000)
    ('7.2 seconds', '2 minutes', '25 hours')
    """
    for unit, length in _LONGER.items():
        if seconds >= 2 * length:
            return f"{seconds // length:,.0f} {unit}"
    return f"{seconds:.1f} seconds"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines with columns that line up.

    >>> columns([("stream", "rows"), ("Main", "12")])
    ['stream  rows', 'Main    12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [line.rstrip() for line in padded]
