"""The manifest of a flow: what a batch leaves behind. A batch has happened when its manifest is there, and not before.

A manifest names every file of the state, so a file that none names does not exist. It ends with a checksum: one that a
crash cut short is none, and the one before it holds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class StateFiles:
    """Files of partial rows in one folder, and the part of each axis that their panes start in."""

    folder: str
    names: tuple[str, ...]
    spans: dict[str, tuple[float, float]]
    rows: int
    bytes: int
    depth: int = 0
    """The depth of the stages whose rows it has."""
    merges: int = 0
    """How often its rows have been merged with others."""
    counts: dict[str, int] = field(default_factory=dict)
    """Of kept tuples, how many each side of a join has."""

    @property
    def paths(self) -> list[str]:
        """The files below the state's folder."""
        return [f"{self.folder}/{name}" for name in self.names]

    def of(self, stages: Collection[str]) -> StateFiles:
        """The same files, of kept tuples, with no more columns than those of some stages."""
        own = {column for column in self.spans if column.rpartition(":")[0] in stages}
        spans = {column: span for column, span in self.spans.items() if column in own}
        return replace(self, spans=spans, counts={c: count for c, count in self.counts.items() if c in own})


@dataclass(frozen=True)
class Manifest:
    """The state of a flow after a batch."""

    batch: int = -1
    source_batch: int = -1
    """The last batch of the source that is in it."""
    sources: list[str] = field(default_factory=list)
    """The streams that Spark finds the data of."""
    named: bool = False
    """Whether Spark knows them by name."""
    queries: dict[str, str] = field(default_factory=dict)
    tables: list[dict[str, Any]] = field(default_factory=list)
    """The layouts of the tables that there may be rows of."""
    begun: dict[str, int] = field(default_factory=dict)
    """The batch that each query began with."""
    first: dict[str, Any] = field(default_factory=dict)
    """The first whole window of stages that came while the flow was running; of those that hold tuples, the place."""
    highest: dict[str, Any] = field(default_factory=dict)
    """How far the tuples of each stream have got."""
    files: tuple[StateFiles, ...] = ()
    tuples: tuple[StateFiles, ...] = ()
    """The tuples that joins, and windows by tuple, keep."""
    progress: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    """By query, the columns of each stream and table that it uses, with their types."""
    promised: dict[str, dict[str, str]] = field(default_factory=dict)
    """By stream, the attribute that its progress is told on, with its type."""
    closed: dict[str, int] = field(default_factory=dict)
    """The last window of each stage that was closed."""
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stage that keeps tuples, how far its inputs had come, on each attribute."""
    skipped: dict[str, int] = field(default_factory=dict)
    """By stage with windows by rank, how many tuples have been let go."""
    boxes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stage, the joint punctuation up to which its groups were closed."""
    numbered: dict[str, int] = field(default_factory=dict)
    """How many tuples of a stream have got an arrival number."""
    ended: list[str] = field(default_factory=list)
    """The bounded streams that have been read."""
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    shedding: dict[str, Any] = field(default_factory=dict)
    """What is known about the load, and what has been left out for it."""
    runs: list[list[Any]] = field(default_factory=list)
    """The runs that have committed anything: the first batch of each, and its mark."""
    by: str = ""
    """The run that has committed it, for people."""

    def mark(self, batch: int) -> str:
        """The mark of the run that has committed a batch; of batches before runs had marks, none.

        >>> Manifest(runs=[[3, "a"], [7, "b"]]).mark(6)
        'a'
        """
        return next((mark for first, mark in reversed(self.runs) if first <= batch), "")

    def committed_by(self, mark: str, who: str) -> Manifest:
        """The manifest as this run commits it."""
        known = self.runs if self.mark(self.batch) == mark else [*self.runs, [self.batch, mark]]
        return replace(self, runs=known, by=who)

    def span(self, depth: int, axis: str) -> tuple[float, float] | None:
        """Where on an axis the first and the last pane of the state start; None without any."""
        spans = [f.spans[axis] for f in self.files if f.depth == depth and axis in f.spans]
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

    @property
    def state_rows(self) -> int:
        """How many rows the state has."""
        return sum(f.rows for f in (*self.files, *self.tuples))

    @property
    def state_bytes(self) -> int:
        """How large the state is."""
        return sum(f.bytes for f in (*self.files, *self.tuples))

    def counted(self, what: str, more: dict[str, int]) -> Manifest:
        """The manifest with counters raised."""
        known = self.counters.get(what, {})
        total = {name: known.get(name, 0) + more.get(name, 0) for name in {**known, **more}}
        return replace(self, counters={**self.counters, what: total})
