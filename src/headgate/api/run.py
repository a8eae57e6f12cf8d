"""A running flow: one Structured Streaming query that finds the data, keeps the offsets and calls the engine."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate import given
from headgate.api.streaming import begin, identify
from headgate.connect.files.reading import has_place
from headgate.connect.scan import Piece, Read
from headgate.connect.sinks import CallSink, ParquetSink
from headgate.errors import Error, FlowError, ParseError
from headgate.lang import parse_length
from headgate.observe.explain import kept
from headgate.observe.status import status
from headgate.plan.logical.catalog import did_you_mean
from headgate.plan.logical.nodes import WINDOW_START
from headgate.protocol.names import LOG
from headgate.shed.subset.fill import check_fill, group_columns
from headgate.shed.subset.filling import filled
from headgate.spark.failures import plain_errors, told
from headgate.spark.folder import Folder
from headgate.spark.splitting import split_as_decided
from headgate.sql.text import quoted
from headgate.store import lock as claims

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from headgate.api.flow import Flow
    from headgate.batch.engine import Engine
    from headgate.batch.report import BatchReport
    from headgate.connect.inputs import Inputs
    from headgate.lang import Query
    from headgate.plan import Strategy
    from headgate.shed.policy import Policy

#: The trigger of a run that takes what there is now, and ends.
AVAILABLE_NOW = "available now"
#: In microseconds: a hundred years, which Spark can still count.
_LONGEST_PAUSE = 36_525 * 86_400_000_000
#: In seconds: what Spark does not wait for, as it counts in milliseconds, and the longest that it can wait for.
_A_MOMENT, _AGES = 0.001, 1e12
#: What can be had, and what of.
_OUTPUTS = {"answers": "query", "late": "query", "shed": "query", "bad": "stream"}
#: So often, in seconds, it is looked whether the places of streams are still there.
_LOOK = 2.0


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
    """Raised inside a micro-batch when the flow has been stopped."""

    def __init__(self) -> None:
        # By these words Spark knows an interruption from a failure.
        words = "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"
        super().__init__(words)


class Run:
    """A flow that runs, or has run: a handle in the manner of Spark's StreamingQuery."""

    def __init__(self, flow: Flow, engine: Engine, inputs: Inputs, caller: SparkSession) -> None:
        self.name, self._flow = flow.name, flow
        self.resumed_after = engine.manifest.batch if engine.manifest.batch >= 0 else None
        """The batch of an earlier run that this one goes on from; None if it begins anew."""
        self.id: str | None = None
        """What it is called in `spark.streams`, the same in every run on its checkpoint; None if no stream goes on."""
        self._engine, self._inputs, self._caller = engine, inputs, caller
        self._lock = threading.RLock()
        self._known = threading.Event()
        self._query: StreamingQuery | None = None
        self._error: Error | None = None
        self._told = False
        self._starting = self._stopping = False
        self._ticker: threading.Thread | None = None
        self._halted = threading.Event()
        self._asking = threading.RLock()
        self._changer = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-{self.name}-changes")
        self._next_change: Future[None] | None = None

    @property
    def _root(self) -> Folder:
        """The folder of the checkpoint."""
        root = self._engine.checkpoint.root
        assert isinstance(root, Folder)
        return root

    @property
    def _place(self) -> str:
        """Where the checkpoint is, the same however its path is written."""
        return self._root.place

    # How it is run

    def started(self, trigger: str | None) -> Run:
        """Starts the flow in the background."""
        self._starting = True
        claims.claim(self._place, self)
        try:
            self._start(trigger)
        except BaseException:
            claims.release(self._place, self)
            raise
        finally:
            self._starting = False
        return self

    def _start(self, trigger: str | None) -> None:
        self._inputs.check_known(self._engine.manifest, self._engine.checkpoint.path)
        self._engine.know([*self._inputs.direct, *self._inputs.streaming], self._inputs.named)
        streams = bool(self._inputs.direct or self._inputs.streaming)
        if streams:
            self._engine.checkpoint.check_log(self._engine.manifest)
            self.id = identify(self._root / LOG)
        self._engine.finish_tick()
        self._run_bounded()
        if streams:
            once = trigger == AVAILABLE_NOW
            self._engine.live = not once
            self._begin({"availableNow": True} if once else {"processingTime": trigger or "0 seconds"})
            if not once:
                self._ticker = threading.Thread(target=self._tick, daemon=True, name=f"headgate-{self.name}")
                self._ticker.start()

    def finished(self) -> Run:
        """Runs over what is there, and returns when that is done."""
        self.started(AVAILABLE_NOW).await_termination()
        return self

    def _run_bounded(self) -> None:
        """Bounded streams are a batch of their own, and over with it."""
        due = {
            name: Read([Piece(df.select(*map(quoted, self._inputs.needed[name])))])
            for name, df in self._inputs.bounded.items()
            if not self._engine.has_ended(name)
        }
        if due:
            with self._as_decided():
                self._engine.run(due, None, ended=list(due))

    def _as_decided(self) -> AbstractContextManager[None]:
        """Only the first batch may have been decided before: any other would have been stopped by the one before it."""
        return split_as_decided(self._engine.program.spark, None if self._engine.reports else self._engine.pending())

    def _begin(self, trigger: dict[str, Any]) -> None:
        try:
            with plain_errors():
                self._query = begin(
                    self._inputs.union(),
                    self._caller,
                    self.name,
                    self._root / LOG,
                    self._inputs.prepare,
                    lambda writer: writer.foreachBatch(self._batch).trigger(**trigger),
                )
        finally:
            self._known.set()

    def _batch(self, df: DataFrame, batch: int) -> None:
        self._known.wait()
        with self._lock:
            if self._query is None or self._stopping:
                self._leave()
            assert self._query is not None
            try:
                if self._engine.checkpoint.is_next(self._engine.manifest, batch):
                    with (
                        self._as_decided(),
                        self._inputs.batches(df, self._query, self._engine.program.reads) as batches,
                    ):
                        self._engine.run(batches, batch)
            except BaseException as error:
                if not self.is_active:
                    raise _StoppedError from None  # By someone else, in the middle of it.
                self._failed(error)
                raise

    def _leave(self) -> None:
        """Ends the micro-batch of a query that is about to be stopped, once it is: else Spark would call it failed."""
        while self.is_active:
            time.sleep(0.01)
        raise _StoppedError

    def _tick(self) -> None:
        """In a lull no batch comes: progress with the wall clock needs some of its own, and places may be gone."""
        assert self._query is not None
        idle = [t.rule.idle / 4e6 for t in self._engine.running.streams.trackers.values() if t.rule.idle is not None]
        pause = min(max(min(idle, default=_LOOK), 0.05), _LOOK)
        gone: list[str] = []
        try:
            while not self._halted.wait(pause) and self.is_active:
                gone = self._inputs.gone(gone)
                with self._lock:
                    if idle and not self._stopping and self.is_active and self._engine.is_due():
                        self._engine.run({}, None)
        except BaseException as error:
            self._failed(error)
            self._stopping = True
            self._query.stop()

    def _failed(self, error: BaseException) -> None:
        """Takes note of what made the flow fail; what comes of that is not of interest."""
        if self._error is None:
            self._error = told(error, f"flow {self.name} stopped")

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
        self._check_active()
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
        self._check_active()
        with self._asking:
            if self._flow.names == [name]:
                raise FlowError(f"{name} is the only query of flow {self.name}: stop the flow instead")
            self._flow.drop(name)
            change = self._change()
        change.result()

    def _check_active(self) -> None:
        if not self.is_active:
            raise FlowError(f"flow {self.name} does not run any more: change the flow, and start it again")

    def _check_columns(self) -> None:
        needed = self._flow._needed()
        for stream in self._inputs.streaming:
            if missing := set(needed[stream]) - set(self._inputs.needed[stream]):
                columns = ", ".join(sorted(missing))
                raise FlowError(f"stream {stream} does not pass on {columns} yet: stop the flow, and start it again")
            if stream in self._flow.numbered - self._inputs.numbered and has_place(self._inputs.streaming[stream]):
                raise FlowError(f"stream {stream} does not pass on its order yet: stop the flow, and start it again")

    def _change(self) -> Future[None]:
        """Lets what has been asked for come about; one that waits for its turn will do for several."""
        if self._next_change is None:
            self._next_change = self._changer.submit(self._changed)
        return self._next_change

    def _changed(self) -> None:
        """Prepares all that has been asked for, and puts it in place."""
        with self._asking:
            self._next_change, prepare = None, self._flow._definition()
        engine, inputs = prepare(self._engine)
        with self._lock:
            self._engine, self._inputs = engine.after(self._engine), inputs
        with self._asking:
            if self._next_change is None:
                self._flow.changed()

    # How it is watched and stopped

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        if self._query is None:
            return False
        try:
            return self._query.isActive
        except (Py4JError, OSError):  # Spark has been stopped, and all that ran in it.
            return False

    @property
    def holds(self) -> bool:
        """Whether it still works on its checkpoint; waits for the end of a batch if it has been stopped in one."""
        if self._starting or self.is_active:
            return True
        with self._lock:
            return False

    @property
    def last_progress(self) -> StreamingQueryProgress | None:
        """What Spark says of the last micro-batch, as `StreamingQuery.lastProgress`; None before the first."""
        return self.recent_progress[-1] if self.recent_progress else None

    @property
    def recent_progress(self) -> list[StreamingQueryProgress]:
        """What Spark says of the last micro-batches, as `StreamingQuery.recentProgress`."""
        if self._query is None:
            return []
        with plain_errors():
            return self._query.recentProgress

    @given.checked("run.exception")
    def exception(self) -> Error | None:
        """What made the flow fail, or None."""
        if self._error is None and self._query is not None and not self._stopping and not self.is_active:
            with suppress(Py4JError, OSError, PySparkException):
                if (found := self._query.exception()) is not None:
                    self._failed(found)
        return self._error

    @given.checked("run.await_termination")
    def await_termination(self, timeout: float | None = None) -> bool:
        """Waits until the flow ends, at most `timeout` seconds; tells whether it did. Raises what made it fail."""
        if timeout is not None:
            seconds = "a number of seconds, zero or more, or None to wait for as long as it takes"
            timeout = given.number("run.await_termination: timeout", timeout, seconds, lambda t: 0 <= t < math.inf)
        done = not self.is_active
        if self._query is not None and not done:
            # What made it fail is known better here, and is told below.
            with suppress(PySparkException, Py4JError, OSError):
                if timeout is None:
                    self._query.awaitTermination()
                elif timeout >= _A_MOMENT:
                    self._query.awaitTermination(min(timeout, _AGES))  # type: ignore[arg-type]
            done = not self.is_active
        if done:
            self._over()
            if (error := self.exception()) is not None:
                self._told = True
                raise error
        return done

    @given.checked("run.stop")
    def stop(self) -> None:
        """Stops after the batch that is running; raises what made the flow fail before, if nobody was told yet."""
        with self._lock:
            self.exception()
            self._stopping = True
        self._halted.set()
        if self._query is not None:
            with suppress(Py4JError, OSError), plain_errors():
                self._query.stop()
        if self._ticker is not None:
            self._ticker.join()
        self._over()
        if self._error is not None and not self._told:
            self._told = True
            raise self._error

    def _over(self) -> None:
        claims.release(self._place, self)

    @given.checked("run.results")
    def results(self, query: str, output: str = "answers", fill: str | None = None) -> DataFrame:
        """What has been delivered of a query so far; other outputs are those of `flow.sink`.

        With fill="linear", which `hg.subset` may also have for the query, gaps between answers have rows too, on a line
        between the two; a column `filled` tells such rows from the others.
        """
        check_output(query, output, self._engine.program.queries, self._inputs.sources)
        check_fill(f"results of {query}", fill)
        subset = self._engine.shedding.subsets.policies.get(query) if output == "answers" else None
        if fill is None and (subset is None or subset.fill is None):
            return self._delivered(query, output)
        if subset is None or subset.by != "window":
            raise FlowError(f"query {query} drops no windows, so it has no gaps: fill is for hg.subset(gap=...)")
        groups, rows = group_columns(self._engine.program.queries[query]), self._delivered(query, output)
        if missing := {*groups, WINDOW_START} - set(rows.columns):
            raise FlowError(
                f"the sink of {query} has lost {', '.join(sorted(missing))}, without which no gap is filled"
            )
        with plain_errors():
            return filled(rows, groups, *self._engine.shedding.subsets.gone_from(query))

    def _delivered(self, query: str, output: str) -> DataFrame:
        queries, answers = self._engine.program.queries, output == "answers"
        outlets = [o for o in self._engine.program.outlets if o.of == query and o.output == output]
        with plain_errors():
            for outlet in outlets:
                rows = outlet.sink.delivered(self._engine.program.spark, query if answers else f"{query}-{output}")
                if rows is not None:
                    return rows
            if not answers and any(isinstance(o.sink, ParquetSink) for o in outlets):
                return self._engine.frame(queries[query].streams[0] if _OUTPUTS[output] == "query" else query)
            if not answers or not (
                self._engine.program.keeps(query) or any(not isinstance(o.sink, CallSink) for o in outlets)
            ):
                ask = f"flow.sink('{query}', hg.sinks.memory(){'' if answers else f', output={output!r}'})"
                what = "answers" if answers else f"{output} tuples"
                raise FlowError(f"the {what} of {query} are not kept; to keep them, {ask}")
            return self._engine.kept(query)

    def batch_seconds(self) -> list[float]:
        """How long each of the last batches took, from its trigger to Spark's own commit."""
        if self._query is None:
            return [sum(report.seconds.values()) for report in self._engine.reports]
        return [p["durationMs"]["triggerExecution"] / 1000 for p in self.recent_progress]

    @given.checked("run.explain")
    def explain(self) -> str:
        """The flow as `Flow.explain` has it, then how it is run: what is kept, who shares it, and what is shed."""
        with self._asking:
            flow, engine = self._flow.explain(), self._engine
        with engine.running.lock:
            return "\n\n".join(filter(None, [flow, kept(engine)]))

    @property
    def reports(self) -> list[BatchReport]:
        """What the last batches did, the latest at the end."""
        return self._engine.reports

    @given.checked("run.status")
    def status(self) -> dict[str, Any]:
        """How the flow is doing: its batches, its progress, its state, and what was counted; all of it plain JSON."""
        run = {"name": self.name, "id": self.id, "active": self.is_active}
        return status(run, self.exception(), self._engine)
