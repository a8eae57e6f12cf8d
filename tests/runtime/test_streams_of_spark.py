"""A flow is a streaming query of the caller's session: its manager, its listeners and its name know it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from tests.runtime.test_flow import COUNTS, FILES, ROWS, arrive, exact, files, table, told, until
from tests.support import assert_same, collected

import headgate as hg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headgate.api.run import Run


class Heard(StreamingQueryListener):
    """Takes note of what happens to queries, and of the settings that the caller's session has meanwhile."""

    def __init__(self, spark: SparkSession) -> None:
        self.session, self.before = spark, dict(spark.conf.getAll)
        self.started: list[str | None] = []
        self.batches: dict[str, list[int]] = {}
        self.ended: dict[str, str | None] = {}
        self.leaked: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self.started.append(event.name)
        self.leaked |= dict(self.session.conf.getAll.items() - self.before.items())

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self.batches.setdefault(str(event.progress.id), []).append(event.progress.batchId)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.ended[str(event.id)] = event.exception


@pytest.fixture
def heard(spark: SparkSession) -> Iterator[Heard]:
    listener = Heard(spark)
    spark.streams.addListener(listener)
    yield listener
    spark.streams.removeListener(listener)


def made(spark: SparkSession, tmp: Path, name: str) -> hg.Flow:
    flow = hg.Flow(spark, name, tmp / name)
    flow.stream("Main", files(tmp / "in"), progress=hg.progress("ts", within=5))
    flow.query("counts", COUNTS)
    return flow


def known(spark: SparkSession, run: Run) -> StreamingQuery:
    """What `spark.streams` has of a run."""
    query = spark.streams.get(str(run.id))
    assert query is not None
    return query


def names(spark: SparkSession) -> set[str | None]:
    return {query.name for query in spark.streams.active}


def test_flows_and_a_query_of_the_callers_own(spark: SparkSession, tmp_path: Path, heard: Heard) -> None:
    arrive(tmp_path / "in", FILES[:2])
    one, two = (made(spark, tmp_path, name).start(trigger="50 milliseconds") for name in ("one", "two"))
    own = spark.readStream.format("rate").load().writeStream.format("noop").queryName("own").start()
    assert names(spark) == {"one", "two", "own"}
    assert heard.started == ["one", "two", "own"]
    until(one, lambda: one.status()["batch"] == 1 and two.status()["batch"] == 1)
    assert known(spark, one).name == "one"
    with told(hg.FlowError, "a streaming query named own is active in this session"):
        made(spark, tmp_path, "own").start()

    # Nobody has the settings of another one.
    assert heard.leaked == {}
    assert dict(spark.conf.getAll) == heard.before
    assert not list((tmp_path / "one" / "source").rglob("*.crc"))
    session = own._jsq.streamingQuery().sparkSessionForStream()
    assert session.conf().get("fs.file.impl", "none") == "none"

    spark.streams.resetTerminated()
    known(spark, one).stop()
    assert spark.streams.awaitAnyTermination(10)
    assert (one.is_active, one.exception(), one.await_termination(0)) == (False, None, True)
    assert names(spark) == {"two", "own"}
    two.stop()
    own.stop()
    assert names(spark) == set()

    arrive(tmp_path / "in", FILES[2:])
    again = made(spark, tmp_path, "one").run_available()
    assert (again.id, again.resumed_after) == (one.id, 1)
    assert_same(collected(again.results("counts")), exact(COUNTS, 44, Main=table(spark, ROWS)))
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert heard.batches[str(one.id)] == [0, 1, 2, 3]
    assert heard.ended[str(one.id)] is None
    assert again.last_progress is not None
    assert [p["batchId"] for p in again.recent_progress] == [2, 3]


def test_a_query_that_others_stop_in_the_middle_of_a_batch(spark: SparkSession, tmp_path: Path, heard: Heard) -> None:
    arrive(tmp_path / "in", FILES)
    entered, release = threading.Event(), threading.Event()

    def slow(answers: DataFrame, _: int) -> None:
        entered.set()
        assert release.wait(60)
        answers.count()

    flow = made(spark, tmp_path, "slow")
    flow.sink("counts", slow)
    run = flow.start()
    assert entered.wait(60)
    stopping = threading.Thread(target=lambda: known(spark, run).stop())
    stopping.start()
    until_stopped(run)
    release.set()
    stopping.join()
    assert (run.exception(), run.status()["error"], run.status()["batch"]) == (None, None, -1)
    assert run.await_termination()
    run.stop()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert heard.ended == {str(run.id): None}
    again = made(spark, tmp_path, "slow").run_available()
    assert_same(collected(again.results("counts")), exact(COUNTS, 44, Main=table(spark, ROWS)))


def until_stopped(run: Run) -> None:
    waited = threading.Event()
    while run.is_active:
        assert not waited.wait(0.01)


def test_the_settings_of_a_flow_are_those_it_was_made_with(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", FILES[:1])
    flow = made(spark, tmp_path, "settled")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.conf.set("spark.headgate.test", "1")
    try:
        run = flow.start(trigger="50 milliseconds")
        session = run._query._jsq.streamingQuery().sparkSessionForStream()  # type: ignore[union-attr]
        assert session.conf().get("spark.sql.session.timeZone") == "UTC"
        assert session.conf().get("spark.headgate.test", "none") == "none"
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        run.stop()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.unset("spark.headgate.test")
