"""Streams against tables, queries over queries, duplicates, and streams that come with a restart."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runtime.test_flow import SCHEMA, TALLY, WITHIN, arrive, files, told

import headgate as hg
from headgate.testing import drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TOP = "SELECT max(n) AS top [RANGE 20, SLIDE 20] FROM tally"
NAMED = "SELECT Main.ts, h.name FROM Main JOIN hosts AS h ON Main.k = h.k"


def hosts(folder: Path, version: int, **names: str) -> None:
    """The table as one file that takes the place of the one before."""
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": list(names), "name": list(names.values())}), folder / ".new")
    os.utime(folder / ".new", (1_700_000_000 + version,) * 2)
    (folder / ".new").rename(folder / "hosts.parquet")


def flow(spark: SparkSession, root: Path, queries: dict[str, str], streams: tuple[str, ...] = ("Main",)) -> hg.Flow:
    made = hg.Flow(spark, "test", str(root / "checkpoint"))
    for name in streams:
        made.stream(name, files(root / name), progress=WITHIN)
    if (root / "hosts").exists():
        made.table("hosts", hg.sources.files(str(root / "hosts")))
    for name, sql in queries.items():
        made.query(name, sql)
    return made


def rows(run: Any, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row)[:-1] for row in run.results(query).collect())


class TestTables:
    def test_a_table_is_read_afresh_when_its_files_change(self, spark: SparkSession, tmp_path: Path) -> None:
        hosts(tmp_path / "hosts", 0, a="old")
        driver = drive(flow(spark, tmp_path, {"named": NAMED}))

        def batch(ts: int) -> list[Any]:
            driver.batch(Main=[(ts, "a", 1), (ts, "b", 1)])
            return [row["name"] for row in driver.answers("named") if row["ts"] == ts]

        assert batch(1) == ["old"]
        hosts(tmp_path / "hosts", 1, a="new", b="more")
        assert sorted(batch(2)) == ["more", "new"]
        # While the files are being replaced, what was there before serves.
        (tmp_path / "hosts" / "hosts.parquet").write_bytes(b"half a file")
        assert sorted(batch(3)) == ["more", "new"]
        hosts(tmp_path / "hosts", 3, b="last")
        assert batch(4) == ["last"]

    def test_late_tuples_are_counted_after_a_table(self, spark: SparkSession, tmp_path: Path) -> None:
        hosts(tmp_path / "hosts", 0, a="one")
        sql = "SELECT h.name, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM Main JOIN hosts AS h ON Main.k = h.k"
        driver = drive(flow(spark, tmp_path, {"counts": f"{sql} GROUP BY h.name"}))
        driver.batch(Main=[(1, "a", 1), (20, "a", 1)])
        driver.batch(Main=[(2, "a", 1), (3, "b", 1), (21, "a", 1)])
        driver.finish()
        given = sorted((row["window_start"], row["n"]) for row in driver.answers("counts"))
        assert given == [(0, 1), (20, 2)]
        assert driver.counted("late") == {"counts": 1}

    @pytest.mark.parametrize(
        ("sql", "message"),
        [
            ("SELECT * FROM hosts", "reads a table and no stream: join a stream with it"),
            ("SELECT Main.ts FROM Main, hosts [RANGE 5, WA k]", "hosts is a table and has no window"),
            ("SELECT a.k FROM hosts AS a, hosts AS b", "a, b are tables: a query reads a stream"),
            ("SELECT ts FROM Main UNION hosts", "hosts is a table: a UNION is of streams"),
            ("SELECT Main.ts FROM Main LEFT JOIN hosts AS h", "a LEFT JOIN is with a table, and has a condition ON"),
            ("SELECT m.ts FROM Main AS m LEFT JOIN Main AS n ON m.k = n.k", "a LEFT JOIN is with a table"),
            ("SELECT m.ts FROM Main AS m, Main AS n", "what never moves on is a table, flow.table('m', ...)"),
        ],
    )
    def test_errors(self, spark: SparkSession, tmp_path: Path, sql: str, message: str) -> None:
        hosts(tmp_path / "hosts", 0, a="one")
        with told(hg.BindError, "query q: ", message):
            flow(spark, tmp_path, {"q": sql})

    def test_what_is_no_table(self, spark: SparkSession, tmp_path: Path) -> None:
        made = flow(spark, tmp_path, {})
        with told(hg.FlowError, "table t:", "streams: add it with flow.stream"):
            made.table("t", spark.readStream.format("rate").load())
        with told(hg.FlowError, "table t: 'x' is neither a DataFrame nor hg.sources.files(...)"):
            made.table("t", "x")  # type: ignore[arg-type]
        with told(hg.FlowError, "there is a stream named Main already"):
            made.table("Main", spark.range(1))


class TestQueriesOfQueries:
    def test_a_query_reads_another_by_name(self, spark: SparkSession, tmp_path: Path) -> None:
        made = flow(spark, tmp_path, {"tally": TALLY, "top": TOP})
        arrive(tmp_path / "Main", [[(ts, "a", 1) for ts in (1, 2, 7, 40)]])
        run = made.run_available()
        assert rows(run, "top") == [(2, 0, 20)]
        with told(hg.FlowError, "query top reads tally: drop it first"):
            made.drop("tally")
        changed = {"tally": TALLY.replace("count(*)", "count(k)"), "top": TOP}
        other = flow(spark, tmp_path, changed)
        with told(hg.StateError, "has another query of this name (see tally, top)"):
            other.run_available()


def test_a_new_query_without_duplicates_knows_what_came_before_it(spark: SparkSession, tmp_path: Path) -> None:
    first = "SELECT DISTINCT ON (k) ts, k FROM Main [RANGE 10, WA ts]"
    driver = drive(flow(spark, tmp_path, {"tally": TALLY}))
    driver.batch(Main=[(1, "a", 1), (5, "b", 1)])
    driver = driver.restarted(flow(spark, tmp_path, {"tally": TALLY, "first": first}))
    driver.batch(Main=[(7, "a", 1), (16, "a", 1), (17, "b", 1), (18, "b", 2)])
    driver.finish()
    # Of the tuple at 7 it cannot be known whether it is the first, but all from 16 on are decided.
    assert [(row["ts"], row["k"]) for row in driver.answers("first")] == [(17, "b")]


class TestStreamsAtRestart:
    def test_streams_come_and_go(self, spark: SparkSession, tmp_path: Path) -> None:
        other = TALLY.replace("Main", "Other")
        arrive(tmp_path / "Main", [[(1, "a", 1), (12, "a", 1)]])
        flow(spark, tmp_path, {"tally": TALLY}).run_available()
        arrive(tmp_path / "Main", [[(13, "a", 1), (24, "a", 1)]])
        arrive(tmp_path / "Other", [[(2, "b", 5), (11, "b", 7)]])
        both = flow(spark, tmp_path, {"tally": TALLY, "other": other}, ("Other", "Main")).run_available()
        assert rows(both, "tally") == [(1, 1, 0, 5), (2, 2, 10, 15)]
        assert rows(both, "other") == [(1, 5, 0, 5)]
        arrive(tmp_path / "Other", [[(25, "b", 9)]])
        one = flow(spark, tmp_path, {"other": other}, ("Other",)).run_available()
        assert rows(one, "other") == [(1, 5, 0, 5), (1, 7, 10, 15)]

    def test_a_stream_of_the_callers_own_cannot_come_later(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "Main", [[(1, "a", 1)]])
        flow(spark, tmp_path, {"tally": TALLY}).run_available()
        made = flow(spark, tmp_path, {"tally": TALLY})
        own = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "Main"))
        made.stream("Own", own, progress=WITHIN)
        with told(hg.StateError, "was begun with the streams Main, and now there are Main, Own: where Own streams"):
            made.run_available()
