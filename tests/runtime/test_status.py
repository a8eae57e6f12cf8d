"""What `run.status` says: always the same keys, always plain JSON, from before the first batch until after the end."""

from __future__ import annotations

import json
import math
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.test_flow import COUNTS, FILES, arrive, files, flow_over, next_batch, until

import headgate as hg
from headgate.cli.watch import _cells, batch_line
from headgate.observe.plain import plain
from headgate.observe.times import iso
from headgate.shed.learn.costs import Coefficients

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = {
    *("name", "id", "active", "error", "batch", "last_batch", "progress", "closed", "state"),
    *("rows", "bad", "answers", "late", "shed", "dropped", "joins", "shedding"),
}


def checked(run: Any) -> dict[str, Any]:
    """The status of a run, which has to be plain JSON with all of its keys, and to be shown by the command line."""
    status: dict[str, Any] = run.status()
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    assert set(status) == KEYS
    assert len(list(_cells(status, datetime.now(UTC)))) == 1 + len(status["rows"]) + len(status["answers"])
    assert all(batch_line(report, datetime.now(UTC)) for report in run.reports)
    assert str(status).startswith(f"Flow {run.name}, ")
    return status


class TestText:
    @given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
    def test_a_time_is_that_of_python_where_it_has_one(self, at: datetime) -> None:
        at = at.replace(tzinfo=UTC)
        assert iso((at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)) == at.isoformat()

    @given(st.integers(-(2**63), 2**63 - 1))
    def test_the_calendar_repeats_itself_every_400_years(self, microseconds: int) -> None:
        years, later = (
            int(text[: text.index("-", 1)])
            for text in (iso(microseconds), iso(microseconds + 146_097 * 86_400_000_000))
        )
        assert later == years + 400

    def test_years_have_signs_where_they_need_one(self) -> None:
        assert iso(-62_135_596_800_000_001) == "0000-12-31T23:59:59.999999+00:00"
        assert iso(-62_167_219_200_000_001) == "-000001-12-31T23:59:59.999999+00:00"
        assert iso(253_402_300_800_000_000) == "+010000-01-01T00:00:00+00:00"

    def test_whatever_there_is_becomes_plain(self) -> None:
        odd = {
            "numbers": [np.float64(1.5), np.int64(3), np.bool_(True), Decimal("0.5"), Fraction(1, 4), 2**70],
            "none": [math.inf, -math.inf, math.nan, np.nan, Decimal("NaN"), Fraction(10**400), None],
            ("a", 1): Coefficients(0.5, {"x": 1.0}),
            "others": (datetime(2026, 1, 1, tzinfo=UTC), {1}, Path("a")),
        }
        assert json.loads(json.dumps(plain(odd), allow_nan=False)) == {
            "numbers": [1.5, 3, True, 0.5, 0.25, 2**70],
            "none": [None] * 7,
            "('a', 1)": {"fixed": 0.5, "each": {"x": 1.0}},
            "others": ["2026-01-01T00:00:00+00:00", [1], "a"],
        }


