"""Answers stay right where floating point is treacherous: large offsets, drifts, infinities, huge sums."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pytest
from pyspark.sql import SparkSession
from tests.support import Row, assert_same, collected, frame

import headgate as hg
from headgate import reference

SCHEMA = {"ts": "timestamp", "d": "double", "w": "bigint"}
CLAUSE = "[RANGE 10 seconds, SLIDE 1 second, WA ts]"


def rows(values: list[float], whole: int = 0) -> list[Row]:
    start = datetime(2026, 1, 1)
    return [{"ts": start + timedelta(seconds=i), "d": v, "w": whole} for i, v in enumerate(values)]


@pytest.mark.parametrize("clause", [CLAUSE, "[RANGE ALL, SLIDE 1 second, WA ts]", "[RANGE 10 rows, SLIDE 3 rows]"])
def test_variance_keeps_its_digits_on_a_large_offset(spark: SparkSession, clause: str) -> None:
    data = rows([1e9 + math.sin(i) for i in range(60)])
    sql = f"SELECT var_pop(d) AS vp, stddev_samp(d) AS ds, avg(d) AS a {clause} FROM S"
    expected = reference.evaluate(sql, {"S": SCHEMA}, S=data)
    assert_same(collected(hg.evaluate(sql, S=frame(spark, data, SCHEMA))), expected, tolerance=1e-6)


def test_values_that_are_all_alike_have_no_spread(spark: SparkSession) -> None:
    # Far from those before them, that is: a sensor that is stuck at an odd place.
    data = rows([math.sin(i) * 100 for i in range(100)] + [1234.5678] * 60)
    sql = "SELECT stddev(d) AS s, var_pop(d) AS v [RANGE 20 seconds, SLIDE 1 second, WA ts] FROM S"
    answers = collected(hg.evaluate(sql, strategy="paned", S=frame(spark, data, SCHEMA)))
    alike = [(row["s"], row["v"]) for row in answers if row["window_start"] >= data[100]["ts"]]
    assert set(alike) == {(0.0, 0.0), (None, 0.0)}


def test_a_huge_value_leaves_no_trace_in_later_windows(spark: SparkSession) -> None:
    # Subtracting 1e18 again would leave nothing of the values around it.
    data = rows([1.25, 1e18, 2.5] + [0.1 * i for i in range(40)])
    sql = f"SELECT sum(d) AS s, avg(d) AS a {CLAUSE} FROM S"
    expected = reference.evaluate(sql, {"S": SCHEMA}, S=data)
    assert_same(collected(hg.evaluate(sql, strategy="paned", S=frame(spark, data, SCHEMA))), expected)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_nan_and_infinity_spoil_only_the_windows_they_are_in(spark: SparkSession, odd: float) -> None:
    data = rows([float(i % 7) for i in range(40)])
    data[15]["d"] = odd
    sql = f"SELECT sum(d) AS s, var_pop(d) AS v, max(d) AS m {CLAUSE} FROM S"
    answers = collected(hg.evaluate(sql, strategy="paned", S=frame(spark, data, SCHEMA)))
    at = data[15]["ts"]
    for row in answers:
        spoilt = row["window_start"] <= at < row["window_end"]
        assert (not math.isfinite(row["s"])) == spoilt
        assert math.isnan(row["v"]) == spoilt


def test_sums_near_the_end_of_the_range_of_integers(spark: SparkSession) -> None:
    # A window's sum fits; the sum of all the stream would not.
    data = rows([0.0] * 40, whole=2**62 // 10)
    sql = f"SELECT sum(w) AS s, avg(w) AS a {CLAUSE} FROM S"
    expected = reference.evaluate(sql, {"S": SCHEMA}, S=data)
    assert_same(collected(hg.evaluate(sql, strategy="paned", S=frame(spark, data, SCHEMA))), expected)
