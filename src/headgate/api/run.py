"""The handle of a flow that runs. A Structured Streaming query finds the data, and the engine runs the batches."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate import given
from headgate.api.announcer import Announcer
from headgate.api.spark_progress import as_progress
from headgate.api.streaming import begin, identify
from headgate.errors import Error, FlowError, ParseError
from headgate.lang import parse_length
from headgate.observe.explain import kept
from headgate.observe.words import Text
from headgate.plan.logical.catalog import did_you_mean
from headgate.plan.logical.nodes import WINDOW_START
from headgate.protocol.names import LOG
from headgate.shed.subset.fill import check_fill, group_columns
from headgate.shed.subset.filling import filled
from headgate.spark.failures import plain_errors, told
from headgate.spark.folder import Folder
from headgate.spark.splitting import split_as_decided
from headgate.store import lock as claims

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from headgate.api.flow import Flow
    from headgate.batch.engine import Engine
    from headgate.connect.inputs import Inputs
    from headgate.lang import Query
    from headgate.observe.delivery import Listening
    from headgate.observe.events import BatchReport
    from headgate.observe.status import Status
    from headgate.plan import Strategy
    from headgate.shed.policy import Policy

#: The trigger of a run that takes what there is now, and ends.
AVAILABLE_NOW = "available now"
#: The longest trigger, in microseconds: a hundred years. Spark cannot count much further.
_LONGEST_PAUSE = 36_525 * 86_400_000_000
#: The shortest and the longest time that Spark can wait for, in seconds. It counts in milliseconds.
_A_MOMENT, _AGES = 0.001, 1e12
#: The outputs there are, and whether each is of a query or of a stream.
_OUTPUTS = {"answers": "query", "late": "query", "shed": "query", "bad": "stream"}
#: How often to look whether the folders of streams are still there, and whether the query still runs, in seconds.
_LOOK = 2.0
#: How long the end of a run waits for its last batch and for listeners, in seconds.
_LAST_WORDS = 10.0


def check_output(name: object, output: object, queries: Collection[str], streams: Collection[str]) -> None:
    """Raises an error if there is no such output, or no query or stream of this name that has it."""
    if not isinstance(output, str) or output not in _OUTPUTS:
        raise FlowError(f"there is no output {given.named(output)}: {did_you_mean(str(output), _OUTPUTS)}")
    kind = _OUTPUTS[output]
    known = queries if kind == "query" else streams
    if not isinstance(name, str) or name not in known:
        raise FlowError(f"there is no {kind} {given.named(name)} in the flow: {did_you_mean(str(name), known)}")


def as_trigger(what: str, trigger: object) -> str | None:
    """How often a batch runs, as Spark takes it. None: each follows the one before at once.

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
    """Raised inside a micro-batch after the flow was stopped."""

    def __init__(self) -> None:
        # Spark takes an error with these words for an interruption, not for a failure.
        words = "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"
        super().__init__(words)


