"""What happens in a flow, as typed events. Status, progress line, log and your own listeners are made from them.

Each event is frozen and holds plain values. `as_dict()` gives it as plain JSON.

>>> event = TuplesLate(flow="netmon", timestamp="2026-01-01T12:00:00.000000+00:00", batch=7, query="talkers", count=3)
>>> event.as_dict()["event"], event.count
('TuplesLate', 3)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.observe.plain import plain


@dataclass(frozen=True, kw_only=True)
class BatchReport:
    """What one batch did."""

    batch: int
    """The number of the batch, from 0."""
    rows: int
    """How many tuples it read, from all streams."""
    rows_by_stream: dict[str, int] = field(default_factory=dict)
    """How many tuples it read, per stream."""
    seconds: dict[str, float]
    """How long each step took, in seconds."""
    answers: dict[str, int]
    """How many rows it answered, per query."""
    late: dict[str, int]
    """How many tuples came too late, per query."""
    bad: dict[str, int] = field(default_factory=dict)
    """How many tuples could not be used, per stream."""
    shed: dict[str, int] = field(default_factory=dict)
    """How many tuples were left out, per query."""
    dropped: dict[str, int] = field(default_factory=dict)
    """How many windows will not be answered, per query."""
    state_rows: int
    """How many rows the state has after the batch."""
    state_bytes: int
    """How many bytes the state has after the batch."""
    progress: dict[str, Any] = field(default_factory=dict)
    """How far each stream has come: a time as text, a number, "end", or None while nothing is known."""
    rates: dict[str, float] = field(default_factory=dict)
    """The share of tuples that was taken, per query that was sampled."""
    suspended: dict[str, str] = field(default_factory=dict)
    """Why a query was suspended, per suspended query."""

    @property
    def total_seconds(self) -> float:
        """How long the whole batch took, in seconds."""
        return sum(self.seconds.values())

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON."""
        found: dict[str, Any] = plain(self)
        return found


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a flow stands between two batches. The counters are totals since the checkpoint was made."""

    batch: int
    """The last batch that was committed, or -1."""
    progress: dict[str, Any]
    """How far each stream has come."""
    closed: dict[str, Any]
    """Where the last closed window ends, per query."""
    state: dict[str, int]
    """The files, rows and bytes of the state."""
    totals: dict[str, dict[str, int]]
    """`rows` and `bad` per stream; `answers`, `late`, `shed` and `dropped` per query."""
    shed: dict[str, Any]
    """What is shed now, why, and what is known for it: `joins` and `shedding` of `run.status()`."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a flow. The first three fields are filled in when the event is told."""

    flow: str = ""
    """The name of the flow."""
    run_id: str = ""
    """The run it happened in: each start has a new one."""
    timestamp: str = ""
    """When it was told: ISO 8601 text in UTC."""
    missed: int = 0
    """How many events before this one the listener did not get, because it was too slow."""

    def as_dict(self) -> dict[str, Any]:
        """The event as plain JSON, with its name as `event`."""
        return {"event": type(self).__name__, **plain(self)}


@dataclass(frozen=True, kw_only=True)
class FlowStarted(Event):
    """A run began."""

    id: str
    """The id of the flow's checkpoint, the same in every run."""
    resumed_after: int | None
    """The batch of an earlier run that this one goes on from; None for a new checkpoint."""
    streams: tuple[str, ...]
    queries: tuple[str, ...]
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class BatchDecided(Event):
    """A batch was planned and its decision written down. A batch that a crash cut off is decided again."""

    batch: int
    streams: tuple[str, ...]
    """The streams it reads tuples of."""
    shedding: bool
    """Whether the flow is overloaded, so that tuples or windows are left out."""
    rates: dict[str, float]
    """The share of tuples to take, per query that is sampled."""
    predicted: float | None
    """How many seconds it should take; None without `hg.overload`."""


@dataclass(frozen=True, kw_only=True)
class BatchCommitted(Event):
    """A batch was committed: it has happened, and will not be run again."""

    report: BatchReport
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class PlanChanged(Event):
    """Queries came or went, or shedding began or ended."""

    batch: int
    """The first batch with the new plan."""
    reason: str
    shedding: bool
    """Whether the flow sheds now because it is overloaded."""
    added: tuple[str, ...] = ()
    """The queries that came."""
    dropped: tuple[str, ...] = ()
    """The queries that went."""
    standing: Standing | None = None
    """How the flow stands with its new queries; None if they are the same."""


@dataclass(frozen=True, kw_only=True)
class QuerySuspended(Event):
    """A query gets no answers until there is time for it again."""

    batch: int
    query: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class QueryResumed(Event):
    """A query that was suspended gets answers again."""

    batch: int
    query: str


@dataclass(frozen=True, kw_only=True)
class TuplesLate(Event):
    """Tuples came after their windows were closed. Told when the batch is committed, so counts add up."""

    batch: int
    query: str
    count: int


@dataclass(frozen=True, kw_only=True)
class TuplesBad(Event):
    """Tuples could not be used. Told when the batch is committed, so counts add up."""

    batch: int
    stream: str
    count: int


@dataclass(frozen=True, kw_only=True)
class TuplesShed(Event):
    """Tuples were left out for a query. Told when the batch is committed, so counts add up."""

    batch: int
    query: str
    count: int


@dataclass(frozen=True, kw_only=True)
class SinkFailed(Event):
    """A sink raised an error, which stops the flow. The next start gives the sink this batch again."""

    batch: int
    query: str | None
    """The query whose output the sink takes; None for bad tuples."""
    stream: str | None
    """The stream whose bad tuples the sink takes; None for other outputs."""
    output: str
    """What the sink takes: "answers", "late", "shed" or "bad"."""
    error: str


@dataclass(frozen=True, kw_only=True)
class FlowStopped(Event):
    """A run ended: it was stopped, it failed, or there was nothing more to read."""

    batch: int
    """The last batch that was committed, or -1."""
    error: dict[str, Any] | None
    """What made it fail: `type`, `message`, `query` and `stream`. None if nothing did."""
