"""A clock that stands still until the test moves it."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate import given

_SECOND = 1_000_000


class ManualClock:
    """A clock that stands still until it is told to move.

    >>> clock = ManualClock("2026-01-01 00:00:00")
    >>> clock.advance(90)
    >>> clock.time.isoformat()
    '2026-01-01T00:01:30+00:00'
    """

    def __init__(self, start: str | datetime = "2026-01-01") -> None:
        try:
            begin = datetime.fromisoformat(start) if isinstance(start, str) else start
        except ValueError:
            raise given.refused("ManualClock: start", start, "a time, such as '2026-01-01 12:00:00'") from None
        begin = begin if begin.tzinfo is not None else begin.replace(tzinfo=UTC)
        self._start = round(begin.timestamp() * _SECOND)
        self._passed = 0

    def advance(self, seconds: float) -> None:
        """Moves the clock forward."""
        instead = "a number of seconds, zero or more"
        self._passed += round(given.number("clock.advance: seconds", seconds, instead, lambda s: s >= 0) * _SECOND)

    @property
    def time(self) -> datetime:
        """What time it is, in UTC."""
        return datetime.fromtimestamp(self.now() / _SECOND, UTC)

    def now(self) -> int:
        """The microseconds since 1970, in UTC."""
        return self._start + self._passed

    def elapsed(self) -> float:
        """The seconds since the clock was made."""
        return self._passed / _SECOND
