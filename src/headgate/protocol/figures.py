"""The figures of a batch: what its ingest found out about each stream, and about the partial rows that it made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.progress import Seen
from headgate.windows import Number


@dataclass(frozen=True)
class StreamFigures:
    """One stream in one batch."""

    rows: int = 0
    bad: int = 0
    """Tuples that cannot be used: malformed, or without a place."""
    lowest: Number | None = None
    highest: Number | None = None
    punctuated: Number | None = None
    """The highest place of a tuple that is marked as punctuation."""
    numbered: int = 0
    """How many tuples got an arrival number."""
    ranked: Sequence[Number] = ()
    """The places at the ranks that the progress rule asks for."""
    kept: Mapping[str, int] = field(default_factory=dict)
    """By query that tuples are left out for, how many are not."""
    groups: Mapping[str | None, Seen] = field(default_factory=dict)
    """How far each group got, for rules that keep progress by group."""

    @property
    def seen(self) -> Seen:
        """The stream as a whole, as its tracker takes it."""
        return Seen(self.rows, self.highest, self.punctuated, list(self.ranked))


@dataclass(frozen=True)
class Figures:
    """All streams of a flow in one batch."""

    streams: Mapping[str, StreamFigures] = field(default_factory=dict)
    panes: int = 0
    """How many partial rows there are."""
    sums: Mapping[str, float] = field(default_factory=dict)
    """Sums over columns of partial rows, which shedding asks for."""

    def of(self, stream: str) -> StreamFigures:
        """The figures of a stream; of one that has brought nothing, they are all zero."""
        return self.streams.get(stream, StreamFigures())

    def joined(self, other: Figures) -> Figures:
        """These figures, with others beside them."""
        return replace(
            self,
            streams={**self.streams, **other.streams},
            panes=self.panes + other.panes,
            sums={**self.sums, **other.sums},
        )
