"""Aggregates from outside: one by Spark SQL and one in Python, written with public names only."""

import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg

LOGS = hg.Partial("logs", "sum(ln({x})){f}", hg.Merge.SUM)
GEOMEAN = hg.Aggregate(partials=(LOGS, hg.Partial("n", "count({x}){f}", hg.Merge.SUM)), final="exp({logs} / {n})")
ROWS: list[dict[str, Any]] = [{"ts": i * 7 % 200, "k": "ab"[i % 2], "v": 1.0 + i % 5} for i in range(200)]
SQL = "SELECT k, geomean(v) AS g, spread(v) AS s, sum(v) AS t [RANGE 40, SLIDE 20, WA ts] FROM S GROUP BY k"


class Spread:
    """The distance from the smallest value to the largest."""

    def init(self) -> tuple[float, float]:
        return math.inf, -math.inf

    def incr(self, state: tuple[float, float], x: float) -> tuple[float, float]:
        return min(state[0], x), max(state[1], x)

    def merge(self, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
        return min(left[0], right[0]), max(left[1], right[1])

    def final(self, state: tuple[float, float]) -> float:
        return state[1] - state[0]


hg.register_aggregate("geomean", GEOMEAN, returns="double")
hg.register_aggregate("spread", Spread(), returns="double")


def check(rows: Any) -> None:
    assert len(rows) == 22
    for row in rows:
        held = [r["v"] for r in ROWS if r["k"] == row["k"] and row["window_start"] <= r["ts"] < row["window_end"]]
        assert row["g"] == pytest.approx(math.prod(held) ** (1 / len(held)))
        assert (row["s"], row["t"]) == (max(held) - min(held), sum(held))


@pytest.mark.parametrize("strategy", ["eager", "paned"])
def test_evaluated_and_in_a_flow(spark: SparkSession, tmp_path: Path, strategy: Any) -> None:
    df = spark.createDataFrame(ROWS)
    check(hg.evaluate(SQL, strategy=strategy, S=df).collect())
    flow = hg.Flow(spark, "means", str(tmp_path))
    flow.stream("S", df, progress=hg.progress("ts", within=200))
    flow.query("q", SQL, strategy=strategy)
    flow.query("fewer", "SELECT geomean(v) AS g [RANGE 40, SLIDE 20, WA ts] FROM S WHERE v > 1")
    check(flow.run_available().results("q").collect())
    with pytest.raises(hg.FlowError, match=r"no rule by which geomean\(v\) follows from a sample"):
        flow.query("sampled", SQL, policy=hg.estimate())
