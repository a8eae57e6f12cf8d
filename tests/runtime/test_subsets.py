"""`subset` in a flow: what is read for it, and what cannot be dropped. What is delivered is in test_subset_plans."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.support import assert_same, collected

import headgate as hg
from headgate.errors import FlowError, WindowError
from headgate.testing import Collector, Driver, drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

TUMBLING = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 100, SLIDE 100, WA ts] FROM S GROUP BY k"
ROWS = "SELECT sum(v) AS s [RANGE 500 ROWS, SLIDE 500 ROWS] FROM S"
SLIDING = "SELECT max(v) AS top, count(*) AS n [RANGE 200, SLIDE 100, WA ts] FROM S WHERE v % 7 > 0"
LENGTH = 6_000


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    columns = (
        "id div 4 AS ts",
        "CAST(pmod(xxhash64(id), 9) AS INT) AS k",
        "CAST(pmod(xxhash64(id, 1L), 50) AS INT) AS v",
    )
    return spark.range(4 * LENGTH, numPartitions=2).selectExpr(*columns).localCheckpoint()


def run(spark: SparkSession, folder: Path, rows: DataFrame, queries: dict[str, Any], batches: int = 4) -> Driver:
    """The flow after so many batches, begun anew before each of them."""
    length = LENGTH // batches
    for number in range(batches + 1):
        flow = hg.Flow(spark, "test", str(folder))
        flow.stream("S", rows.where("false"), progress=hg.progress("ts", within=40))
        for name, (sql, policy) in queries.items():
            flow.query(name, sql, policy=policy)
            if name == "q":
                flow.sink(name, hg.sinks.parquet(f"{folder}/shed-{name}"), output="shed")
        driver = drive(flow)
        if number == batches:
            driver.finish()
        else:
            # A little of what is to come lies ahead of time.
            low, high = number * length, (number + 1) * length
            driver.batch(S=rows.where(f"ts >= {low} + 30 * (v % 2) AND ts < {high} + 30 * (v % 2)"))
    return driver


def test_a_whole_stream_narrows_to_what_is_needed(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    driver = run(spark, tmp_path, rows, {"q": (TUMBLING, hg.subset(gap=3, drop=0.7))}, batches=2)
    exact = collected(hg.evaluate(TUMBLING, S=rows.where("ts >= 30 * (v % 2)")))
    given = collected(driver.results("q"))
    assert_subset(given, exact)
    # What is not in an answer is counted as shed, also what was never read.
    assert driver.counted("shed") == {"q": total(exact) - total(given)}
    shed = hg.evaluate(TUMBLING, S=spark.read.parquet(f"{tmp_path}/shed-q"))
    assert_same(collected(shed), [r for r in exact if r not in given])
    missing = {r["window_start"] for r in exact} - {r["window_start"] for r in given}
    assert driver.counted("dropped") == {"q": len(missing)}


def test_groups_are_dropped_whole(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    driver = run(spark, tmp_path, rows, {"q": (TUMBLING, hg.subset(by="group", drop=0.5)), "all": (TUMBLING, None)}, 2)
    given, exact = collected(driver.results("q")), collected(driver.results("all"))
    groups = {r["k"] for r in given}
    assert 1 <= len(groups) <= 8
    assert_same(given, [r for r in exact if r["k"] in groups])
    shed = hg.evaluate(TUMBLING, S=spark.read.parquet(f"{tmp_path}/shed-q"))
    assert_same(collected(shed), [r for r in exact if r["k"] not in groups])
    assert driver.counted("shed") == {"q": total(exact) - total(given)}


def test_windows_of_rows_are_dropped(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows, progress=hg.progress("ts", within=40))
    flow.query("q", ROWS, policy=hg.subset(gap=2, drop=0.6))
    flow.query("all", ROWS)
    done = flow.run_available()
    given, exact = collected(done.results("q")), collected(done.results("all"))
    assert_subset(given, exact)
    assert 0.2 * len(exact) < len(given) < 0.8 * len(exact)
    missing = len(exact) - len(given)
    assert done.status()["shed"] == {"q": 500 * missing, "all": 0}
    assert done.status()["dropped"] == {"q": missing, "all": 0}


def test_the_reader_skips_what_is_dropped(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    """Row groups of dropped windows are not read."""
    folder = tmp_path / "in"
    rows.coalesce(1).sortWithinPartitions("ts").write.option("parquet.block.size", 8192).parquet(str(folder))
    flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
    flow.stream("S", hg.sources.files(str(folder)), progress=hg.progress("ts", ordered=True))
    flow.query("q", TUMBLING, policy=hg.subset(gap=10, drop=0.9))
    store = spark._jsparkSession.sharedState().statusStore()
    before = last_execution(spark)
    done = flow.run_available()
    assert_subset(collected(done.results("q")), collected(hg.evaluate(TUMBLING, S=rows)))
    read = rows_read(store, range(before + 1, last_execution(spark) + 1))
    # All tuples are looked at for how far they got, by this column alone; what is aggregated is a part of them.
    assert max(read) == 4 * LENGTH
    assert 0 < min(read) < 0.45 * 4 * LENGTH


def test_gaps_are_filled_where_answers_are_looked_at(spark: SparkSession, tmp_path: Path) -> None:
    """Key 0 has no tuples from 300 to 500, key 1 none from 600 on: that is no gap."""
    columns = ("id AS ts", "CAST(id % 2 AS INT) AS k", "id * id AS v", "CAST(id % 10 AS STRING) AS word")
    rows = (
        spark.range(1000).selectExpr(*columns).where("CASE k WHEN 0 THEN ts NOT BETWEEN 300 AND 500 ELSE ts < 600 END")
    )
    sql = (
        "SELECT k, upper(k) AS same, count(*) AS n, avg(v) AS a, max(word) AS w [RANGE 20, SLIDE 20] FROM S GROUP BY k"
    )
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows, progress=hg.progress("ts", ordered=True))
    flow.query("q", sql, policy=hg.subset(gap=2, drop=0.5))
    flow.query("lines", sql, policy=hg.subset(gap=2, drop=0.5, fill="linear"))
    flow.query("all", sql)
    delivered = {name: Collector() for name in ("q", "lines")}
    for name, sink in delivered.items():
        flow.sink(name, sink)
    run = drive(flow)
    run.batch(S=rows)
    run.finish()
    assert "filled" not in run.results("q").columns
    for name, found in {"q": run.results("q", fill="linear"), "lines": run.results("lines")}.items():
        ledger, answers = run.shedding.subsets.gone[name], {}
        for row in found.collect():
            assert (row.k, row.window_start) not in answers
            answers[row.k, row.window_start] = row
        given = {key: row for key, row in answers.items() if not row.filled}
        assert sorted(map(tuple, given.values())) == sorted((*row.values(), False) for row in delivered[name].rows)
        dropped = {20 * window for first, last in ledger.runs for window in range(first, last + 1)}
        gaps = 0
        for k in (0, 1):
            starts = sorted(start for key, start in given if key == k)
            for before, after in pairwise(starts):
                gap = range(before + 20, after, 20)
                if not dropped.issuperset(gap):
                    assert (k, before < 500) == (0, True)
                    assert not any((k, start) in answers for start in gap)
                    continue
                gaps += len(gap)
                one, other = given[k, before], given[k, after]
                for start in gap:
                    row, way = answers[k, start], (start - before) / (after - before)
                    assert row.a == pytest.approx(one.a + (other.a - one.a) * way)
                    assert (row.n, row.w, row.same) == (round(one.n + (other.n - one.n) * way), None, str(k))
                    assert (row.window_end, row.sampling_rate) == (start + 20, 0.0)
        assert gaps == len(answers) - len(given) > 10
    for name, fill, error in [("q", "cubic", "fill='cubic': give 'linear'"), ("all", "linear", "drops no windows")]:
        with pytest.raises(FlowError, match=error):
            run.results(name, fill=fill)


@pytest.mark.parametrize(
    ("sql", "policy", "error"),
    [
        ("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM S GROUP BY k", hg.subset(fill="linear"), "groups by k"),
        ("SELECT count(*) AS filled [RANGE 10, WA ts] FROM S", hg.subset(fill="linear"), "a column filled of its own"),
        ("SELECT k, v FROM S", hg.subset(), "only these have windows"),
        ("SELECT count(*) AS n [RANGE ALL, SLIDE 10, WA ts] FROM S", hg.subset(), "no window of"),
        (SLIDING, hg.subset(by="group"), "cannot drop groups"),
    ],
)
def test_what_cannot_be_dropped(
    spark: SparkSession, tmp_path: Path, rows: DataFrame, sql: str, policy: Any, error: str
) -> None:
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows, progress=hg.progress("ts", within=40))
    with pytest.raises((FlowError, WindowError), match=error):
        flow.query("q", sql, policy=policy)


@pytest.mark.parametrize(
    "bad",
    [{"gap": 0}, {"drop": 1.5}, {"by": "user"}, {"weight": 0}, {"fill": "cubic"}, {"fill": "linear", "by": "group"}],
)
def test_bad_policies(bad: dict[str, Any]) -> None:
    with pytest.raises(FlowError, match=f"hg.subset: {next(iter(bad))}="):
        hg.subset(**bad)


def total(answers: list[Any]) -> int:
    return sum(r["n"] for r in answers)


def last_execution(spark: SparkSession) -> int:
    """The number of the last query that Spark has run; of earlier ones it forgets what they did."""
    assert spark._jsc is not None
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    return max(int(executions.apply(i).executionId()) for i in range(executions.size()))


def rows_read(store: Any, executions: range) -> list[int]:
    """The rows that each scan of the stream gave, by Spark's own metrics."""
    found = []
    for execution in executions:
        values, nodes = store.executionMetrics(execution), store.planGraph(execution).allNodes()
        for node in (nodes.apply(n) for n in range(nodes.size())):
            if node.name().startswith("Scan parquet") and "[ts#" in node.desc():
                metrics = (node.metrics().apply(m) for m in range(node.metrics().size()))
                (rows,) = (m.accumulatorId() for m in metrics if m.name() == "number of output rows")
                found.append(int(values.apply(rows).replace(",", "")))
    return found


def assert_subset(given: list[Any], exact: list[Any]) -> None:
    known = [tuple(sorted(r.items())) for r in exact]
    assert given
    assert len({tuple(sorted(r.items())) for r in given}) == len(given)
    assert [r for r in given if tuple(sorted(r.items())) not in known] == []