def test_before_the_first_batch_while_it_runs_and_afterwards(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    release, entered = threading.Event(), threading.Event()

    def slow(_: DataFrame, __: int) -> None:
        entered.set()
        assert release.wait(60)

    flow = flow_over(spark, tmp_path, {"counts": COUNTS, "tally": COUNTS})
    flow.sink("counts", slow)
    run = flow.start(trigger="50 milliseconds")
    empty = checked(run)
    assert (empty["batch"], empty["last_batch"], empty["active"], empty["error"]) == (-1, None, True, None)
    assert (empty["rows"], empty["bad"]) == ({"Main": 0}, {"Main": 0})
    assert all(empty[what] == {"counts": 0, "tally": 0} for what in ("answers", "late", "shed", "dropped"))
    assert (empty["progress"], empty["closed"]) == ({"Main": None}, {"counts": None, "tally": None})

    arrive(tmp_path / "in", FILES[:1])
    assert entered.wait(60)
    assert checked(run) == empty  # The batch that runs is not committed.
    release.set()
    until(run, lambda: run.status()["last_batch"] is not None)
    then = checked(run)
    assert (then["rows"], then["progress"], then["closed"]) == ({"Main": 3}, {"Main": 7}, {"counts": 5, "tally": 5})
    assert then["id"] == run.id
    run.stop()
    assert checked(run) == {**then, "active": False}


def test_every_way_of_shedding_has_the_same_keys(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", FILES)
    flow = flow_over(spark, tmp_path, {"counts": COUNTS})
    flow.query("some", COUNTS, policy=hg.estimate(rate=0.5))
    flow.query("gaps", COUNTS, policy=hg.subset(gap=2, drop=0.5))
    pairs = (
        "SELECT a.k, a.ts AS l, b.ts AS r FROM Main AS a [RANGE 5, WA ts], Main AS b [RANGE 5, WA ts] WHERE a.k = b.k"
    )
    flow.query("pairs", pairs, policy=hg.subset(drop=0.5))
    run = flow.run_available(overload=hg.overload("1 minute"))
    status = checked(run)
    assert status["joins"].keys() == {"pairs"}
    assert status["shedding"]["target"] == 60
    other = checked(flow_over(spark, tmp_path / "other", {"counts": COUNTS}, files(tmp_path / "in")).run_available())
    assert other["shedding"].keys() == status["shedding"].keys()


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("CAST('+294247-01-10 04:00:54.775807' AS TIMESTAMP)", "+294247-01-10T04:00:54.775807+00:00"),
        ("timestamp_micros(-9223372036854775000)", "-290308-12-21T19:59:05.225000+00:00"),
        ("TIMESTAMP '2026-01-01 00:00:00.5'", "2026-01-01T00:00:00.500000+00:00"),
        ("CAST(0.25 AS DOUBLE)", 0.25),
        ("CAST(7 AS BIGINT)", 7),
    ],
)
def test_how_far_a_stream_has_come(spark: SparkSession, tmp_path: Path, last: str, told: Any) -> None:
    spark.sql(f"SELECT {last} AS ts").write.parquet(str(tmp_path / "in"))
    flow = hg.Flow(spark, "far", tmp_path / "checkpoint")
    flow.stream("Main", hg.sources.files(str(tmp_path / "in")), progress=hg.progress("ts", ordered=True))
    flow.query("all_of_them", "SELECT ts FROM Main")
    status = checked(flow.run_available())
    assert status["progress"] == {"Main": told}
    assert status["closed"] == {}


def test_bounded_streams_and_a_stream_without_progress(spark: SparkSession, tmp_path: Path) -> None:
    flow = hg.Flow(spark, "bounded", tmp_path / "checkpoint")
    rows = spark.createDataFrame([(1,), (2,)], "ts INT")
    flow.stream("Main", rows, progress=hg.progress("ts", ordered=True))
    flow.stream("Still", rows)
    flow.query("q", "SELECT count(*) AS n [RANGE 5, SLIDE 5] FROM Main")
    flow.query("of_q", "SELECT max(n) AS m [RANGE 10, SLIDE 10] FROM q")
    flow.query("r", "SELECT ts FROM Still")
    run = flow.run_available()
    status = checked(run)
    assert status["progress"] == {"Main": "end", "Still": "end"}
    assert set(status["closed"].values()) == {"end"}
    assert run.last_progress is not None
    assert (run.last_progress["id"], run.last_progress["runId"]) == (status["id"], run.run_id)
    assert [(p.batchId, p.numInputRows, len(p.sources)) for p in run.recent_progress] == [(0, 4, 2)]


def test_a_flow_that_died_says_why_and_of_which_query(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", FILES[:1])

    def refuse(_: DataFrame, __: int) -> None:
        raise ValueError("no\nroom")

    flow = flow_over(spark, tmp_path, {"counts": COUNTS})
    flow.sink("counts", refuse)
    run = flow.start()
    with pytest.raises(hg.FlowError, match="the sink of query counts failed: ValueError: no room"):
        run.await_termination()
    error = checked(run)["error"]
    assert (error["type"], error["query"], error["stream"]) == ("FlowError", "counts", None)
    assert error["message"] == str(run.exception())
    with pytest.raises(hg.FlowError, match="no room"):
        run.await_termination(0)
    run.stop()  # Which has been told.
    assert run.exception() is not None


def test_what_was_counted_of_a_query_goes_with_it(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", FILES[:1])
    run = flow_over(spark, tmp_path, {"counts": COUNTS, "tally": COUNTS}).start(trigger="50 milliseconds")
    until(run, lambda: run.status()["batch"] == 0)
    before = run.status()["answers"]["counts"]
    run.drop("counts")
    assert checked(run)["answers"].keys() == {"tally"}
    run.query("counts", COUNTS)
    assert before > checked(run)["answers"]["counts"] == 0
    next_batch(run, tmp_path / "in", FILES[1])
    run.stop()