class Run:
    """A flow that runs, or has run. It answers to the same names as Spark's StreamingQuery."""

    def __init__(self, flow: Flow, engine: Engine, inputs: Inputs, caller: SparkSession) -> None:
        self.name, self._flow = flow.name, flow
        """The name of the flow."""
        self.resumed_after = engine.manifest.batch if engine.manifest.batch >= 0 else None
        """The batch of an earlier run that this one goes on from; None for a new checkpoint."""
        self.id: str = ""
        """The id of the flow's checkpoint: the same in every run on it. `spark.streams` knows the flow by it."""
        self.run_id: str = str(uuid.uuid4())
        """The id of this run: new for each start. It is in every event of the run."""
        self._engine, self._inputs, self._caller = engine, inputs, caller
        self._announcer = Announcer(self.name, self.run_id, flow._listeners)
        engine.tell_to(self._announcer.tell)
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

    # Running

    def started(self, trigger: str | None) -> Run:
        """Starts the flow in the background."""
        self._starting = True
        claims.claim(self._place, self)
        try:
            self._start(trigger)
        except BaseException as error:
            self._failed(error)
            self._over()
            raise
        finally:
            self._starting = False
        if self._query is None:
            self._over()
        return self

    def _start(self, trigger: str | None) -> None:
        self._inputs.check_known(self._engine.manifest, self._engine.checkpoint.path)
        self._engine.know([*self._inputs.direct, *self._inputs.streaming], self._inputs.named)
        streams = bool(self._inputs.direct or self._inputs.streaming)
        if streams:
            self._engine.checkpoint.check_log(self._engine.manifest)
        self.id = identify(self._root / LOG)
        self._announcer.started(self._engine, self.id, self.resumed_after)
        self._engine.finish_tick()
        self._run_bounded()
        if streams:
            once = trigger == AVAILABLE_NOW
            self._engine.live = not once
            self._begin({"availableNow": True} if once else {"processingTime": trigger or "0 seconds"})
            work = self._await_end if once else self._tick
            self._ticker = threading.Thread(target=work, daemon=True, name=f"headgate-{self.name}")
            self._ticker.start()

    def finished(self) -> Run:
        """Runs over what is there, and returns when that is done."""
        self.started(AVAILABLE_NOW).await_termination()
        return self

    def _run_bounded(self) -> None:
        """Runs one batch over the bounded streams, which end with it."""
        due = {name: read for name, read in self._inputs.read_bounded().items() if not self._engine.has_ended(name)}
        if due:
            with self._as_decided():
                self._engine.run(due, None, ended=list(due))

    def _as_decided(self) -> AbstractContextManager[None]:
        """Splits the work as an earlier run decided, if it left a decision. Only the first batch can have one."""
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
                    raise _StoppedError from None  # Someone else stopped the query in the middle of the batch.
                self._failed(error)
                raise

    def _leave(self) -> None:
        """Waits until the query is stopped, then ends its micro-batch. Spark would call an earlier end a failure."""
        while self.is_active:
            time.sleep(0.01)
        raise _StoppedError

    def _tick(self) -> None:
        """Runs batches in a lull, for progress that follows the clock, and looks whether folders are gone."""
        assert self._query is not None
        promised = [tracker.progress for tracker in self._engine.running.streams.trackers.values()]
        idle = [progress.idle / 4e6 for progress in promised if progress.idle is not None]
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
        self._tell_end()

    def _await_end(self) -> None:
        while not self._halted.wait(_LOOK) and self.is_active:
            pass
        self._tell_end()

    def _failed(self, error: BaseException) -> None:
        """Keeps the error that made the flow fail. Later ones only follow from it."""
        if self._error is None:
            self._error = told(error, f"flow {self.name} stopped")
            self._announcer.failed(self._engine, self._error)

    def _tell_end(self) -> None:
        """Tells, after the last batch, that the run has ended."""
        with self._lock:
            self._announcer.ended(self._engine, self.exception())

    # Changing queries

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

        It answers from its first whole window on. Queries that run are not disturbed: a change is prepared while
        batches go on, and changes that are asked for meanwhile come together.
        """
        self._check_active()
        with self._asking:
            # A query of this name may be about to be dropped: the new one does not go on from it.
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
        self._inputs.check_passed(self._flow._needed(), self._flow.numbered)

    def _change(self) -> Future[None]:
        """Brings about all changes that were asked for. One that still waits for its turn serves for several."""
        if self._next_change is None:
            self._next_change = self._changer.submit(self._changed)
        return self._next_change

    def _changed(self) -> None:
        """Prepares all changes that were asked for, and puts them in place."""
        with self._asking:
            self._next_change, prepare = None, self._flow._definition()
        engine, inputs = prepare(self._engine)
        with self._lock:
            before, self._engine, self._inputs = self._engine, engine.after(self._engine), inputs
            self._announcer.changed(before, self._engine)
        with self._asking:
            if self._next_change is None:
                self._flow.changed()

    # Watching and stopping

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
        """Whether it still works on its checkpoint. If it was stopped in a batch, this waits for the batch to end."""
        if self._starting or self.is_active:
            return True
        with self._lock:
            return False

    @property
    def last_progress(self) -> StreamingQueryProgress | None:
        """What Spark says of the last micro-batch, as `StreamingQuery.lastProgress`. None before the first."""
        return recent[-1] if (recent := self.recent_progress) else None

    @property
    def recent_progress(self) -> list[StreamingQueryProgress]:
        """What Spark says of the last micro-batches, as `StreamingQuery.recentProgress`.

        A run over bounded streams only is no query in Spark. Then its own reports are given in the same form.
        """
        if self._query is None:
            return [as_progress(event, self.id) for event in self._announcer.picture.last]
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
        """Waits until the flow ends, at most `timeout` seconds, and gives whether it did. Raises what made it fail."""
        if timeout is not None:
            seconds = "a number of seconds, zero or more, or None to wait for as long as it takes"
            timeout = given.number("run.await_termination: timeout", timeout, seconds, lambda t: 0 <= t < math.inf)
        done = not self.is_active
        if self._query is not None and not done:
            # The error that made it fail is better known here, and is raised below.
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
        """Stops after the batch that is running. Raises the error that made the flow fail before, once."""
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
        """Gives the checkpoint back, and lets listeners have their last events."""
        self._halted.set()
        claims.release(self._place, self)
        until = time.monotonic() + _LAST_WORDS
        # Someone else may have stopped the query in a batch, which then still runs.
        if self._lock.acquire(timeout=_LAST_WORDS):
            try:
                self._tell_end()
            finally:
                self._lock.release()
        self._announcer.finish(max(until - time.monotonic(), 0.0))

    @given.checked("run.results")
    def results(self, query: str, output: str = "answers", fill: str | None = None) -> DataFrame:
        """What a query has delivered so far. `output` is one of those of `flow.sink`.

        With fill="linear", here or in the query's `hg.subset`, a gap between two answers has rows too, on a line
        between them. A column `filled` marks these rows.
        """
        check_output(query, output, self._engine.program.queries, self._inputs.sources)
        check_fill(f"results of {query}", fill)
        windows = self._engine.shedding.subsets.by_window.get(query) if output == "answers" else None
        if fill is None and (windows is None or windows.fill is None):
            return self._delivered(query, output)
        if windows is None:
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
                rows = outlet.sink.delivered(self._caller, query if answers else f"{query}-{output}")
                if rows is not None:
                    return rows
            readable = any(outlet.sink.readable for outlet in outlets)
            if not answers and readable:
                return self._engine.frame(queries[query].streams[0] if _OUTPUTS[output] == "query" else query)
            if not (readable or (answers and self._engine.program.keeps(query))):
                ask = f"flow.sink('{query}', hg.sinks.memory(){'' if answers else f', output={output!r}'})"
                what = "answers" if answers else f"{output} tuples"
                raise FlowError(f"the {what} of {query} are not kept; to keep them, {ask}")
            return self._engine.kept(query)

    def batch_seconds(self) -> list[float]:
        """How long each of the last batches took, in seconds, from its trigger to Spark's own commit."""
        if self._query is None:
            return [report.total_seconds for report in self.reports]
        return [p["durationMs"]["triggerExecution"] / 1000 for p in self.recent_progress]

    @given.checked("run.explain")
    def explain(self) -> str:
        """The flow as `Flow.explain` shows it, then what it keeps between batches, and for whom, and what is shed."""
        with self._asking:
            flow, engine = self._flow.explain(), self._engine
        with engine.running.lock:
            return Text("\n\n".join(filter(None, [flow, kept(engine)])))

    @property
    def reports(self) -> list[BatchReport]:
        """What each of the last 100 batches of this run did, the latest at the end."""
        return [event.report for event in self._announcer.picture.last]

    @given.checked("run.status")
    def status(self) -> Status:
        """How the flow is doing: its batches, its progress, its state, and what was counted. A dict of plain JSON."""
        return self._announcer.picture.status(self.name, self.id, self.is_active, self.exception())

    @given.checked("run.listen")
    def listen(self, listener: object) -> Listening:
        """Tells a listener what happens in this run from now on. `stop()` on what it returns ends that.

        A listener is a function of an event, or an object with methods as `hg.Listener` has them. Each has a thread of
        its own: one that is slow, or raises an error, holds nobody up.
        """
        return self._announcer.listen(listener)
