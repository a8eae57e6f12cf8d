"""The pace of a packet stream: how many rows have come, by the clock or batch by batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from headgate.connect.packets.rows import PacketRows

#: The number of the next row; in a live stream also the time of its first start, in microseconds, as `origin`.
Place: TypeAlias = dict[str, int]


@dataclass(frozen=True)
class Pace:
    """Says how far a stream of packets goes.

    A live stream follows the clock from when it first started. The offset keeps that time, so after a restart the
    stream goes on as if it had never stopped.
    """

    packets: PacketRows
    rows: int | None
    """The stream ends before this row."""
    rows_per_batch: int | None
    """A stream with this is not live: every batch has so many rows."""
    clock: Callable[[], float] = time.time

    def begin(self) -> Place:
        """The first row."""
        return {"row": 0} if self.rows_per_batch else {"row": 0, "origin": self._now()}

    def latest(self, start: Place) -> Place:
        """The row after the last one that has come."""
        ends = [self.rows] if self.rows is not None else []
        if "origin" in start:
            ends.append(int(self.packets.profile.rows_by(max(self._now() - start["origin"], 0) / 1e6)))
        return start | {"row": max(min(ends), start["row"])}

    def batch_end(self, start: Place, end: Place) -> Place:
        """The end of a batch: `end`, or `rows_per_batch` rows after `start`."""
        if self.rows_per_batch is None:
            return end
        return end | {"row": min(end["row"], start["row"] + self.rows_per_batch)}

    def _now(self) -> int:
        return int(self.clock() * 1e6)
