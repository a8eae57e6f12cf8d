"""Small disordered streams for the example queries: always the same, but others for each query."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headgate.lang import parse_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Row

PACKET = {
    "ts": "timestamp",
    "srcIP": "string",
    "srcPort": "int",
    "destIP": "string",
    "destPort": "int",
    "len": "int",
    "flags": "string",
}
BID = {"ts": "timestamp", "item_id": "int", "price": "double"}

_START = datetime(2025, 12, 31, 23, 50)  # The streams cross midnight and the year's end.
_SEED = 0  # Of the first twenty, one with which a source has exactly a twentieth of all packets in some window.
_DELAY = timedelta(seconds=90)
# Windows of seconds hold next to nothing of a stream that is spread over minutes; handshakes are rare.
_SPANS = {
    **dict.fromkeys(("q6-6", "q6-7", "q6-8", "q8-3"), timedelta(minutes=2)),
    "q7-1": timedelta(minutes=5),
}
# A range of a thousand rows takes more than a thousand rows to fill, of one source for q5-2.
_OVER_ROWS = ("q5-2", "q5-3")

# A few sources send most of the packets, so that joins match; the last are no heavy hitters.
_IPS = tuple(f"202.101.0.{i}" for i in range(6))
_WEIGHTS, _ONE_RULES = (45, 28, 16, 6, 3, 2), (90, 3, 3, 2, 1, 1)
_PORTS = (80, 443)
_FLAGS = ("SYN", "SYN_ACK", "ACK")


def streams_of(name: str, sql: str) -> dict[str, list[Row]]:
    """The streams that the query of this name reads, in order of arrival."""
    streams = sorted({table.name for table in parse_query(sql).find_all(exp.Table)})
    rows = 1200 if name in _OVER_ROWS else {1: 300, 2: 130}.get(len(streams), 90)
    span = _SPANS.get(name, timedelta(minutes=20))
    weights = _ONE_RULES if name in _OVER_ROWS else _WEIGHTS
    found = {}
    for stream in streams:
        draw = _Draw(random.Random(f"{name} {stream} {_SEED}"), span, weights)
        size = rows // 8 if stream == "Control" else rows  # The control link is nearly silent.
        found[stream] = draw.stream(draw.bid if stream == "bids" else draw.packet, size)
    return found


def schema_of(stream: str) -> dict[str, str]:
    """The columns of a stream with their Spark types."""
    return BID if stream == "bids" else PACKET


@dataclass
class _Draw:
    """Random tuples with times within a span, most of them from few sources or for few items."""

    rng: random.Random
    span: timedelta
    weights: tuple[int, ...]

    def stream(self, draw: Callable[[], Row], size: int) -> list[Row]:
        rows = [draw() for _ in range(size)]
        rows += [dict(row) for row in self.rng.sample(rows, size // 10)]  # Duplicates count.
        delay = min(_DELAY, self.span / 4)
        return sorted(rows, key=lambda row: row["ts"] + self.rng.random() * delay)

    def packet(self) -> Row:
        source, destination = self.rng.choices(_IPS, self.weights, k=2)
        return {
            "ts": self._time(),
            "srcIP": self._or_null(source),
            "srcPort": self.rng.choice(_PORTS),
            "destIP": destination,
            "destPort": self.rng.choice(_PORTS),
            "len": self._or_null(self.rng.randrange(40, 1500)),
            "flags": self.rng.choice(_FLAGS),
        }

    def bid(self) -> Row:
        (item,) = self.rng.choices(range(len(self.weights)), self.weights)
        return {
            "ts": self._time(),
            "item_id": item,
            "price": self._or_null(round(self.rng.uniform(1, 500), 2)),
        }

    def _time(self) -> datetime:
        # Half minutes fall on the borders of windows, and on each other; fractions of a second fall between.
        step = self.rng.choice((timedelta(seconds=30), timedelta(seconds=1), timedelta(microseconds=1)))
        return _START + self.rng.randrange(self.span // step) * step

    def _or_null(self, value: Any) -> Any:
        return value if self.rng.random() > 0.05 else None
