"""The test kit: what a driver gives back, a clock that only the test moves, and crashes that are like real ones."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

import headgate as hg
from headgate.testing import CRASH_POINTS, Batches, Collector, ManualClock, at, drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.progress import StreamProgress
    from headgate.shed.policy import Policy

pytestmark = pytest.mark.usefixtures("interpreted")
SUMS = "SELECT sum(v) AS s [RANGE 10, SLIDE 10, WA ts] FROM S"
ORDERED = hg.progress("ts", ordered=True)


def flow(spark: SparkSession, folder: Path, rule: StreamProgress = ORDERED, policy: Policy | None = None) -> hg.Flow:
    made = hg.Flow(spark, "kit", folder)
    made.stream("S", Batches("ts INT, v INT"), progress=rule)
    made.query("sums", SUMS, policy=policy)
    return made


def sums(rows: list[dict[str, object]]) -> list[object]:
    return [row["s"] for row in rows]


class TestDriver:
    def test_rows_come_as_tuples_dicts_and_frames_in_pieces(self, spark: SparkSession, tmp_path: Path) -> None:
        driver = drive(flow(spark, tmp_path))
        driver.batch(S=[(1, 1), (2, 2), (3, 3)], pieces=2)
        driver.batch({"S": [{"v": 4, "ts": 4}, {"ts": 5}]})
        driver.batch(S=spark.createDataFrame([(6, 6)], "ts INT, v INT"))
        driver.batch(S=[spark.createDataFrame([(at_, at_)], "ts INT, v INT") for at_ in (7, 8)])
        driver.batch(S=[])
        assert (driver.batches, driver.ended) == (5, [])
        driver.finish()
        assert (driver.batches, driver.ended) == (5, ["S"])
        assert sums(driver.answers("sums")) == [31]
        assert [report.rows for report in driver.reports] == [3, 2, 1, 2, 0, 0]
        assert driver.counted("rows") == {"S": 8}

    def test_late_and_bad_tuples_are_kept_on_demand(self, spark: SparkSession, tmp_path: Path) -> None:
        driver = drive(flow(spark, tmp_path), collect=["late", "bad"])
        driver.batch(S=[(1, 1), (20, 2)])
        assert (driver.late("sums"), driver.bad("S")) == ([], [])
        driver.batch(S=[(2, 3), (None, 4)])
        assert driver.late("sums") == [{"ts": 2, "v": 3}]
        assert driver.bad("S") == [{"ts": None, "v": 4}]

    def test_shed_tuples_are_kept_on_demand(self, spark: SparkSession, tmp_path: Path) -> None:
        driver = drive(flow(spark, tmp_path, policy=hg.subset(drop=0.9, gap=9)), collect=["shed"])
        driver.batch(S=[(ts, 1) for ts in range(0, 100, 10)])
        driver.finish()
        assert len(driver.shed("sums")) == driver.counted("shed")["sums"] == 10 - len(driver.answers("sums")) > 0

    def test_what_is_not_there_is_told(self, spark: SparkSession, tmp_path: Path) -> None:
        driver = drive(flow(spark, tmp_path))
        with pytest.raises(hg.FlowError, match="there is no stream T in the flow"):
            driver.batch(T=[(1, 1)])
        with pytest.raises(hg.FlowError, match="stream S has no column w: there are ts, v"):
            driver.batch(S=[{"ts": 1, "w": 1}])
        with pytest.raises(hg.FlowError, match="the late tuples of sums are not kept"):
            driver.late("sums")
        assert driver.batches == 0


class TestClock:
    def test_only_the_test_moves_it(self, spark: SparkSession, tmp_path: Path) -> None:
        clock, noon = ManualClock(), datetime(2026, 1, 1, 12)
        made = hg.Flow(spark, "kit", tmp_path)
        rule = hg.progress("ts", ordered=True, idle="1 minute")
        made.stream("S", Batches("ts TIMESTAMP, v INT"), progress=rule)
        made.query("sums", "SELECT sum(v) AS s [RANGE 10 seconds, SLIDE 10 seconds, WA ts] FROM S")
        driver = drive(made, clock)
        driver.batch(S=[(noon, 1), (noon + timedelta(seconds=5), 2)])
        clock.advance(64)
        assert not driver.tick()
        assert driver.answers("sums") == []
        # After a minute of silence at the fifth second, five more bring the window to its end.
        clock.advance(1)
        assert driver.tick()
        assert sums(driver.answers("sums")) == [3]
        assert not driver.tick()

    def test_batches_take_as_long_as_it_says(self, spark: SparkSession, tmp_path: Path) -> None:
        clock = ManualClock()
        driver = drive(flow(spark, tmp_path), clock)
        with at("ingested", lambda: clock.advance(3)):
            driver.batch(S=[(1, 1)])
        assert driver.reports[-1].seconds["ingest"] == sum(driver.reports[-1].seconds.values()) == 3

    def test_it_begins_where_it_is_told_to(self) -> None:
        summer = timezone(timedelta(hours=2))
        assert ManualClock(datetime(2026, 7, 1, 12, tzinfo=summer)).time.isoformat() == "2026-07-01T10:00:00+00:00"
        with pytest.raises(hg.FlowError, match="ManualClock: start='noon': give a time"):
            ManualClock("noon")
        with pytest.raises(hg.FlowError, match=r"clock\.advance: seconds=-1: give a number of seconds"):
            ManualClock().advance(-1)


class TestCrashes:
    @pytest.mark.parametrize("point", [p for p in CRASH_POINTS if p not in ("kept", "compacted")])
    def test_a_batch_that_is_cut_off_happens_once(self, spark: SparkSession, tmp_path: Path, point: str) -> None:
        driver = drive(flow(spark, tmp_path))
        with driver.killed_at(point) as hit:
            driver.batch(S=[(1, 1), (15, 2)])
        assert hit == [point]
        with pytest.raises(hg.FlowError, match=f"was killed at {point}: go on with"):
            driver.batch(S=[(1, 1)])
        assert (driver.restarted().pending is None) == (point == "committed")
        driver = driver.restarted()
        assert driver.batches == (point == "committed")
        if not driver.batches:
            driver.batch(S=[(1, 1), (15, 2)])
        assert sums(driver.answers("sums")) == [1]

    def test_a_point_that_is_not_reached_hits_nothing(self, spark: SparkSession, tmp_path: Path) -> None:
        driver = drive(flow(spark, tmp_path))
        with driver.killed_at("ingested:2") as hit:
            driver.batch(S=[(1, 1)])
        assert not hit
        driver.batch(S=[(2, 1)])
        assert driver.batches == 2

    @pytest.mark.parametrize("point", ["ingest", "ingested:", "ingested:0", "ingested:x"])
    def test_a_point_that_does_not_exist_is_told(self, point: str) -> None:
        with pytest.raises(hg.FlowError, match=f"at: point='{point}': give one of decided, "), at(point, lambda: None):
            pass


def test_a_source_and_a_sink_do_without_a_driver(spark: SparkSession, tmp_path: Path) -> None:
    source, sink = Batches("ts INT, v INT"), Collector()
    made = hg.Flow(spark, "kit", tmp_path)
    made.stream("S", source, progress=ORDERED)
    made.query("sums", SUMS)
    made.sink("sums", sink)
    source.add([(1, 1)], [{"ts": 12, "v": 2}], [(25, 3)])
    run = made.run_available()
    assert [report.rows for report in run.reports] == [1, 1, 1]
    assert {batch: sums(rows) for (_, batch), rows in sink.batches.items()} == {1: [1], 2: [2]}
    assert sums(sink.rows) == [row.s for row in run.results("sums").collect()] == [1, 2]
