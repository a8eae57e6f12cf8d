"""The clocks that a flow goes by; tests bring their own."""

from __future__ import annotations

import time


class Clock:
    """The clocks of this machine."""

    def now(self) -> int:
        """The wall clock, in microseconds since 1970."""
        return time.time_ns() // 1000

    def seconds(self) -> float:
        """Seconds since some moment, for how long things take."""
        return time.perf_counter()
