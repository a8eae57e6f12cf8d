"""The conformance suite: windows, aggregates, strategies and groupings on Spark equal the reference evaluator."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.conformance.cases import AGGREGATES, GROUPINGS, SCHEMA, WINDOWS, case, query
from tests.support import FUZZ, assert_same, collected, frame, seeds

import headgate as hg
from headgate import reference
from headgate.plan import Strategy

#: Windows that do not overlap have one form, whatever the strategy.
APART = ("tumbling", "sampling")
# All groupings are covered for each window and each set of aggregates, in turns.
COMBINATIONS = [
    (window, aggregates, list(GROUPINGS)[(i + j) % len(GROUPINGS)], seed)
    for i, window in enumerate(WINDOWS)
    for j, aggregates in enumerate(AGGREGATES)
    for seed in seeds(f"{window} {aggregates}")
    # Aggregates of users have two forms: states of panes in sliding windows, and tuples everywhere else.
    if aggregates != "user" or window in ("sliding", "sliding uneven", "rows", "landmark", "every n-th tuple")
]


def strategies(window: str, aggregates: str) -> tuple[Strategy | None, ...]:
    """Both where forms differ most and in a long run; else they take turns, so that each meets every window."""
    if window in APART:
        return (None,)
    if FUZZ or window.startswith("sliding"):
        return ("eager", "paned")
    return ("eager",) if (WINDOWS.index(window) + list(AGGREGATES).index(aggregates)) % 2 else ("paned",)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("window", "aggregates", "grouping", "seed"), COMBINATIONS)
def test_spark_agrees_with_the_reference(
    spark: SparkSession, window: str, aggregates: str, grouping: str, seed: int
) -> None:
    given_case = case(window, seed)
    sql = query(given_case, aggregates, grouping)
    expected = reference.evaluate(sql, {"S": SCHEMA}, S=given_case.rows)
    df = frame(spark, given_case.rows, SCHEMA)
    for strategy in strategies(window, aggregates):
        assert_same(collected(hg.evaluate(sql, strategy=strategy, S=df)), expected)
