"""Quantiles of weighted values, as Spark works them out from a row for each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from headgate.aggregates import builtin
from headgate.plan.logical.nodes import Call
from headgate.shed.estimate.quantiles import Quantile, Quantiles
from headgate.sql.text import THESE, queried

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

#: Of even windows everything was kept; of odd ones, one tuple in four at times.
TOP = "CASE WHEN _hg_wid % 2 = 0 THEN 1D ELSE 4D END"


def answers(spark: SparkSession, rows: list[tuple[int, float, float, float]], parameter: exp.Expr) -> list[Row]:
    function = builtin("quantile")
    assert function is not None
    call = Call("q", function, (exp.column("x"),), parameter=parameter)
    quantiles = Quantiles((Quantile.of(call, 0.99),), {"w1": "w1", "w2": "w2"})
    df = spark.createDataFrame(rows, "_hg_wid BIGINT, x DOUBLE, w1 DOUBLE, w2 DOUBLE")
    return queried(df, quantiles.answers(THESE, {}, "x", TOP)).sort("_hg_wid").collect()


def test_windows_that_were_kept_in_full_have_their_own_quantiles(spark: SparkSession) -> None:
    fractions = exp.array("0", "0.3", "0.5", "1")
    rows = [(w, float(x * x), 1.0 + x % 3, 0.0) for w in (0, 2) for x in range(w, 9)]
    spark.createDataFrame(rows, "w INT, x DOUBLE, n DOUBLE, _ DOUBLE").createOrReplaceTempView("kept")
    wanted = spark.sql(f"SELECT percentile(x, {fractions.sql()}, CAST(n AS INT)) AS q FROM kept GROUP BY w ORDER BY w")
    assert [(r.q, r.q_low, r.q_high) for r in answers(spark, rows, fractions)] == [(r.q,) * 3 for r in wanted.collect()]


def test_a_value_takes_up_as_much_room_as_it_weighs(spark: SparkSession) -> None:
    rows = [(1, float(x), 4.0, 12.0) for x in range(100)] + [(3, 7.0, 4.0, 12.0), (3, 9.0, 4.0, 12.0)]
    many, two = answers(spark, rows, exp.Literal.number(0.5))
    assert many.q == 49.5
    assert 33 < many.q_low < 40
    assert many.q_low + many.q_high == pytest.approx(99, abs=1)
    assert (two.q, two.q_low, two.q_high) == (8.0, None, None)
