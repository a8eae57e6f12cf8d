"""A progress rule from outside: tuples are at most so far below the median of the last batches' highest places."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING, Any

import pytest

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = "SELECT count(*) AS n [RANGE 10, SLIDE 10] FROM S"


class BelowMedian(hg.ProgressRule):
    """One batch that is far ahead of the others does not close the windows of all."""

    def __init__(self, distance: int, batches: int = 3) -> None:
        self.distance, self.batches = distance, batches

    def start(self) -> list[int]:
        return []

    def step(self, state: list[int], seen: hg.Seen) -> tuple[list[int], int | None]:
        highest = [*state, *([] if seen.highest is None else [int(seen.highest)])][-self.batches :]
        return highest, median_low(highest) - self.distance if highest else None

    def describe(self) -> str:
        return f"AT MOST {self.distance} BELOW THE MEDIAN OF {self.batches} BATCHES"


def run(spark: SparkSession, folder: Path, places: list[int], rule: hg.ProgressRule) -> Any:
    """The flow after one more file with these places, begun anew: the state of the rule is in the checkpoint."""
    spark.createDataFrame([(p,) for p in places], "ts INT").coalesce(1).write.mode("append").json(str(folder / "in"))
    flow = hg.Flow(spark, "doors", folder / "checkpoint")
    flow.stream("S", hg.sources.files(folder / "in", "json", "ts INT"), progress=hg.progress("ts", rule=rule))
    flow.query("q", SQL)
    return flow, flow.run_available()


@pytest.mark.usefixtures("interpreted")
def test_a_batch_far_ahead_makes_nothing_late(spark: SparkSession, tmp_path: Path) -> None:
    for places, closed in [([4, 12], [0]), ([3, 990], [0]), ([15, 31], [0, 10]), ([32, 33], [0, 10])]:
        flow, done = run(spark, tmp_path, places, BelowMedian(0))
        assert sorted(row.window_start for row in done.results("q").collect()) == closed
    assert "PROGRESS ON ts AT MOST 0 BELOW THE MEDIAN OF 3 BATCHES" in flow.explain()


@pytest.mark.parametrize(("rule", "error"), [(BelowMedian, "an object"), (5, "hg.ProgressRule")])
def test_what_is_no_rule_is_refused(rule: Any, error: str) -> None:
    with pytest.raises(hg.ProgressError, match=error):
        hg.progress("ts", rule=rule)
