"""The engine of a flow: runs its batches, one at a time.

Nothing is kept in memory that the manifest does not have, apart from what is learned of the load and the figures of the
last batches. A batch that a crash cuts off is run again from its decision, onto the same file names: it happens once,
however often it is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.batch.context import Context, Offer, Step, Stopwatch
from headgate.batch.pipeline import STEPS, passed_through
from headgate.batch.prepare import Preparation
from headgate.batch.read import with_numbers
from headgate.bounded.answer import answer
from headgate.errors import Error
from headgate.incremental.reduce import MALFORMED
from headgate.observe.events import BatchReport, Event, Standing
from headgate.observe.report import batch_events, batch_report, standing
from headgate.plan.logical.pruned import pruned
from headgate.protocol.decision import Drops
from headgate.protocol.manifest import Manifest
from headgate.protocol.recovery import is_tick
from headgate.spark.failures import about_queries, plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.batch.program import Program
    from headgate.connect.scan import Read
    from headgate.plan.stream.stages import Continuous
    from headgate.protocol.decision import Decision
    from headgate.shed.live.shedding import Shedding
    from headgate.store.checkpoint import Checkpoint

#: So many reports of batches are kept.
_REPORTS = 100


class Engine:
    """A flow, batch by batch."""

    def __init__(self, preparation: Preparation, manifest: Manifest, steps: Sequence[Step] = STEPS) -> None:
        self._preparation, self._steps = preparation, steps
        self.running, self.manifest = preparation.started(manifest)
        self.reports: list[BatchReport] = []
        """What the last batches did."""
        self.dropped: Drops | None = None
        """What was left out of the last batch."""
        self.live = False
        """Whether batches hold what came since the last one, and not just what there was to be read."""
        self._last_begun: float | None = None
        self._began = self.running.clock.now()
        self._decided: int | None = None
        """When the last batch was decided: before this run began, if it was run again after a crash."""

    def after(self, other: Engine) -> Engine:
        """This engine, going on where another one of the same flow is."""
        self.running, self.manifest = self._preparation.followed(self.running, other.running, other.manifest)
        self.reports, self.live, self._last_begun = other.reports, other.live, other._last_begun
        self._began, self._decided = other._began, other._decided
        return self

    # What it is made of

    @property
    def program(self) -> Program:
        """What the flow computes."""
        return self.running.program

    @property
    def checkpoint(self) -> Checkpoint:
        """Where it keeps what it needs to go on."""
        return self.running.checkpoint

    @property
    def shedding(self) -> Shedding:
        """What decides about what is left out."""
        return self.running.shedding

    # Batches

    def know(self, streams: Sequence[str], named: bool) -> None:
        """Takes note of the streams that Spark finds the data of, and whether it knows them by name."""
        self.manifest = replace(self.manifest, source=replace(self.manifest.source, streams=list(streams), named=named))

    def pending(self) -> Decision | None:
        """The decision of a batch that was begun and not committed."""
        return self.checkpoint.pending(self.manifest)

    def finish_tick(self) -> None:
        """Runs a batch that only time brought, and that a crash cut off: it comes before all others."""
        if is_tick(self.pending()):
            self.run({}, None)

    def is_due(self) -> bool:
        """Whether time alone has brought punctuation that closes windows."""
        state, streams = self.manifest.state, self.running.streams
        if not (state.files or state.tuples):
            return False
        now = streams.punctuation(self.running.clock.now(), self.manifest.progress.ended)
        return now != streams.told and self.pending() is None

    def run(self, found: Mapping[str, Read], source_batch: int | None, ended: Sequence[str] = ()) -> None:
        """Runs one batch over what was found of some streams; `ended` are the streams that are over with it."""
        interval = self._interval() if found else None
        last = self.reports[-1] if self.reports else None
        held = self._decided is None or self._decided < self._began
        offer = Offer(found, source_batch, ended, interval, last, held, self.live)
        context = Context(self.running, offer, self.manifest, self.manifest, Stopwatch(self.running.clock))
        try:
            with plain_errors():
                context = passed_through(self._steps, context)
        except Exception as error:
            self.checkpoint.check_alone(self.manifest)  # If another run is at work here, that is what is wrong.
            if isinstance(error, Error):
                about_queries(error, self.program.queries, lambda query: self._fails(query, found))
            raise
        self._happened(context)

    def _happened(self, context: Context) -> None:
        self.manifest, self.dropped, self._decided = context.manifest, context.decision.drops, context.decision.now
        standing = self.standing()
        report = batch_report(standing, context.watch.laps, context.counts, self.dropped)
        self.reports = [*self.reports[1 - _REPORTS :], report]
        for event in batch_events(report, standing):
            self.running.tell(event)

    def _interval(self) -> float | None:
        """The seconds in which what a batch holds has come, if it holds what came since the last one."""
        now = self.running.clock.elapsed()
        since, self._last_begun = self._last_begun, now
        return now - since if self.live and since is not None else None

    def _fails(self, query: Continuous, found: Mapping[str, Read]) -> bool:
        """Whether a query cannot be computed over the tuples of a batch alone."""
        program = self.program
        pieces = {name: with_numbers(program, self.manifest, name, own) for name, own in found.items()}
        tables = program.definition.tables.now(program.looked_into)
        try:
            with plain_errors():
                rows = answer(pruned(query.plan), {**program.inputs(query.streams, pieces), **tables})
                rows.write.format("noop").mode("overwrite").save()
        except Error as error:
            return error.by_values
        return False

    # What others ask

    def tell_to(self, tell: Callable[[Event], None]) -> None:
        """Tells someone of all events from now on."""
        self.running = replace(self.running, tell=tell)

    def standing(self) -> Standing:
        """How the flow stands after its last batch."""
        program, rules = self.program, {name: own.progress for name, own in self.running.streams.trackers.items()}
        numeric = {name: rules[name].numeric if name in rules else None for name in program.watches}
        shed = self.shedding.status(self.dropped)
        return standing(self.manifest, numeric, program.queries, program.stages, program.closing, shed)

    def has_ended(self, stream: str) -> bool:
        """Whether a bounded stream has been read."""
        return stream in self.manifest.progress.ended

    def frame(self, stream: str) -> DataFrame:
        """A DataFrame without rows and with the columns of a stream."""
        return self.program.frames[stream].drop(MALFORMED)

    def kept(self, query: str) -> DataFrame:
        """The answers of a query that the flow keeps itself."""
        manifest = self.manifest
        batches = range(manifest.queries.begun[query], manifest.batch + 1)
        return self.running.stored.answers.kept(query, batches, manifest)
