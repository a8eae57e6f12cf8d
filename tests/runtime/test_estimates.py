"""Estimates in a flow: answers from samples, each with limits that hold the exact one."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.test_flow import told
from tests.support import assert_same, collected

import headgate as hg
from headgate.api.run import Run
from headgate.incremental.close import answers
from headgate.shed.live.workload import sharing
from headgate.testing import drive

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headgate.testing import Driver

SQL = (
    "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS a, max(v) AS hi, stddev(v) AS sd, sum(v) / count(*) AS r"
    " [RANGE 400, SLIDE 100, WA ts] FROM S WHERE v % 7 > 0 GROUP BY k"
)
QUANTILES = (
    "SELECT k, median(v) AS m, quantile(v, 0.9) AS q [RANGE 400, SLIDE 100, WA ts] FROM S WHERE v % 7 > 0 GROUP BY k"
)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Tuples of forty keys, some of them rare, with values that are the same over and over."""
    columns = ("id div 60 AS ts", "CAST(floor(40 * pow(rand(7), 2)) AS INT) AS k", "CAST(50 * rand(8) AS INT) AS v")
    return spark.range(60_000, numPartitions=3).selectExpr(*columns).localCheckpoint()


def estimated(spark: SparkSession, folder: Path, rows: DataFrame, **policy: Any) -> Run:
    flow = hg.Flow(spark, "test", str(folder))
    flow.stream("S", rows, progress=hg.progress("ts", ordered=True))
    flow.query("q", SQL, policy=hg.estimate(**policy))
    flow.query("exact", SQL)
    return flow.run_available()


def share_held(cells: Sequence[tuple[Any, Any, Any]]) -> float:
    """The share of answers that lie between their limits, where there are any."""
    held = [(low is None or low <= value) and (high is None or value <= high) for low, value, high in cells]
    return held.count(True) / len(held)


