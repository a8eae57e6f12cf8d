"""Queries that come and go: what runs is not disturbed, and what is new answers from its first whole window on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.test_loop import (
    QUERIES,
    SCHEMA,
    TABLE,
    TABLE_SCHEMA,
    Rows,
    arrival,
    cut,
    flow,
    random_rows,
)
from tests.support import assert_same, collected, seeds

import headgate as hg
from headgate.errors import StateError
from headgate.testing import drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.testing import Driver

#: By query, how far before its window its first tuple may lie: an answer of an answer reaches back further.
WINDOWED = ["counts", "coarse", "tumbling", "filtered", "melded", "holistic", "ends", "nested", "by_start", "by_name"]


def exact(spark: SparkSession, query: str, streams: dict[str, Rows], driver: Driver) -> list[Any]:
    table = hg.table(spark.createDataFrame(TABLE, TABLE_SCHEMA))
    needed: dict[str, Any] = {"T": table} | {
        s: spark.createDataFrame(streams[s], SCHEMA) for s in driver.queries[query].streams
    }
    return collected(hg.evaluate(QUERIES[query], **needed))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", seeds("changes"))
def test_what_runs_is_not_disturbed_and_what_is_new_is_whole(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    rows = {"A": arrival(random_rows(rng), seed), "B": arrival(random_rows(rng), seed + 1)}
    batches = [
        dict(zip("AB", pair, strict=True)) for pair in zip(*(_in_four(rng, r) for r in rows.values()), strict=True)
    ]
    names = rng.sample(WINDOWED, len(WINDOWED))
    stays, goes, comes = names[:3], names[3:5], names[5:]
    change = rng.randint(1, 3)
    driver = drive(flow(spark, tmp_path, [*stays, *goes]))
    for number, batch in enumerate(batches):
        if number == change:
            driver = driver.restarted(flow(spark, tmp_path, [*comes, *stays]))
        driver.batch(batch)
    driver.finish()
    for name in stays:
        assert_same(collected(driver.results(name)), exact(spark, name, rows, driver))
    for name in comes:
        seen = [r[0] for batch in batches[:change] for s in driver.queries[name].streams for r in batch[s]]
        whole = [r for r in exact(spark, name, rows, driver) if not seen or r["window_start"] > max(seen)]
        given = collected(driver.results(name))
        if name != "nested":
            assert_same(given, whole)
        else:  # A window of answers is whole where the first of these is.
            assert_same(given, [r for r in whole if r in given])
            assert all(r in given for r in whole if r["window_start"] > max(seen, default=-99) + 5)
    assert {t["number"] for t in driver.tables} == {t.number for level in driver.levels for t in level.tables}


def _in_four(rng: random.Random, rows: Rows) -> list[Rows]:
    pieces = cut(rows, sorted(rng.random() for _ in range(3)))
    return [*pieces, *([[]] * (4 - len(pieces)))]


def test_a_query_that_goes_frees_its_state(spark: SparkSession, tmp_path: Path) -> None:
    driver = drive(flow(spark, tmp_path, ["counts", "pairs", "renamed"]))
    rows: Rows = [(ts, "a", 1) for ts in range(20)]
    driver.batch(A=rows, B=rows)
    assert driver.tuple_files
    driver = driver.restarted(flow(spark, tmp_path, ["counts"]))
    driver.batch(A=[(40, "a", 1)], B=[(40, "a", 1)])
    assert not driver.tuple_files
    assert [t["stages"] for t in driver.tables] == [["counts"]]


def test_another_query_of_the_same_name_is_told(spark: SparkSession, tmp_path: Path) -> None:
    def changed(anew: bool) -> Driver:
        made = flow(spark, tmp_path, ["tumbling"])
        made.query("counts", "SELECT k, count(*) AS m [RANGE 5, SLIDE 5, WA ts] FROM A GROUP BY k", anew=anew)
        return drive(made)

    driver = drive(flow(spark, tmp_path, ["counts", "tumbling"]))
    driver.batch(A=[(ts, "a", ts) for ts in range(20)])
    with pytest.raises(StateError, match=r"another query of this name \(see counts\): give the new one a name"):
        changed(anew=False)
    driver = changed(anew=True)
    driver.batch(A=[(ts, "a", 3) for ts in range(20, 40)])
    given = sorted((row["window_start"], row["m"]) for row in driver.answers("counts"))
    assert given == [(20, 5), (25, 5)]
    assert len(driver.answers("tumbling")) == 6
