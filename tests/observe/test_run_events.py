"""What a run tells of its changes, its failures and its end, and what its handle has."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.test_flow import COUNTS, FILES, arrive, files, flow_over, until

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


class Recorder:
    """Keeps events, and lets a test wait for one of a kind."""

    def __init__(self) -> None:
        self.heard: list[hg.events.Event] = []
        self._more = threading.Condition()

    def __call__(self, event: hg.events.Event) -> None:
        with self._more:
            self.heard.append(event)
            self._more.notify_all()

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.heard]

    def wait_for(self, kind: type[hg.events.Event]) -> Any:
        """The last event of this kind, once there is one."""

        def found() -> list[hg.events.Event]:
            return [event for event in self.heard if isinstance(event, kind)]

        with self._more:
            assert self._more.wait_for(found, 60)
            return found()[-1]


def refusing(error: str) -> Callable[[DataFrame, int], None]:
    def refuse(_: DataFrame, __: int) -> None:
        raise ValueError(error)

    return refuse


def test_queries_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", FILES[:1])
    heard, later = Recorder(), Recorder()
    flow = flow_over(spark, tmp_path, {"counts": COUNTS})
    flow.listen(heard)
    run = flow.start(trigger="50 milliseconds")
    until(run, lambda: run.status()["batch"] == 0)
    listening = run.listen(later)
    run.query("more", COUNTS)
    run.drop("counts")
    assert heard.wait_for(hg.events.PlanChanged) is not None
    run.stop()
    listening.stop()
    first, second = (event for event in heard.heard if isinstance(event, hg.events.PlanChanged))
    assert (first.added, first.dropped, first.reason) == (("more",), (), "more was added")
    assert (second.added, second.dropped, second.reason) == ((), ("counts",), "counts was dropped")
    assert heard.names[0] == "FlowStarted"
    assert heard.names[-1] == "FlowStopped"
    assert later.heard == heard.heard[-len(later.heard) :]
    assert later.names[0] in ("PlanChanged", "BatchDecided")
    assert repr(run.explain()) == run.explain()
    assert repr(run.status()) == str(run.status())


def test_a_failure_is_told_though_nobody_waits_for_it(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", FILES[:1])
    heard = Recorder()
    flow = flow_over(spark, tmp_path, {"counts": COUNTS})
    flow.sink("counts", refusing("no room"))
    flow.listen(heard)
    run = flow.start()
    stopped = heard.wait_for(hg.events.FlowStopped)
    assert heard.names == ["FlowStarted", "BatchDecided", "SinkFailed", "FlowStopped"]
    failed = heard.heard[2].as_dict()
    assert (failed["query"], failed["stream"], failed["output"]) == ("counts", None, "answers")
    assert failed["batch"] == 0
    assert failed["error"].startswith("the sink of query counts failed: ValueError: no room")
    assert (stopped.batch, stopped.error) == (-1, run.status()["error"])
    with pytest.raises(hg.FlowError, match="no room"):
        run.stop()
    assert heard.names.count("FlowStopped") == 1


def test_a_bounded_flow_that_fails_tells_so(spark: SparkSession, tmp_path: Path) -> None:
    heard = Recorder()
    flow = flow_over(
        spark, tmp_path, {"counts": COUNTS}, spark.createDataFrame([(1, "a", 2)], "ts INT, k STRING, v INT")
    )
    flow.sink("counts", refusing("full"))
    flow.listen(heard)
    with pytest.raises(hg.FlowError, match="full"):
        flow.run_available()
    assert heard.names[-2:] == ["SinkFailed", "FlowStopped"]


def test_a_listener_may_stop_the_run(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", FILES)
    heard, known, running = Recorder(), threading.Event(), list[hg.Run]()

    class Stops(hg.Listener):
        def on_batch(self, event: hg.events.BatchCommitted) -> None:
            assert known.wait(60)
            if event.report.batch == 0:
                running[0].stop()

    flow = flow_over(spark, tmp_path, {"counts": COUNTS})
    flow.listen(Stops())
    flow.listen(heard)
    running.append(flow.start(trigger="1 hour"))
    known.set()
    assert heard.wait_for(hg.events.FlowStopped).error is None
    assert running[0].await_termination(60)


def test_a_run_over_bounded_streams_has_what_others_have(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(ts, "a", 1) for ts in range(20)], "ts INT, k STRING, v INT")
    first, second = (flow_over(spark, tmp_path, {"counts": COUNTS}, rows).run_available() for _ in range(2))
    assert first.id == second.id == str(uuid.UUID(first.id))
    assert first.run_id != second.run_id
    assert (first.name, first.is_active, first.exception()) == ("test", False, None)
    assert first.last_progress is not None
    assert first.last_progress.numInputRows == 20
    assert first.last_progress["runId"] == first.run_id
    assert first.last_progress.sink.numOutputRows == first.results("counts").count()
    assert (second.recent_progress, second.last_progress) == ([], None)
    # The id stays where a stream comes later.
    arrive(tmp_path / "in", FILES[:1])
    flow = flow_over(spark, tmp_path, {"counts": COUNTS}, rows)
    flow.stream("Later", files(tmp_path / "in"), progress=hg.progress("ts", within=5))
    flow.query("later", COUNTS.replace("Main", "Later"))
    third = flow.run_available()
    assert third.id == first.id
    assert third.last_progress is not None
    assert third.last_progress["id"] == third.id


def test_what_is_exported() -> None:
    assert hg.BatchReport is hg.events.BatchReport
    assert {"BatchReport", "Listener", "Run", "events"} <= set(hg.__all__)
