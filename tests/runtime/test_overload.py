"""Overload in a flow: batches that would take too long are sampled, windows know it, and exact ones come back."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame

import headgate as hg
from headgate.shed.learn.costs import Coefficients
from headgate.shed.live.shedding import Shedding
from headgate.shed.live.upkeep import Upkeep
from headgate.shed.live.workload import READ, REDUCED, SAMPLED, VALUES, WEIGHED, BatchLoad, Taken
from headgate.testing import Driver, drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 200, SLIDE 100, WA ts] FROM S GROUP BY k"
LEAST = "SELECT count(*) AS n [RANGE 100, SLIDE 100, WA ts] FROM S"
TUPLES = 4_000
COLUMNS = ("{n} * 100 + id % 100 AS ts", "CAST(id % 5 AS INT) AS k", "CAST(pmod(xxhash64(id, {n}), 50) AS INT) AS v")
COSTS = Coefficients(0.2, {READ: 1e-5, SAMPLED: 1.4e-4, REDUCED: 1e-4, VALUES: 1e-5, WEIGHED: 1.5e-5})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches take as long as a machine would of which everything is known."""
    observe, to_try, tried = Shedding.observe, Shedding.to_try, Shedding.tried

    def seconds(shedding: Shedding, load: BatchLoad, rates: dict[str, float]) -> float:
        return COSTS.seconds(shedding.learned.workload.amounts(load, Taken(rates), shedding.learned.statistics))

    def observed(
        self: Shedding, decided: Any, amounts: Any, figures: Any, outlooks: Any, manifests: Any, answers: int, *_: Any
    ) -> None:
        load = BatchLoad({"S": figures.of("S").rows})
        taken = seconds(self, load, decided.rates)
        observe(self, decided, amounts, figures, outlooks, manifests, answers, taken, None)

    monkeypatch.setattr(Shedding, "observe", observed)
    monkeypatch.setattr(Shedding, "to_try", lambda self, batch, _: to_try(self, batch, 0.0))
    monkeypatch.setattr(
        Shedding, "tried", lambda self, rates, _: tried(self, rates, seconds(self, self.learned.load, rates))
    )


def flow(spark: SparkSession, folder: Path) -> hg.Flow:
    made = hg.Flow(spark, "test", str(folder))
    made.stream("S", batch(spark, 0).where("false"), progress=hg.progress("ts", ordered=True))
    made.query("q", SQL, policy=hg.estimate())
    made.query("least", LEAST, policy=hg.estimate(priority=-1))
    return made


def batch(spark: SparkSession, number: int) -> DataFrame:
    return spark.range(TUPLES).selectExpr(*(c.format(n=number) for c in COLUMNS))


def times(number: int) -> int:
    """How much more there is in a batch than usual. That it varies tells what tuples cost, and what batches do."""
    return 8 if 9 <= number < 13 else 1 + number % 2


def stream(spark: SparkSession, numbers: range) -> DataFrame:
    return reduce(DataFrame.union, (batch(spark, n) for n in numbers for _ in range(times(n))))


def run(spark: SparkSession, driver: Driver, last: int) -> Driver:
    """Runs all batches up to the last one."""
    for number in range(driver.batches, last + 1):
        rows, amount = stream(spark, range(number, number + 1)), 8.0 * TUPLES * times(number)
        driver.batch(S=rows, amounts={"S": amount})
    return driver


def by_window(rows: DataFrame) -> dict[Any, dict[str, Any]]:
    found = [row.asDict() for row in rows.collect()]
    return {(row.get("k"), row["window_start"]): row for row in found}


@pytest.mark.usefixtures("machine")
def test_a_step_is_shed_and_answers_are_exact_before_and_after_it(spark: SparkSession, tmp_path: Path) -> None:
    promise = hg.overload(5.0)
    driver = run(spark, drive(flow(spark, tmp_path), overload=promise), 8)
    assert not driver.shedding.events
    run(spark, driver, 9)
    assert driver.status()["shedding"]["active"]
    # What was learned is kept, and so is that it sheds.
    driver = run(spark, driver.restarted(flow(spark, tmp_path)), 12)
    assert driver.decided is not None
    told = driver.status()["shedding"]
    assert 0 < told["rates"]["q"] < 1
    assert told["rates"]["least"] == 0
    assert driver.decided.predicted <= 5.0
    assert told["selectivity"]["q"] == pytest.approx(1, rel=0.1)
    assert told["values"]["q.s"]["mean"] == pytest.approx(24.5, rel=0.1)
    assert "predictions are off by" in told["costs"]
    assert "q at 0." in driver.explain()
    assert "least at 0: gets nothing" in driver.explain()
    run(spark, driver, 19)
    assert [event["shed"] for event in driver.shedding.events] == [True, False]
    driver.finish()

    everything = stream(spark, range(20))
    exact, given = by_window(hg.evaluate(SQL, S=everything)), by_window(driver.results("q"))
    assert given.keys() == exact.keys()
    shed = {key for key, r in given.items() if r["sampling_rate"] < 1}
    assert {start for _, start in shed} >= set(range(800, 1300, 100))
    held = [given[key]["n_low"] <= exact[key]["n"] <= given[key]["n_high"] for key in shed]
    assert sum(held) >= 0.9 * len(held)
    for key, r in given.items():
        if key in shed:
            assert r["n_low"] < r["n_high"]
        else:
            assert (r["n"], r["s"], r["n_low"], r["s_high"]) == (exact[key]["n"], exact[key]["s"], r["n"], r["s"])
    assert max(start for _, start in shed) < 1800
    # There was no time for any sample of it: a window without all of its tuples would be wrong.
    exact, given = by_window(hg.evaluate(LEAST, S=everything)), by_window(driver.results("least"))
    assert exact.keys() - given.keys() >= {(None, start) for start in range(900, 1300, 100)}
    assert all(r["n"] == exact[key]["n"] for key, r in given.items() if r["sampling_rate"] == 1)
    assert all(r["n_low"] <= exact[key]["n"] <= r["n_high"] for key, r in given.items())
    assert driver.counted("dropped") == {"least": len(exact.keys() - given.keys())}
    assert driver.counted("shed")["least"] >= 4 * 8 * TUPLES
    assert 0 < driver.counted("shed")["q"] < driver.counted("shed")["least"]


