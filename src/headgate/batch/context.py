"""What the steps of a batch know: each reads what earlier steps have left, and adds its own part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headgate.batch.clock import Clock
from headgate.batch.exclusion import LeftOut
from headgate.batch.program import Program
from headgate.batch.retained import Retained
from headgate.connect.scan import Batches, Read
from headgate.observe.events import BatchReport, Event
from headgate.progress.closing import Closing
from headgate.progress.streams import Streams
from headgate.protocol.decision import Decision
from headgate.protocol.figures import Figures
from headgate.protocol.manifest import Manifest
from headgate.shed.estimate.sql import Sampling
from headgate.store.answers import Answers, Written
from headgate.store.checkpoint import Checkpoint
from headgate.store.state import State
from headgate.store.tuples import Tuples

if TYPE_CHECKING:
    import threading

    from pyspark.sql import DataFrame

    from headgate.batch.narrow import Sample
    from headgate.batch.propagate import Punctuated
    from headgate.batch.span import BatchSpan
    from headgate.incremental.levels import Level
    from headgate.shed.live.shedding import Shedding


@dataclass(frozen=True)
class Stored:
    """What a flow has on disk, apart from manifests and decisions."""

    state: State
    tuples: Tuples
    answers: Answers


def _nobody(_: Event) -> None:
    """Tells an event to nobody."""


@dataclass(frozen=True)
class Running:
    """What a running flow is made of, the same for all of its batches."""

    program: Program
    checkpoint: Checkpoint
    stored: Stored
    streams: Streams
    shedding: Shedding
    span: BatchSpan
    clock: Clock
    lock: threading.Lock
    """Held while a batch changes what is known of the load, which others may ask for meanwhile."""
    tell: Callable[[Event], None] = _nobody
    """Tells those who watch of an event."""


@dataclass(frozen=True)
class Offer:
    """What a batch is given."""

    found: Mapping[str, Read] = field(default_factory=dict)
    """What was found of some streams."""
    source_batch: int | None = None
    """The number that the source has for it; None if the source knows nothing of it."""
    ended: Sequence[str] = ()
    """The streams that end with it."""
    interval: float | None = None
    """The seconds in which what it holds has come, if it holds what came since the last batch."""
    last: BatchReport | None = None
    """What the batch before it did, in this run."""
    held: bool = False
    """Whether the flow was down since the last batch: that is not time in which its sources were quiet."""
    live: bool = False
    """Whether batches hold what came since the last one, and not just what there was to be read."""


@dataclass(frozen=True)
class Input:
    """The tuples of a batch, and which of them are left out for which query."""

    streams: Batches
    """By stream and by stage, in pieces."""
    found: Batches
    """The streams of the flow, as they were found."""
    tables: Mapping[str, DataFrame]
    """What tuples are looked up in."""
    left_out: LeftOut
    retained: Retained
    """The tuples that joins, DISTINCT and windows by tuple keep."""


@dataclass(frozen=True)
class Work:
    """What a level has done so far in a batch."""

    level: Level
    sampling: Sampling
    """Which of the level's tuples its tables take."""
    aside: Executor
    """What need not wait is done here."""
    until: ExitStack
    """What is held in memory until all levels are done."""
    punctuated: Punctuated
    """How far the streams and the stages of earlier levels have come."""
    samples: Mapping[str, Sample] = field(default_factory=dict)
    """By stream, what its tables need of it."""
    figured: frozenset[str] = frozenset()
    """The streams whose figures this level has found out."""
    matching: Future[Written] | None = None
    """The pairs of new tuples, by join, which are written meanwhile."""
    met: Mapping[str, DataFrame] = field(default_factory=dict)
    """The new tuples that set out to meet others."""
    closings: Mapping[str, Closing] = field(default_factory=dict)
    """The windows that close, by stage."""
    new: Mapping[str, DataFrame] = field(default_factory=dict)
    """The new tuples that may be kept, by what keeps them."""


@dataclass(frozen=True)
class Tally:
    """What a batch has given, counted."""

    given: Mapping[str, int] = field(default_factory=dict)
    """By stage, its answers."""
    outlooks: Mapping[str, Any] = field(default_factory=dict)
    """By stage, what its answers say about errors of samples."""
    late: Mapping[str, int] = field(default_factory=dict)
    bad: Mapping[str, int] = field(default_factory=dict)
    shed: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)

    def of(self, names: Mapping[str, object]) -> dict[str, int]:
        """The answers of some queries."""
        return {name: count for name, count in self.given.items() if name in names}


class Stopwatch:
    """The seconds that each step has taken."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.laps: dict[str, float] = {}

    def lap(self, name: str, since: float) -> None:
        """Adds the time since a moment to a step."""
        self.laps[name] = self.laps.get(name, 0.0) + self.clock.elapsed() - since

    @property
    def total(self) -> float:
        """The seconds of all steps."""
        return sum(self.laps.values())


@dataclass(frozen=True)
class Context:
    """A batch on its way through the steps."""

    running: Running
    offer: Offer
    before: Manifest
    """What the flow was at before the batch."""
    manifest: Manifest
    """What the manifest becomes."""
    watch: Stopwatch
    decided: Decision | None = None
    taken_in: Input | None = None
    at: Work | None = None
    figures: Figures = field(default_factory=Figures)
    tally: Tally = field(default_factory=Tally)

    @property
    def decision(self) -> Decision:
        """What the batch is about."""
        assert self.decided is not None, "no step before has decided"
        return self.decided

    @property
    def input(self) -> Input:
        """Its tuples."""
        assert self.taken_in is not None, "no step before has read"
        return self.taken_in

    @property
    def work(self) -> Work:
        """The level that the batch is at."""
        assert self.at is not None, "the batch is at no level"
        return self.at

    @property
    def number(self) -> int:
        """The number of the batch."""
        return self.before.batch + 1

    @property
    def program(self) -> Program:
        """What the flow computes."""
        return self.running.program

    @property
    def rows(self) -> dict[str, int]:
        """By stream that came, how many tuples it has brought."""
        return {name: self.figures.of(name).rows for name in self.offer.found}

    @property
    def counts(self) -> dict[str, Mapping[str, int]]:
        """What the batch has counted, by stream or by query."""
        tally = self.tally
        return {
            "rows": self.rows,
            "answers": tally.of(self.program.queries),
            "late": tally.late,
            "bad": tally.bad,
            "shed": tally.shed,
            "dropped": tally.dropped,
        }

    def inputs(self, streams: Iterable[str]) -> dict[str, DataFrame]:
        """The usable tuples of streams, and of stages of earlier levels."""
        return self.program.inputs(streams, self.input.streams)

    def with_work(self, **more: Any) -> Context:
        """The context with more of what its level has done."""
        return replace(self, at=replace(self.work, **more))

    def counted(self, **more: Mapping[str, Any]) -> Context:
        """The context with what was counted besides, by kind."""
        known = {what: {**getattr(self.tally, what), **counts} for what, counts in more.items()}
        return replace(self, tally=replace(self.tally, **known))


Step = Callable[[Context], Context]
