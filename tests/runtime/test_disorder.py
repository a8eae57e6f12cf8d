"""Disorder: a bound that holds gives the right answers, and where it does not, each late tuple is accounted for."""

from __future__ import annotations

import csv
import gzip
import itertools
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tests.support import assert_same, collected

import headgate as hg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.api.run import Run

LOG = Path(__file__).parents[3] / "shared" / "data" / "zeek_conn.csv.gz"
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("protocol", pa.string()), ("size", pa.int64()), ("uid", pa.string())]
)
DDL = "ts TIMESTAMP, protocol STRING, size BIGINT, uid STRING"
FILES = 12
SECOND, MINUTE = 1_000_000, 60_000_000
SLIDING = "RANGE 10 minutes, SLIDE 1 minute, WA ts"
TUMBLING = "RANGE 5 minutes, SLIDE 5 minutes, WA ts"
QUERIES = {
    "load": f"SELECT protocol, count(*) AS n, sum(size) AS s, max(size) AS hi [{SLIDING}] FROM Conn GROUP BY protocol",
    "large": f"SELECT count(*) AS n, avg(size) AS a [{TUMBLING}] FROM Conn WHERE size > 100",
}


@pytest.mark.skipif(not LOG.exists(), reason="the connection log is not here")
class TestConnectionLog:
    """Connections of a real host: they begin at `ts`, and are logged in the order in which they end."""

    @pytest.fixture(scope="class")
    @classmethod
    def rows(cls) -> list[tuple[int, str, int, str]]:
        """The connections in order of arrival: when they began, in microseconds, and what they were."""
        with gzip.open(LOG, "rt") as file:
            return [
                (int(Decimal(row["ts"]) * SECOND), row["protocol"], int(row["size"]), row["uid"])
                for row in csv.DictReader(file)
            ]

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, rows: list[tuple[int, str, int, str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
        """The log as files, in order of arrival."""
        folder = tmp_path_factory.mktemp("conn")
        for number, part in enumerate(batches_of(rows)):
            columns = zip(zip(*part, strict=True), SCHEMA.types, strict=True)
            arrays = [pa.array(values, type_) for values, type_ in columns]
            pq.write_table(pa.table(arrays, schema=SCHEMA), folder / f"{number:02d}.parquet")
            in_order(folder / f"{number:02d}.parquet", number)
        return folder

    def run(self, spark: SparkSession, folder: Path, checkpoint: Path, within: str) -> Run:
        flow = hg.Flow(spark, "disorder", str(checkpoint))
        source = hg.sources.files(str(folder), schema=DDL, max_files_per_batch=1)
        flow.stream("Conn", source, progress=hg.progress("ts", within=within))
        for name, sql in QUERIES.items():
            flow.query(name, sql)
            flow.sink(name, hg.sinks.memory(), output="late")
        return flow.run_available()

    def test_a_bound_that_holds_gives_the_right_answers(
        self, spark: SparkSession, folder: Path, rows: list[tuple[int, str, int, str]], tmp_path: Path
    ) -> None:
        run = self.run(spark, folder, tmp_path / "checkpoint", "3901 seconds")
        progress = max(ts for ts, *_ in rows) - 3901 * SECOND
        assert run.status()["progress"]["Conn"] == at(progress).isoformat()
        assert [report.rows for report in run.reports] == [len(part) for part in batches_of(rows)]
        for name, sql in QUERIES.items():
            wanted = hg.evaluate(sql, Conn=spark.read.parquet(str(folder)))
            assert_same(collected(run.results(name)), collected(until(wanted, at(progress))))
            assert run.results(name, output="late").count() == 0
        assert sum(run.status()["late"].values()) == 0

    def test_with_a_bound_too_small_every_late_tuple_is_accounted_for(
        self, spark: SparkSession, folder: Path, rows: list[tuple[int, str, int, str]], tmp_path: Path
    ) -> None:
        run = self.run(spark, folder, tmp_path / "checkpoint", "60 seconds")
        conn = spark.read.parquet(str(folder))
        progress = max(ts for ts, *_ in rows) - 60 * SECOND
        counts = {"load": late(rows, MINUTE, at_least=0), "large": late(rows, 5 * MINUTE, at_least=101)}
        assert all(len(uids) > 10 for uids in counts.values())
        assert run.status()["late"] == {name: len(uids) for name, uids in counts.items()}
        for name, sql in QUERIES.items():
            told = run.results(name, output="late")
            assert told.columns == SCHEMA.names
            uids = [row.uid for row in told.select("uid").collect()]
            assert sorted(uids) == sorted(counts[name])
            in_time = conn.join(told.select("uid"), "uid", "left_anti").select(*SCHEMA.names)
            wanted = until(hg.evaluate(sql, Conn=in_time), at(progress))
            assert_same(collected(run.results(name)), collected(wanted))


def batches_of(rows: Sequence[Any]) -> list[Sequence[Any]]:
    cuts = [len(rows) * i // FILES for i in range(FILES + 1)]
    return [rows[a:b] for a, b in itertools.pairwise(cuts)]


def late(rows: Sequence[tuple[int, str, int, str]], slide: int, at_least: int) -> list[str]:
    """The large enough connections that begin in a window which was closed before their batch came, 60 s late.

    Ranges are whole slides, so windows end where slides do.
    """
    found, progress = [], None
    for part in batches_of(rows):
        if progress is not None:
            closed = progress // slide * slide
            found += [uid for ts, _, size, uid in part if ts < closed and size >= at_least]
        highest = max(ts for ts, *_ in part) - 60 * SECOND
        progress = highest if progress is None else max(progress, highest)
    return found


def at(microseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)


def until(answers: DataFrame, progress: object) -> DataFrame:
    return answers.where(F.col("window_end") <= F.lit(progress))


def in_order(file: Path, number: int) -> None:
    """Spark takes files by their time: each is a second younger than the one before."""
    os.utime(file, (1_700_000_000 + number,) * 2)


class TestLateTuples:
    """A late tuple is left out of all windows of a query, counted, and delivered to those who ask for it."""

    #: (ts, v) by file; progress is the highest ts.
    FILES = ([(2, 1), (12, 1), (30, 0)], [(27, 1), (31, 1), (8, 1)], [(60, 1), (44, 1)], [(59, 1), (61, 0), (14, 0)])

    def run(self, spark: SparkSession, tmp_path: Path, queries: dict[str, str], keep: bool = True) -> Run:
        folder = tmp_path / "in"
        folder.mkdir()
        for number, rows in enumerate(self.FILES):
            values = [pa.array(column, pa.int32()) for column in zip(*rows, strict=True)]
            pq.write_table(pa.table(values, names=["ts", "v"]), folder / f"{number}.parquet")
            in_order(folder / f"{number}.parquet", number)
        flow = hg.Flow(spark, "late", str(tmp_path / "checkpoint"))
        source = hg.sources.files(str(folder), schema="ts INT, v INT", max_files_per_batch=1)
        flow.stream("Main", source, progress=hg.progress("ts", ordered=True))
        for name, sql in queries.items():
            flow.query(name, sql)
            if keep:
                flow.sink(name, hg.sinks.memory(), output="late")
        return flow.run_available()

    @pytest.mark.parametrize("where", ["", " WHERE v > 0"])
    def test_each_query_is_answered_for_all_but_its_late_tuples(
        self, spark: SparkSession, tmp_path: Path, where: str
    ) -> None:
        # They share a table; with the filter, the stream gets further than the tuples that they count.
        queries = {
            f"of_{r}": f"SELECT count(*) AS n, sum(ts) AS s [RANGE {r}, SLIDE 5, WA ts] FROM Main{where}"
            for r in (5, 10, 20)
        }
        run = self.run(spark, tmp_path, queries)
        rows = list(itertools.chain(*self.FILES))
        for name, sql in queries.items():
            told = [tuple(row) for row in run.results(name, output="late").collect()]
            assert len(told) == run.status()["late"][name], name
            assert (8, 1) in told, name
            in_time = spark.createDataFrame(without(rows, told), "ts INT, v INT")
            assert_same(collected(run.results(name)), collected(until(hg.evaluate(sql, Main=in_time), 61)))

    def test_they_are_counted_where_nobody_asks_for_them(self, spark: SparkSession, tmp_path: Path) -> None:
        sql = "SELECT count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM Main"
        run = self.run(spark, tmp_path, {"all": sql}, keep=False)
        assert run.status()["late"] == {"all": 4}
        with pytest.raises(hg.FlowError, match="late tuples of all are not kept"):
            run.results("all", output="late")


def without(rows: Iterable[tuple[int, int]], some: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    left = list(rows)
    for row in some:
        left.remove(row)  # type: ignore[arg-type]
    return left