@pytest.mark.usefixtures("machine")
def test_a_query_of_fine_groups_reads_apart_from_those_that_share_a_sample(spark: SparkSession, tmp_path: Path) -> None:
    made = hg.Flow(spark, "test", str(tmp_path))
    made.stream("S", batch(spark, 0).where("false"), progress=hg.progress("ts", ordered=True))
    keys = {"coarse": "k", "even": "k % 2", "halves": "v DIV 25", "fine": "ts, k"}
    for name, by in keys.items():
        sql = f"SELECT {by}, count(*) AS n [RANGE 200, SLIDE 100, WA ts] FROM S GROUP BY {by}"
        made.query(name, sql, policy=hg.estimate())
    driver = run(spark, drive(made, overload=hg.overload(5.0)), 12)
    assert driver.decided is not None
    rates = driver.decided.rates
    shared = [line for line in driver.explain().splitlines() if "in a sample that is shared" in line]
    assert len(shared) == 2  # The coarse groups are made from the fine ones.
    # All of them alike would have had more than the three need, and far less than the fine one gets.
    assert max(rates[name] for name in keys if name != "fine") < driver.status()["shedding"]["alike"] < rates["fine"]


@pytest.mark.usefixtures("machine")
def test_batches_in_which_windows_close_have_the_time_that_others_spare(spark: SparkSession, tmp_path: Path) -> None:
    shedding = run(spark, drive(flow(spark, tmp_path), overload=hg.overload(5.0)), 3).shedding
    closes, does_not = (BatchLoad({"S": 1e4}, upkeep=Upkeep(closings=closings)) for closings in (1.0, 0.0))
    assert 0 < shedding.learned.rhythm.usual.closings < 1
    assert shedding.controller is not None
    most = shedding.controller.capacity
    evened = shedding.decider.evened
    assert evened(does_not, 0.6 * most) < 0.6 * most < evened(closes, 0.6 * most) <= most
    assert evened(closes, most) == most


@pytest.mark.usefixtures("machine")
def test_a_batch_that_is_run_again_draws_the_same_sample(spark: SparkSession, tmp_path: Path) -> None:
    driver = run(spark, drive(flow(spark, tmp_path), overload=hg.overload(1.5)), 9)
    with driver.killed_at("decided") as hit:
        run(spark, driver, 10)
    assert hit
    again = drive(flow(spark, tmp_path))
    pending = again.pending
    assert pending is not None
    assert 0 < pending.rates["q"] < 1
    run(spark, again, 10)
    assert again.decided == pending


@pytest.mark.usefixtures("machine")
def test_what_may_not_be_shed_is_said_to_be_too_much(spark: SparkSession, tmp_path: Path) -> None:
    made = flow(spark, tmp_path)
    made.query("exact", SQL)
    driver = run(spark, drive(made, overload=hg.overload(1.5)), 9)
    assert driver.shedding.decider.plan is not None
    assert "what may not be shed takes" in driver.shedding.decider.plan.why
    closed = hg.evaluate(SQL, S=stream(spark, range(10))).where("window_end <= 900")
    assert by_window(driver.results("exact")) == by_window(closed)


@pytest.mark.usefixtures("machine")
def test_queries_whose_gaps_cannot_be_kept_are_suspended_and_resumed(spark: SparkSession, tmp_path: Path) -> None:
    made = hg.Flow(spark, "test", str(tmp_path))
    made.stream("S", batch(spark, 0).where("false"), progress=hg.progress("ts", ordered=True))
    tumbling = SQL.replace("RANGE 200", "RANGE 100")
    made.query("q", tumbling, policy=hg.subset(gap=1))
    made.query("least", LEAST, policy=hg.subset(gap=2, weight=9))
    driver = run(spark, drive(made, overload=hg.overload(1.5)), 12)
    assert driver.decided is not None
    assert "its gap of 1 cannot be kept" in driver.decided.suspended["q"]
    assert "q is suspended" in driver.explain()
    run(spark, driver, 19)
    assert driver.decided is not None
    assert not driver.decided.suspended
    driver.finish()
    everything = stream(spark, range(20))
    for name, sql in {"q": tumbling, "least": LEAST}.items():
        exact, given = by_window(hg.evaluate(sql, S=everything)), by_window(driver.results(name))
        assert given.items() <= exact.items()
        assert {start for _, start in given} >= {0, 700, 1900}
    assert not {start for _, start in by_window(driver.results("q"))} & {1100, 1200}


def test_bad_promises(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(hg.FlowError, match="give hg"):
        flow(spark, tmp_path).run_available(overload="5 seconds")  # type: ignore[arg-type]
