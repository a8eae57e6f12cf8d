"""The manifest: what a flow is at after a batch. A batch has happened when its manifest is there, and not before.

A manifest names every file of the state, so a file that none names does not exist. Each part belongs to one owner, who
alone changes it. Its values are those that JSON has, so that a manifest is the same after it was written and read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class StateFiles:
    """The files of one folder of state, and the stretch of each axis that their rows start in."""

    folder: str
    names: tuple[str, ...]
    spans: Mapping[str, tuple[float, float]]
    rows: int
    bytes: int
    depth: int = 0
    """The depth of the stages whose rows these are."""
    merges: int = 0
    """How often the rows have been merged with others."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """For kept tuples: how many each side of a join has."""

    @property
    def paths(self) -> list[str]:
        """The files, below the folder of the checkpoint."""
        return [f"{self.folder}/{name}" for name in self.names]

    def of(self, stages: Collection[str]) -> StateFiles:
        """The same files, with only the columns of some stages. For kept tuples."""
        own = {column for column in self.spans if column.rpartition(":")[0] in stages}
        spans = {column: span for column, span in self.spans.items() if column in own}
        return replace(self, spans=spans, counts={c: count for c, count in self.counts.items() if c in own})


@dataclass(frozen=True)
class SourcePart:
    """Where Spark's log of the streams has come to."""

    batch: int = -1
    """The last batch of the source that the state holds."""
    streams: Sequence[str] = field(default_factory=list)
    """The streams that Spark finds the data of."""
    named: bool = False
    """Whether Spark knows them by name."""


@dataclass(frozen=True)
class QueriesPart:
    """The queries that run."""

    texts: Mapping[str, str] = field(default_factory=dict)
    begun: Mapping[str, int] = field(default_factory=dict)
    """The batch that each query began with."""
    columns: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """By query, the columns of each stream and table that it uses, with their types."""


@dataclass(frozen=True)
class ProgressPart:
    """How far the streams have come."""

    trackers: Mapping[str, Any] = field(default_factory=dict)
    """By stream, the state of its tracker."""
    promised: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By stream, the attribute that progresses, with its type."""
    highest: Mapping[str, Any] = field(default_factory=dict)
    """By stream, the highest place of a tuple."""
    numbered: Mapping[str, int] = field(default_factory=dict)
    """By stream, how many tuples have an arrival number."""
    ended: Sequence[str] = field(default_factory=list)
    """The bounded streams that have been read."""


@dataclass(frozen=True)
class WindowsPart:
    """Which windows are closed, and how far the inputs of stages have come."""

    closed: Mapping[str, int] = field(default_factory=dict)
    """By stage, the last window that was closed."""
    first: Mapping[str, Any] = field(default_factory=dict)
    """By stage that came while the flow ran, its first whole window; its place, if the stage holds tuples."""
    boxes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By stage, the joint punctuation up to which its groups were closed."""
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By stage that keeps tuples, how far its inputs had come, on each attribute."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """By stage with windows by rank, how many tuples have been let go."""


@dataclass(frozen=True)
class StatePart:
    """The files of the state."""

    tables: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """The layouts of the tables that there may be rows of."""
    files: tuple[StateFiles, ...] = ()
    """The partial rows."""
    tuples: tuple[StateFiles, ...] = ()
    """The tuples that joins, DISTINCT and windows by tuple keep."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(f.rows for f in (*self.files, *self.tuples))

    @property
    def bytes(self) -> int:
        """How large they are."""
        return sum(f.bytes for f in (*self.files, *self.tuples))

    def span(self, depth: int, axis: str) -> tuple[float, float] | None:
        """Where on an axis the first and the last pane start; None without any."""
        spans = [f.spans[axis] for f in self.files if f.depth == depth and axis in f.spans]
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


@dataclass(frozen=True)
class RunsPart:
    """The runs that have worked on the checkpoint."""

    marks: Sequence[Sequence[Any]] = field(default_factory=list)
    """The runs that have committed anything: the first batch of each, and its mark."""
    by: str = ""
    """The run that has committed the manifest, for people."""

    def mark(self, batch: int) -> str:
        """The mark of the run that has committed a batch; none for batches from before runs had marks.

        >>> RunsPart([[3, "a"], [7, "b"]]).mark(6)
        'a'
        """
        return next((mark for first, mark in reversed(self.marks) if first <= batch), "")


@dataclass(frozen=True)
class Manifest:
    """What a flow is at after a batch."""

    batch: int = -1
    source: SourcePart = field(default_factory=SourcePart)
    queries: QueriesPart = field(default_factory=QueriesPart)
    progress: ProgressPart = field(default_factory=ProgressPart)
    windows: WindowsPart = field(default_factory=WindowsPart)
    state: StatePart = field(default_factory=StatePart)
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By what is counted (rows, answers, late, ...), the totals by stream or query."""
    shedding: Mapping[str, Any] = field(default_factory=dict)
    """What is known about the load, and what has been left out for it: a document of shed/live."""
    runs: RunsPart = field(default_factory=RunsPart)

    def mark(self, batch: int) -> str:
        """The mark of the run that has committed a batch."""
        return self.runs.mark(batch)
