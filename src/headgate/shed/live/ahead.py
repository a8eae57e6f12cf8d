"""What is known of a batch before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.progress import Punctuation
    from headgate.shed.live.ledgers import Spans


@dataclass(frozen=True)
class Ahead:
    """What is known of a batch before it runs."""

    amounts: Mapping[str, float | None]
    """How much there is to read of each stream, in bytes or tuples, if that is known."""
    spans: Spans
    """Where the tuples seem to be, for queries that drop windows."""
    interval: float | None
    """The seconds within which the tuples came; None if they were there before, so each batch may take the target."""
    told: Mapping[str, Punctuation]
    """The punctuation of streams so far."""
    due: Mapping[bool, float]
    """How many rows of state are to be merged, by whether windows close."""
    now: int
    """The wall-clock time in microseconds."""

    @property
    def time(self) -> datetime:
        """The wall-clock time as policies see it."""
        return datetime.fromtimestamp(self.now / 1e6, UTC)
