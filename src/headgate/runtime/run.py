"""A running flow: one Structured Streaming query that finds the data, keeps the offsets and calls the loop."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate import given
from headgate.errors import Error, FlowError, ParseError, StateError
from headgate.lang import parse_length
from headgate.operators.filling import filled
from headgate.operators.sql import quoted, stacked
from headgate.plan.catalog import did_you_mean
from headgate.plan.nodes import WINDOW_START
from headgate.progress.place import read as read_place
from headgate.runtime.failures import plain_errors
from headgate.runtime.pieces import Piece, Read
from headgate.runtime.sinks import CallSink, ParquetSink
from headgate.runtime.splitting import split_as_decided
from headgate.runtime.telling import status
from headgate.shedding.fill import check_fill, group_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from headgate.lang import Query
    from headgate.plan import Strategy
    from headgate.runtime.flow import Flow
    from headgate.runtime.loop import BatchReport, Loop
    from headgate.runtime.manifest import Manifest
    from headgate.runtime.sources import Source
    from headgate.shedding.policy import Policy

#: The trigger of a run that takes what there is now, and ends.
AVAILABLE_NOW = "available now"
#: In microseconds: a hundred years, which Spark can still count.
_LONGEST_PAUSE = 36_525 * 86_400_000_000
#: What can be had, and what of.
_OUTPUTS = {"answers": "query", "late": "query", "shed": "query", "bad": "stream"}
_STREAM = "_hg_stream"
#: Spark knows sources by their place, or, if told to, by name.
_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
_OFFSETS = "spark.sql.streaming.offsetLog.formatVersion"
_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)


@dataclass(frozen=True)
class Inputs:
    """The streams of a flow by where they come from."""

    spark: SparkSession
    sources: Mapping[str, Source | DataFrame]
    schemas: Mapping[str, StructType]
    needed: Mapping[str, list[str]]

    @property
    def bounded(self) -> dict[str, DataFrame]:
        """The bounded DataFrames."""
        return {n: s for n, s in self.sources.items() if isinstance(s, DataFrame) and not s.isStreaming}

    @property
    def direct(self) -> dict[str, Source]:
        """The sources that are read directly."""
        return {n: s for n, s in self.sources.items() if not isinstance(s, DataFrame)}

    @property
    def streaming(self) -> dict[str, DataFrame]:
        """The streaming DataFrames of the caller."""
        return {n: s for n, s in self.sources.items() if isinstance(s, DataFrame) and s.isStreaming}

    @property
    def named(self) -> bool:
        """Whether Spark knows the streams by name, so that there can be others at a restart.

        It would have to know the caller's own by name too, which get one only where the caller's session allows it.
        """
        return not self.streaming

    def _reader(self, name: str) -> DataStreamReader:
        reader = self.spark.readStream
        return reader.name(_NOT_IN_NAMES.sub(lambda odd: f"_{ord(odd[0]):x}", name)) if self.named else reader

    def check_known(self, manifest: Manifest, checkpoint: str) -> None:
        """Raises an error if Spark cannot go on from a checkpoint with these streams."""
        sources, known = [*self.direct, *self.streaming], manifest.sources
        if not known or (self.named and manifest.named) or (self.named == manifest.named and sources == known):
            return
        own = ", ".join(self.streaming) or "a DataFrame"
        raise StateError(
            f"the checkpoint {checkpoint} was begun with the streams {', '.join(known)}, and now there are"
            f" {', '.join(sources)}: where {own} streams, it has to be the same ones in the same order; read streams by"
            " hg.sources, or start with a new checkpoint"
        )

    @property
    def _columnar(self) -> set[str]:
        return {name for name, source in self.direct.items() if source.columnar}

    def union(self) -> DataFrame:
        """All streams that are not bounded as one, tagged, direct ones first: of those Spark passes on no rows."""
        for setting, value in {_EVOLUTION: str(self.named).lower(), _OFFSETS: "2" if self.named else "1"}.items():
            self.spark.conf.set(setting, value)
        found = [
            source.stream(self.spark, self._reader(name)).where(F.lit(False)).select(F.lit(name).alias(_STREAM))
            for name, source in self.direct.items()
        ]
        given = [
            df.select(F.lit(name).alias(_STREAM), F.struct(*map(quoted, self.needed[name])).alias(name))
            for name, df in self.streaming.items()
        ]
        return stacked([*found, *given])

    @contextmanager
    def batches(self, df: DataFrame, query: StreamingQuery, reads: Mapping[str, int]) -> Iterator[dict[str, Read]]:
        """What a micro-batch has of each stream.

        What is read several times is held in memory meanwhile, unless to read it again is cheaper.
        """
        found = self._found(df, query)
        held = [
            piece.scan
            for name, read in found.items()
            if reads[name] > 1 and name not in self._columnar
            for piece in read.pieces
        ]
        for scan in held:
            scan.persist()
        try:
            yield found
        finally:
            for scan in held:
                scan.unpersist()

    def _found(self, df: DataFrame, query: StreamingQuery) -> dict[str, Read]:
        found: dict[str, Read] = {}
        if self.direct:
            leaves = query._jsq.streamingQuery().lastExecution().analyzed().collectLeaves()
            for i, (name, source) in enumerate(self.direct.items()):
                read = source.read(self.spark, self.schemas[name], self.needed[name], leaves.apply(i))
                if read.pieces:
                    found[name] = read
        for name in self.streaming:
            found[name] = Read([Piece(df.where(f"{_STREAM} = '{name}'").select(f"{name}.*"))])
        return found


def check_output(name: object, output: object, queries: Collection[str], streams: Collection[str]) -> None:
    """Raises an error if there is no such output, or nothing of this name that has it."""
    if not isinstance(output, str) or output not in _OUTPUTS:
        raise FlowError(f"there is no output {given.named(output)}: {did_you_mean(str(output), _OUTPUTS)}")
    kind = _OUTPUTS[output]
    known = queries if kind == "query" else streams
    if not isinstance(name, str) or name not in known:
        raise FlowError(f"there is no {kind} {given.named(name)} in the flow: {did_you_mean(str(name), known)}")


def as_trigger(what: str, trigger: object) -> str | None:
    """How often a batch runs, as Spark takes it; None: one after the other.

    >>> as_trigger("flow.start: trigger", "1.5 minutes")
    '90000 milliseconds'
    >>> as_trigger("flow.start: trigger", "5 parsecs")
    Traceback (most recent call last):
    headgate.errors.FlowError: flow.start: trigger='5 parsecs': give a time, such as '5 seconds', or 'available now'
    """
    if trigger is None or trigger == AVAILABLE_NOW:
        return trigger
    with suppress(ParseError):
        microseconds = parse_length(trigger).microseconds if isinstance(trigger, str) else None
        if microseconds is not None and 0 <= microseconds < _LONGEST_PAUSE:
            return f"{round(microseconds / 1000)} milliseconds"
    raise given.refused(what, trigger, f"a time, such as '5 seconds', or '{AVAILABLE_NOW}'")


class _StoppedError(Exception):
    """Raised inside a micro-batch that begins after the flow was told to stop."""


class Run:
    """A flow that runs, or has run: a handle in the manner of Spark's StreamingQuery."""

    def __init__(self, flow: Flow, loop: Loop, inputs: Inputs) -> None:
        self.name, self._flow = flow.name, flow
        self.resumed_after = loop.manifest.batch if loop.manifest.batch >= 0 else None
        """The batch of an earlier run that this one goes on from; None if it begins anew."""
        self._loop, self._inputs = loop, inputs
        self._lock = threading.RLock()
        self._known = threading.Event()
        self._query: StreamingQuery | None = None
        self._error: BaseException | None = None
        self._stopping = False
        self._ticker: threading.Thread | None = None
        self._asking = threading.RLock()
        self._changer = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-{self.name}-changes")
        self._next_change: Future[None] | None = None

    # How it is run

    def started(self, trigger: str | None) -> Run:
        """Starts the flow in the background."""
        self._inputs.check_known(self._loop.manifest, self._loop.root.path)
        self._loop.know([*self._inputs.direct, *self._inputs.streaming], self._inputs.named)
        self._finish_tick()
        self._run_bounded()
        if self._inputs.direct or self._inputs.streaming:
            once = trigger == AVAILABLE_NOW
            self._loop.waits = not once
            self._begin({"availableNow": True} if once else {"processingTime": trigger or "0 seconds"})
            if not once and any(t.rule.idle is not None for t in self._loop.trackers.values()):
                self._ticker = threading.Thread(target=self._tick, daemon=True, name=f"headgate-{self.name}")
                self._ticker.start()
        return self

    def finished(self) -> Run:
        """Runs over what is there, and returns when that is done."""
        self.started(AVAILABLE_NOW).await_termination()
        return self

    def _finish_tick(self) -> None:
        """A batch that only time brought, and that a crash cut off, comes before all others."""
        pending = self._loop.pending()
        if pending is not None and pending["source_batch"] is None and not pending["ended"]:
            self._loop.run({}, None)

    def _run_bounded(self) -> None:
        """Bounded streams are a batch of their own, and over with it."""
        due = {
            name: Read([Piece(df.select(*map(quoted, self._inputs.needed[name])))])
            for name, df in self._inputs.bounded.items()
            if not self._loop.has_ended(name)
        }
        if due:
            with self._as_decided():
                self._loop.run(due, None, ended=list(due))

    def _as_decided(self) -> AbstractContextManager[None]:
        """Only the first batch may have been decided before: any other would have been stopped by the one before it."""
        return split_as_decided(self._loop.spark, None if self._loop.reports else self._loop.pending())

    def _begin(self, trigger: dict[str, Any]) -> None:
        with plain_errors():
            writer = self._inputs.union().writeStream.foreachBatch(self._batch).queryName(self.name)
            writer = writer.option("checkpointLocation", f"{self._loop.root.path}/source").trigger(**trigger)
            self._query = writer.start()
        self._known.set()

    def _batch(self, df: DataFrame, batch: int) -> None:
        self._known.wait()
        assert self._query is not None
        with self._lock:
            if self._stopping:
                raise _StoppedError
            if batch <= self._loop.manifest.source_batch:
                return  # It was committed before a crash, and Spark did not get to know.
            if batch > self._loop.manifest.source_batch + 1:
                lost = self._loop.manifest.source_batch + 1
                self._error = StateError(
                    f"the checkpoint {self._loop.root.path} has lost batch {lost} of its source: its newest commit is"
                    " damaged; restore it, or start with a new checkpoint"
                )
                raise self._error
            try:
                df.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
                with self._as_decided(), self._inputs.batches(df, self._query, self._loop.reads) as batches:
                    self._loop.run(batches, batch)
            except BaseException as error:
                self._error = error
                raise

    def _tick(self) -> None:
        """In a lull no batch comes, so progress with the wall clock needs batches of its own."""
        assert self._query is not None
        pause = min(t.rule.idle for t in self._loop.trackers.values() if t.rule.idle is not None) / 4e6
        try:
            while not self._stopping and self._query.isActive:
                time.sleep(min(max(pause, 0.05), 5.0))
                with self._lock:
                    if not self._stopping and self._loop.is_due():
                        self._loop.run({}, None)
        except BaseException as error:
            self._error = error
            self._stopping = True
            self._query.stop()

    # How it is changed

    @given.checked("run.query")
    def query(
        self,
        name: str,
        sql: str | Query,
        sink: object = None,
        policy: Policy | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        """Adds a query while the flow runs, as `Flow.query` does, with a sink for its answers.

        It answers from its first whole window on. What runs is not disturbed: changes are prepared beside the batches,
        those that are asked for meanwhile together.
        """
        with self._asking:
            # One of this name that is being dropped is not gone on with.
            self._flow.query(name, sql, policy, strategy, anew=True)
        try:
            with self._asking:
                if sink is not None:
                    self._flow.sink(name, sink)
                self._check_columns()
                change = self._change()
            change.result()
        except Error:
            self._flow.drop(name)
            raise

    @given.checked("run.drop")
    def drop(self, name: str) -> None:
        """Takes a query away while the flow runs."""
        with self._asking:
            if self._flow.names == [name]:
                raise FlowError(f"{name} is the only query of flow {self.name}: stop the flow instead")
            self._flow.drop(name)
            change = self._change()
        change.result()

    def _check_columns(self) -> None:
        needed = self._flow._needed()
        for stream in self._inputs.streaming:
            if missing := set(needed[stream]) - set(self._inputs.needed[stream]):
                columns = ", ".join(sorted(missing))
                raise FlowError(f"stream {stream} does not pass on {columns} yet: stop the flow, and start it again")

    def _change(self) -> Future[None]:
        """Lets what has been asked for come about; one that waits for its turn will do for several."""
        if self._next_change is None:
            self._next_change = self._changer.submit(self._changed)
        return self._next_change

    def _changed(self) -> None:
        """Prepares all that has been asked for, and puts it in place."""
        with self._asking:
            self._next_change, prepare = None, self._flow._definition()
        loop, inputs = prepare(self._loop.manifest)
        with self._lock:
            self._loop, self._inputs = loop.after(self._loop), inputs
        with self._asking:
            if self._next_change is None:
                self._flow.changed()

    # How it is watched and stopped

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self._query is not None and self._query.isActive

    @given.checked("run.await_termination")
    def await_termination(self, timeout: float | None = None) -> bool:
        """Waits until the flow ends, at most `timeout` seconds; tells whether it did. Raises what made it fail."""
        if timeout is not None:
            seconds = "a number of seconds, zero or more, or None to wait for as long as it takes"
            timeout = given.number("run.await_termination: timeout", timeout, seconds, lambda t: 0 <= t < math.inf)
        done = True
        if self._query is not None:
            try:
                if timeout is None:
                    self._query.awaitTermination()
                else:
                    done = bool(self._query.awaitTermination(timeout))  # type: ignore[arg-type]
            except PySparkException:
                if self._error is None and not self._stopping:
                    with plain_errors():
                        raise
        self._raise()
        return done

    @given.checked("run.stop")
    def stop(self) -> None:
        """Stops after the batch that is running."""
        with self._lock:
            self._stopping = True
        if self._query is not None:
            self._query.stop()
        if self._ticker is not None:
            self._ticker.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is None:
            return
        error, self._error = self._error, None
        if isinstance(error, Error):
            raise error
        raise FlowError(f"flow {self.name} stopped: {type(error).__name__}: {error}") from error

    @given.checked("run.results")
    def results(self, query: str, output: str = "answers", fill: str | None = None) -> DataFrame:
        """What has been delivered of a query so far; other outputs are those of `flow.sink`.

        With fill="linear", which `hg.subset` may also have for the query, gaps between answers have rows too, on a line
        between the two; a column `filled` tells such rows from the others.
        """
        check_output(query, output, self._loop.queries, self._inputs.sources)
        check_fill(f"results of {query}", fill)
        subset = self._loop.shedding.subsets.policies.get(query) if output == "answers" else None
        if fill is None and (subset is None or subset.fill is None):
            return self._delivered(query, output)
        if subset is None or subset.by != "window":
            raise FlowError(f"query {query} drops no windows, so it has no gaps: fill is for hg.subset(gap=...)")
        groups, rows = group_columns(self._loop.queries[query]), self._delivered(query, output)
        if missing := {*groups, WINDOW_START} - set(rows.columns):
            raise FlowError(
                f"the sink of {query} has lost {', '.join(sorted(missing))}, without which no gap is filled"
            )
        with plain_errors():
            return filled(rows, groups, *self._loop.shedding.subsets.gone_from(query))

    def _delivered(self, query: str, output: str) -> DataFrame:
        queries, answers = self._loop.queries, output == "answers"
        outlets = [o for o in self._loop.outlets if o.of == query and o.output == output]
        with plain_errors():
            for outlet in outlets:
                rows = outlet.sink.delivered(self._loop.spark, query if answers else f"{query}-{output}")
                if rows is not None:
                    return rows
            if not answers and any(isinstance(o.sink, ParquetSink) for o in outlets):
                return self._loop.frame(queries[query].streams[0] if _OUTPUTS[output] == "query" else query)
            if not answers or not (self._loop.keeps(query) or any(not isinstance(o.sink, CallSink) for o in outlets)):
                ask = f"flow.sink('{query}', hg.sinks.memory(){'' if answers else f', output={output!r}'})"
                what = "answers" if answers else f"{output} tuples"
                raise FlowError(f"the {what} of {query} are not kept; to keep them, {ask}")
            return self._loop.kept(query)

    def batch_seconds(self) -> list[float]:
        """How long each of the last batches took, from its trigger to Spark's own commit."""
        if self._query is None:
            return [sum(report.seconds.values()) for report in self._loop.reports]
        return [p["durationMs"]["triggerExecution"] / 1000 for p in self._query.recentProgress]

    @given.checked("run.explain")
    def explain(self) -> str:
        """How the flow is run, as text."""
        return self._loop.explain()

    @property
    def reports(self) -> list[BatchReport]:
        """What the last batches did, the latest at the end."""
        return self._loop.reports

    @given.checked("run.status")
    def status(self) -> dict[str, Any]:
        """How the flow is doing: its batches, its progress, its state, and what was counted."""
        # Only what is committed, which never changes: a batch may be running meanwhile.
        loop, manifest = self._loop, self._loop.manifest
        told = {name: read_place(state["told"]) for name, state in manifest.progress.items()}
        last = loop.reports[-1] if loop.reports else None
        return {
            "name": self.name,
            "active": self.is_active,
            "batch": manifest.batch,
            "last_batch": {"rows": last.rows, "seconds": last.seconds} if last is not None else None,
            "progress": {n: _shown(t.rule.numeric, told.get(n)) for n, t in loop.trackers.items()},
            "closed": {n: loop.stages[n].window.bounds(k)[1] for n, k in manifest.closed.items()},
            "state": {
                "files": sum(len(f.names) for f in manifest.files),
                "rows": manifest.state_rows,
                "bytes": manifest.state_bytes,
            },
            **manifest.counters,
            **status(loop.shedding, loop.decided),
        }


def _shown(numeric: bool, place: Any) -> Any:
    if place is None or place == math.inf:
        return place
    return place if numeric else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(place))
