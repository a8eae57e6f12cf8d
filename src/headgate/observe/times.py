"""Times as ISO 8601 text in UTC, also for years that Python's own times do not reach."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.windows import Number

_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The calendar repeats after so many years, and these have so many days.
_ERA, _DAYS_OF_ERA = 400, 146_097


def iso(microseconds: Number) -> str:
    """Microseconds since the epoch as ISO 8601 text. A year beyond 9999, or before 0, has a sign.

    >>> iso(1_767_268_809_000_000), iso(500)
    ('2026-01-01T12:00:09+00:00', '1970-01-01T00:00:00.000500+00:00')
    >>> iso(2**63 - 1), iso(-(2**63))
    ('+294247-01-10T04:00:54.775807+00:00', '-290308-12-21T19:59:05.224192+00:00')
    """
    days, rest = divmod(int(microseconds // 1), _DAY)
    eras, days = divmod(days, _DAYS_OF_ERA)
    time = _EPOCH + timedelta(days=days, microseconds=rest)
    year = time.year + eras * _ERA
    # Python writes a year with the same calendar, and the real year takes its place.
    text = time.isoformat()[4:]
    return f"{year:04d}{text}" if 0 <= year <= 9999 else f"{year:+07d}{text}"
