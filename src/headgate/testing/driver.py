"""Runs a flow batch by batch, without Structured Streaming.

This is the only file of the kit, and of the tests, that knows how the engine is built.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.batch.clock import SYSTEM_CLOCK
from headgate.connect.scan import Piece, Read
from headgate.connect.sinks import memory
from headgate.errors import FlowError
from headgate.incremental.reduce import MALFORMED
from headgate.plan.logical.catalog import did_you_mean
from headgate.progress import Tracker
from headgate.progress.place import read
from headgate.testing.crashes import KilledError, at, kill

if TYPE_CHECKING:
    from headgate.api.flow import Flow
    from headgate.batch.clock import Clock
    from headgate.batch.engine import Engine
    from headgate.incremental.levels import Level
    from headgate.observe.events import BatchReport
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.progress import Punctuation
    from headgate.protocol.decision import Drops
    from headgate.protocol.manifest import Manifest, StateFiles
    from headgate.shed.controller import Overload
    from headgate.shed.live.shedding import Shedding

#: What a batch has of a stream: rows (tuples in the order of the columns, or dicts), a DataFrame, or several of these.
Tuples: TypeAlias = DataFrame | Sequence[DataFrame] | Sequence[tuple[Any, ...]] | Sequence[Mapping[str, Any]]


def drive(
    flow: Flow, clock: Clock = SYSTEM_CLOCK, overload: Overload | None = None, collect: Collection[str] = ()
) -> Driver:
    """A driver of a flow. It opens the checkpoint, and runs nothing yet.

    `collect` names outputs to keep besides the answers: "late", "bad" and "shed".

    >>> import headgate as hg, tempfile
    >>> from headgate.testing import Batches, drive
    >>> flow = hg.Flow(hg.session(), name="auction", checkpoint=tempfile.mkdtemp())
    >>> flow.stream("bids", Batches("price INT, ts INT"), progress=hg.progress("ts", ordered=True))
    >>> flow.query("top", "SELECT max(price) AS top [RANGE 2, SLIDE 2] FROM bids")
    >>> driver = drive(flow)
    >>> driver.batch(bids=[(5, 0), (7, 1), (3, 2)])
    >>> [(row["window_start"], row["top"]) for row in driver.answers("top")]
    [(0, 7)]
    """
    for output in collect:
        for name in flow._sources if output == "bad" else flow.names:
            if not any((o.of, o.output) == (name, output) for o in flow._outlets):
                flow.sink(name, memory(), output)
    return Driver(flow, clock, overload)


class Driver:
    """A flow that runs when the test says so, one batch at a time."""

    def __init__(self, flow: Flow, clock: Clock, overload: Overload | None) -> None:
        self._flow, self._clock, self._overload = flow, clock, overload
        self._run = flow._run(overload, clock)
        self._killed: str | None = None

    # What happens

    def batch(
        self,
        streams: Mapping[str, Tuples] | None = None,
        /,
        *,
        ended: Collection[str] = (),
        pieces: int = 1,
        amounts: Mapping[str, float] | None = None,
        **more: Tuples,
    ) -> None:
        """Runs one batch over tuples of some streams; `ended` are the streams that are over with it.

        Rows are cut into `pieces`, as if they came in as many files; a DataFrame is one piece, and a list of them is
        several. `amounts` says how much a stream has by a measure that needs no look at it, such as bytes. A batch
        without streams is one that only time has brought.
        """
        if self._killed is not None:
            raise FlowError(f"this driver was killed at {self._killed}: go on with driver.restarted()")
        given = {**(streams or {}), **more}
        found = {name: self._read(name, own, pieces, (amounts or {}).get(name)) for name, own in given.items()}
        number = self.batches if given else None
        self._engine.run({name: own for name, own in found.items() if own.pieces}, number, ended=list(ended))

    def finish(self) -> None:
        """Ends all streams, so that every window closes."""
        self.batch(ended=[name for name in self._engine.program.watches if name not in self.ended])

    def tick(self) -> bool:
        """Runs a batch if time alone has brought one; tells whether it has."""
        due = self._engine.is_due()
        if due:
            self.batch()
        return due

    @contextmanager
    def killed_at(self, point: str) -> Iterator[list[str]]:
        """Has the process end when a batch reaches a point: one of CRASH_POINTS, or "ingested:2" for the second time.

        Gives a list that holds the point if it was reached. Go on with `restarted()`.
        """
        with suppress(KilledError), at(point, kill) as hit:
            yield hit
        self._killed = point if hit else None

    def restarted(self, flow: Flow | None = None) -> Driver:
        """The flow in a new process: it has what is on disk, and nothing else. Another flow brings other queries."""
        return Driver(flow or self._flow, self._clock, self._overload)

    # What came of it

    def results(self, query: str, output: str = "answers", fill: str | None = None) -> DataFrame:
        """What has been delivered, as `run.results` gives it."""
        return self._run.results(query, output, fill)

    def answers(self, query: str) -> list[dict[str, Any]]:
        """The answers of a query so far."""
        return _rows(self.results(query))

    def late(self, query: str) -> list[dict[str, Any]]:
        """The tuples that came too late for a query: needs collect=["late"]."""
        return _rows(self.results(query, "late"))

    def bad(self, stream: str) -> list[dict[str, Any]]:
        """The tuples of a stream that cannot be used: needs collect=["bad"]."""
        return _rows(self.results(stream, "bad"))

    def shed(self, query: str) -> list[dict[str, Any]]:
        """The tuples that the policy of a query left out: needs collect=["shed"]."""
        return _rows(self.results(query, "shed"))

    def status(self) -> dict[str, Any]:
        """How the flow is doing, as `run.status` gives it."""
        return self._run.status()

    def explain(self) -> str:
        """The flow, and how it is run, as `run.explain` gives it."""
        return self._run.explain()

    @property
    def reports(self) -> list[BatchReport]:
        """What the last batches did, the latest at the end."""
        return self._engine.reports

    # What is on disk after the last batch

    @property
    def batches(self) -> int:
        """How many batches with tuples have been committed."""
        return self._engine.manifest.source.batch + 1

    @property
    def ended(self) -> Sequence[str]:
        """The streams that are over."""
        return self._engine.manifest.progress.ended

    @property
    def closed(self) -> Mapping[str, int]:
        """The number of the last window that each stage has closed."""
        return self._engine.manifest.windows.closed

    @property
    def state_files(self) -> Sequence[StateFiles]:
        """The files of partial rows."""
        return self._engine.manifest.state.files

    @property
    def tuple_files(self) -> Sequence[StateFiles]:
        """The files of tuples that are kept as they are."""
        return self._engine.manifest.state.tuples

    @property
    def tables(self) -> Sequence[Mapping[str, Any]]:
        """The layouts of the tables of partials."""
        return self._engine.manifest.state.tables

    @property
    def runs(self) -> Sequence[Any]:
        """The runs that have committed anything."""
        return self._engine.manifest.runs.marks

    @property
    def manifest(self) -> Manifest:
        """All of it, to compare with another one. Prefer the properties above: its parts move."""
        return self._engine.manifest

    def counted(self, what: str) -> Mapping[str, int]:
        """A counter by stream or query: "rows", "answers", "late", "bad", "shed" or "dropped"."""
        return self._engine.manifest.counters.get(what, {})

    def punctuation(self, stream: str) -> Punctuation:
        """How far a stream has come by its rule; asking changes nothing."""
        tracker = self._engine.running.streams.trackers[stream]
        return Tracker.restored(tracker.progress, tracker.state()).punctuation(self._clock.now())

    def kept(self, stage: str) -> list[int]:
        """How many tuples a join, or another stage that keeps some, still needs; one number for each side."""
        manifest, tuples = self._engine.manifest, self._engine.running.stored.tuples
        told = {a: read(place) for a, place in manifest.windows.told[stage].items() if place is not None}
        found = [tuples.kept(manifest, keeper, told) for keeper in tuples.of(stage)]
        return [0 if rows is None else rows.count() for rows in found]

    def stored(self, stage: str) -> int:
        """How many tuples of a stage are on disk, with those that nobody needs any more."""
        return self._engine.running.stored.tuples.count(self._engine.manifest, stage)

    # How it is planned and shed

    @property
    def queries(self) -> Mapping[str, Continuous]:
        """The queries."""
        return self._engine.program.queries

    @property
    def stages(self) -> Mapping[str, Stage]:
        """The stages that the queries are run in."""
        return self._engine.program.stages

    @property
    def levels(self) -> Sequence[Level]:
        """The stages by level, with the tables that they share."""
        return self._engine.program.levels

    @property
    def shedding(self) -> Shedding:
        """What is known of the load, and what is left out for it."""
        return self._engine.shedding

    @property
    def decided(self) -> Drops | None:
        """What the last batch was to leave out; None before the first."""
        return self._engine.dropped

    @property
    def pending(self) -> Drops | None:
        """What a batch that was begun and not committed is to leave out; None without one."""
        decision = self._engine.pending()
        return None if decision is None else decision.drops

    # The engine

    @property
    def _engine(self) -> Engine:
        return self._run._engine

    def _read(self, stream: str, own: Tuples, pieces: int, amount: float | None) -> Read:
        if stream not in self._flow._schemas:
            raise FlowError(f"there is no stream {stream} in the flow: {did_you_mean(stream, self._flow._schemas)}")
        if isinstance(own, DataFrame):
            return Read([Piece(own)], amount)
        frames = [part for part in own if isinstance(part, DataFrame)]
        if not frames:
            ends = [len(own) * i // pieces for i in range(pieces + 1)]
            frames = [self._frame(stream, own[a:b]) for a, b in itertools.pairwise(ends) if b > a]
        return Read([Piece(frame) for frame in frames], amount)

    def _frame(self, stream: str, rows: Sequence[Any]) -> DataFrame:
        schema = self._flow._schemas[stream]
        columns = StructType([column for column in schema if column.name != MALFORMED])
        for row in rows:
            if unknown := [name for name in (row if isinstance(row, Mapping) else ()) if name not in columns.names]:
                hint = did_you_mean(unknown[0], columns.names)
                raise FlowError(f"stream {stream} has no column {unknown[0]}: {hint}")
        # In the session of the caller, which this makes the active one.
        frame = self._flow._caller.createDataFrame(list(rows), columns)
        marked = MALFORMED in schema.names
        return frame.withColumn(MALFORMED, F.lit(None).cast("string")) if marked else frame


def _rows(df: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in df.collect()]
