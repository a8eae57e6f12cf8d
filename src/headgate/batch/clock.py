"""The time, as batches see it. A test gives a clock of its own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells what time it is, and how much of it passes."""

    def now(self) -> int:
        """The microseconds since 1970, in UTC."""

    def elapsed(self) -> float:
        """Seconds since some moment. They never run backwards."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        """The microseconds since 1970, in UTC."""
        return time.time_ns() // 1000

    def elapsed(self) -> float:
        """Seconds since some moment. They never run backwards."""
        return time.perf_counter()


SYSTEM_CLOCK = SystemClock()