def test_limits_hold_the_exact_answer(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    run = estimated(spark, tmp_path, rows, rate=0.3)
    given = {(r.k, r.window_start): r for r in run.results("q").collect()}
    exact = {(r["k"], r["window_start"]): r for r in collected(run.results("exact"))}
    assert given.keys() <= exact.keys()
    assert len(given) > 500
    assert [c for c in run.results("q").columns if c not in run.results("exact").columns] == [
        f"{call}_{side}" for call in ("n", "s", "a", "hi", "sd") for side in ("low", "high")
    ]
    for call in ("n", "s", "a"):
        cells = [(getattr(r, f"{call}_low"), exact[key][call], getattr(r, f"{call}_high")) for key, r in given.items()]
        assert share_held(cells) >= 0.985, call
    for call in ("n", "s"):
        total, wanted = sum(getattr(r, call) for r in given.values()), sum(r[call] for r in exact.values())
        assert total == pytest.approx(wanted, rel=0.05)
    assert all(r.hi <= exact[key]["hi"] and r.hi_low == r.hi and r.hi_high is None for key, r in given.items())
    rates = [r.sampling_rate for r in given.values()]
    assert rates == pytest.approx([0.3] * len(rates))


def test_quantiles_are_those_of_a_sample(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows, progress=hg.progress("ts", ordered=True))
    flow.query("q", QUANTILES, policy=hg.estimate(rate=0.3))
    flow.query("all", QUANTILES, policy=hg.estimate(rate=1.0))
    flow.query("exact", QUANTILES)
    run = flow.run_available()
    given = {(r.k, r.window_start): r for r in run.results("q").collect()}
    exact = {(r["k"], r["window_start"]): r for r in collected(run.results("exact"))}
    assert given.keys() <= exact.keys()
    assert len(given) > 500
    for call in ("m", "q"):
        cells = [(r[f"{call}_low"], exact[key][call], r[f"{call}_high"]) for key, r in given.items()]
        assert share_held(cells) >= 0.985, call
        assert share_held([(r[f"{call}_low"], r[call], r[f"{call}_high"]) for r in given.values()]) == 1
    everything = collected(run.results("all"))
    for row in everything:
        for call in ("m", "q"):
            assert row.pop(f"{call}_low") == row.pop(f"{call}_high") == row[call]
    assert_same(everything, list(exact.values()))


def test_many_estimated_queries_close_in_one_pass(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    """Spark gave up on their names after a hundred rounds, when the steps of each were nested in those of the next."""
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows.where("ts < 100"), progress=hg.progress("ts", ordered=True))
    for i in range(8):
        sql = f"SELECT k, sum(v) AS s [RANGE 100, SLIDE 100, WA ts] FROM S WHERE v > {i} GROUP BY k"
        flow.query(f"q{i}", sql, policy=hg.estimate(rate=0.5))
    run = flow.run_available()
    totals = [run.results(f"q{i}").selectExpr("sum(s) AS s").collect()[0].s for i in range(8)]
    assert totals == pytest.approx([6000 * 24.5] * 8, rel=0.05)


@pytest.mark.usefixtures("interpreted")
def test_closings_are_one_text_but_for_numbers(
    spark: SparkSession, tmp_path: Path, rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark compiles what differs by more, and the JVM has to get warm with it again, which takes seconds."""
    plans: list[str] = []

    def noted(*given: Any) -> DataFrame | None:
        closed = answers(*given)
        if closed is not None:
            plans.append(re.sub(r"\d+", "", closed._jdf.queryExecution().optimizedPlan().toString()))
        return closed

    for module in [
        m for n, m in sys.modules.items() if n.startswith("headgate.") and vars(m).get("answers") is answers
    ]:
        monkeypatch.setattr(module, "answers", noted)
    folder = str(tmp_path / "tuples")
    for i in range(5):
        rows.where(f"ts DIV 60 = {i}").coalesce(1).write.mode("append").parquet(folder)
    flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
    flow.stream("S", hg.sources.files(folder, max_files_per_batch=1), progress=hg.progress("ts", within=60))
    sql = SQL.replace("400, SLIDE 100", "60, SLIDE 30").replace("stddev(v) AS sd, ", "")
    flow.query("q", sql, policy=hg.estimate(rate=0.3))
    flow.query("r", sql.replace("GROUP BY k", "GROUP BY v").replace("k,", "v,"), policy=hg.estimate(rate=0.2))
    flow.run_available()
    assert len(plans) >= 3
    assert len(set(plans[1:])) == 1


def test_nothing_is_estimated_where_nothing_is_shed(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    run = estimated(spark, tmp_path, rows)
    given = [row.asDict() for row in run.results("q").collect()]
    for row in given:
        for call in ("n", "s", "a", "hi", "sd"):
            assert row.pop(f"{call}_low") == row.pop(f"{call}_high") == pytest.approx(row[call], nan_ok=True)
        assert row.pop("sampling_rate") == 1.0
    assert_same(given, collected(run.results("exact")))


def test_a_sample_is_the_same_each_time(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    first, second = (estimated(spark, tmp_path / name, rows, rate=0.1).results("q") for name in "ab")
    assert sorted(first.collect()) == sorted(second.collect())


def test_a_sample_is_the_same_whoever_shares_it(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    """Tables of low rates share one sample in memory, and one of a high rate reads for itself: nobody can tell."""
    queries = {"seldom": ("k", 0.03), "few": ("k % 8", 0.05), "fine": ("v", 0.8)}
    assert sharing({0: 0.03, 1: 0.05, 2: 0.8}) == {0, 1}

    def answered(folder: Path, names: Sequence[str]) -> Run:
        flow = hg.Flow(spark, "test", str(folder))
        flow.stream("S", rows, progress=hg.progress("ts", ordered=True))
        for name in names:
            key, rate = queries[name]
            sql = f"SELECT {key} AS g, count(*) AS n, sum(v) AS s [RANGE 400, SLIDE 100, WA ts] FROM S GROUP BY {key}"
            flow.query(name, sql, policy=hg.estimate(rate=rate))
        return flow.run_available()

    together = answered(tmp_path / "together", list(queries))
    for name in queries:
        alone = answered(tmp_path / name, [name])
        given, wanted = ([r.asDict() for r in run.results(name).collect()] for run in (together, alone))
        assert_same(given, wanted)
        assert together.status()["shed"][name] == alone.status()["shed"][name] > 0


def test_tuples_are_sampled(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows, progress=hg.progress("ts", ordered=True))
    flow.query("some", "SELECT ts, k, v FROM S WHERE k < 20", policy=hg.estimate(rate=0.25))
    given, every = flow.run_available().results("some"), rows.where("k < 20")
    assert {r.sampling_rate for r in given.select("sampling_rate").distinct().collect()} == {0.25}
    assert given.count() == pytest.approx(0.25 * every.count(), rel=0.05)
    assert given.drop("sampling_rate").exceptAll(every.select("ts", "k", "v")).isEmpty()


def test_tuples_that_are_not_taken_are_counted(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows, progress=hg.progress("ts", ordered=True))
    count = "SELECT k, count(*) AS n [RANGE 100, SLIDE 100, WA ts] FROM S GROUP BY k"
    flow.query("half", count, policy=hg.estimate(rate=0.5))
    flow.query("apart", count.replace("k,", "v,").replace("BY k", "BY v"), policy=hg.estimate(rate=0.25))
    flow.query("tuples", "SELECT ts FROM S", policy=hg.estimate(rate=0.125))
    flow.query("some", f"{count} HAVING k < 3".replace("S G", "S WHERE v > 40 G"), policy=hg.estimate(rate=0.5))
    for name in ("apart", "tuples"):
        flow.sink(name, hg.sinks.memory(), output="shed")
    run = flow.run_available()
    taken = {
        name: sum(round(r.n * rate) for r in run.results(name).collect())
        for name, rate in {"half": 0.5, "apart": 0.25}.items()
    }
    taken["tuples"] = run.results("tuples").count()
    shed = run.status()["shed"]
    assert shed == {name: 60_000 - n for name, n in taken.items()} | {"some": shed["half"]}
    assert set(run.status()["dropped"].values()) == {0}
    # What is taken and what is shed are the whole together.
    left_out = run.results("apart", output="shed")
    assert left_out.columns == ["ts", "k", "v"]
    counts: Counter[tuple[int, int]] = Counter()
    for row in run.results("apart").collect():
        counts[row.window_start, row.v] += row.n // 4
    counts.update((row.ts // 100 * 100, row.v) for row in left_out.collect())
    assert counts == Counter((row.ts // 100 * 100, row.v) for row in rows.collect())
    passed_on = run.results("tuples").select("ts").union(run.results("tuples", output="shed").select("ts"))
    assert passed_on.exceptAll(rows.select("ts")).isEmpty()
    assert passed_on.count() == 60_000


def test_what_is_shed_is_delivered_once(spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
    """A batch that a crash cut off leaves out the same tuples; a query that goes in mid-window hurts no other."""

    def driver(*names: str) -> Driver:
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("S", rows.where("false"), progress=hg.progress("ts", ordered=True))
        for name in names:
            flow.query(name, "SELECT count(*) AS n [RANGE 9, SLIDE 3, WA ts] FROM S", policy=hg.estimate(rate=0.5))
        flow.sink("q", hg.sinks.parquet(str(tmp_path / "shed")), output="shed")
        return drive(flow)

    batch, crashed = rows.where("ts < 10"), driver("q", "other")
    with crashed.killed_at("delivered") as hit:
        crashed.batch(S=batch)
    assert hit
    shed = spark.read.parquet(str(tmp_path / "shed")).collect()
    again = driver("q", "other")
    again.batch(S=batch)
    assert sorted(spark.read.parquet(str(tmp_path / "shed")).collect()) == sorted(shed)
    assert again.counted("shed") == {"q": len(shed), "other": len(shed)}
    assert 0.4 * 600 < len(shed) < 0.6 * 600
    without = driver("q")
    without.batch(S=rows.where("ts >= 10 AND ts < 20"))
    assert "other" not in without.counted("shed")
    assert len(shed) < without.counted("shed")["q"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT count(DISTINCT v) AS d [RANGE 10, SLIDE 10, WA ts] FROM S", "no rule by which count(DISTINCT v)"),
        ("SELECT mode(v) AS m [RANGE 10, SLIDE 10, WA ts] FROM S", "no rule by which mode(v)"),
        ("SELECT median(DISTINCT v) AS m [RANGE 10, SLIDE 10, WA ts] FROM S", "no rule by which median(DISTINCT v)"),
        ("SELECT DISTINCT ON (k) * [RANGE 10, WA ts] FROM S", "only tuples of streams, or an aggregate"),
    ],
)
def test_what_cannot_be_estimated(spark: SparkSession, tmp_path: Path, rows: DataFrame, sql: str, message: str) -> None:
    flow = hg.Flow(spark, "test", str(tmp_path))
    flow.stream("S", rows)
    with told(hg.FlowError, "query q cannot be estimated", message, "hg.exact()"):
        flow.query("q", sql, policy=hg.estimate())


@pytest.mark.parametrize("wrong", [{"rate": 1.5}, {"rate": 0}, {"confidence": 1}, {"weight": -1}])
def test_policies_that_make_no_sense(wrong: dict[str, Any]) -> None:
    ((word, value),) = wrong.items()
    with told(hg.FlowError, f"hg.estimate: {word}={value}: give a"):
        hg.estimate(**wrong)
