"""Policies from outside: one that samples when a batch would take over half of the target, and one with a schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class HalfTheTarget(hg.Policy):
    def loss(self, query: hg.QueryShape) -> hg.losses.Tuples:
        return hg.losses.Tuples(confidence=0.95 if query.keys else 0.99)

    def keep(self, now: hg.Situation) -> float | None:
        return 1.0 if now.fullness <= 0.5 else max(0.1, 0.5 / now.fullness)


@dataclass(frozen=True)
class Schedule(HalfTheTarget):
    share: Callable[[int], float]

    def keep(self, now: hg.Situation) -> float:
        return self.share(now.batch)


@pytest.mark.parametrize(("seconds", "share"), [(None, 1.0), (2.5, 1.0), (5.0, 0.5), (90.0, 0.1)])
def test_a_policy_is_a_function_of_the_situation(seconds: float | None, share: float) -> None:
    query, now = hg.QueryShape("q", ("S",), "windows"), datetime(2026, 1, 1, tzinfo=UTC)
    assert HalfTheTarget().keep(hg.Situation(query=query, batch=1, now=now, seconds=seconds, target=5.0)) == share


@pytest.mark.usefixtures("interpreted")
def test_what_was_decided_holds_when_the_batch_runs_again(spark: SparkSession, tmp_path: Path) -> None:
    def run(share: float, deliver: Callable[..., Any]) -> None:
        flow = hg.Flow(spark, "doors", tmp_path / "checkpoint")
        flow.stream("S", hg.sources.files(tmp_path / "in", schema="ts INT"), progress=hg.progress("ts", ordered=True))
        flow.query("q", "SELECT count(*) AS n [RANGE 10, SLIDE 10] FROM S", policy=Schedule(lambda _: share))
        flow.sink("q", deliver)
        flow.run_available()

    rates: dict[int, float] = {}
    spark.range(2000).selectExpr("CAST(id DIV 100 AS INT) AS ts").write.parquet(str(tmp_path / "in"))
    with pytest.raises(hg.FlowError, match=r"Schedule\.keep=2: give a share above 0 and not above 1"):
        run(2, print)
    with pytest.raises(hg.FlowError, match="the next start of the flow gives it this batch again"):
        run(0.5, lambda *_: 1 / 0)
    run(1.0, lambda df, _: rates.update({r.window_start: r.sampling_rate for r in df.collect()}))
    assert rates == {0: 0.5}
