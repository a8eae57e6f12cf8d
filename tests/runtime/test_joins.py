"""Joins in a flow: a tuple is kept while another to come can meet it, and not longer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.runtime.test_loop import SCHEMA, WITHIN, Rows, flow

import headgate as hg
from headgate.testing import drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("lag", [0, 60])
def test_no_more_tuples_are_kept_than_punctuation_demands(spark: SparkSession, tmp_path: Path, lag: int) -> None:
    rng = random.Random(lag)
    driver = drive(flow(spark, tmp_path, ["pairs", "same"]))
    seen: dict[str, list[int]] = {"A": [], "B": []}
    for number in range(10):
        batch: dict[str, Rows] = {
            name: [(at + rng.randint(0, 12), rng.choice("ab"), rng.randint(0, 9)) for _ in range(12)]
            for name, at in (("A", number * 10), ("B", number * 10 - lag))
        }
        driver.batch(batch)
        for name, rows in batch.items():
            seen[name] += [row[0] for row in rows]
        # The rule of both streams: a tuple is at most so far below the highest.
        a, b = (max(seen[name]) - WITHIN for name in "AB")
        # A [RANGE 4], B [RANGE 3]: a - 3 <= b < a + 4
        assert driver.kept("pairs") == [sum(t + 4 > b for t in seen["A"]), sum(t + 3 >= a for t in seen["B"])]
        assert driver.kept("same") == [
            sum(t // 5 >= b // 5 for t in seen["A"]),
            sum(t // 5 >= a // 5 for t in seen["B"]),
        ]
    # What is on disk is not much more: files go once all of their tuples have.
    assert sum(f.rows for f in driver.tuple_files) <= 3 * sum(sum(driver.kept(stage)) for stage in ("pairs", "same"))


def test_partners_that_have_all_arrived_leave_no_tuples(spark: SparkSession, tmp_path: Path) -> None:
    driver = drive(flow(spark, tmp_path, ["pairs"]))
    driver.batch(B=[(100, "a", 9)])
    driver.batch(A=[(ts, "a", 1) for ts in range(50, 80)])
    assert driver.kept("pairs") == [0, 1]


def test_joint_punctuation_releases_a_group_before_individual_punctuation_would(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = hg.Flow(spark, "test", str(tmp_path))
    for name in ("S0", "S1"):
        source = hg.sources.files(str(tmp_path / name), schema=SCHEMA)
        made.stream(name, source, progress=hg.progress("ts", ordered=True))
    made.query(
        "handshakes",
        "SELECT S0.ts AS t0, S1.ts AS t1, count(*) AS n FROM S0 [RANGE 2, WA ts], S1 [RANGE 2, WA ts]"
        " WHERE S0.k = S1.k GROUP BY S0.ts, S1.ts",
    )
    driver = drive(made)

    def arrives(stream: str, ts: int, k: str) -> list[tuple[int, int, int]]:
        driver.batch({stream: [(ts, k, 1)]})
        return sorted((row["t0"], row["t1"], row["n"]) for row in driver.answers("handshakes"))

    assert arrives("S0", 0, "syn") == []
    assert arrives("S1", 1, "syn") == []
    assert arrives("S0", 2, "other") == []  # Another S1 at 1 may still come.
    # S0 is at 2 and S1 at 2, so that (0, 1) is complete. On its own, S1 would have to come to 3, a window later than 0.
    assert arrives("S1", 2, "more") == [(0, 1, 1)]
    assert arrives("S1", 3, "other") == [(0, 1, 1)]
    assert arrives("S0", 4, "more") == [(0, 1, 1)]
