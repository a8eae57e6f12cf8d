"""Landmark windows in flows: however many of them a batch closes, each answers for everything before its end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support import Row, assert_same

import headgate as hg
from headgate import reference

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.shed.policy import Policy

SCHEMA = {"ts": "int", "k": "string", "v": "int"}
TYPES = pa.schema([("ts", pa.int32()), ("k", pa.string()), ("v", pa.int32())])
QUERIES = {
    "sums": "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS a, var_pop(v) AS vp, min(v) AS lo, max(v) AS hi"
    " [RANGE ALL, SLIDE 1, WA ts] FROM S GROUP BY k",
    "some": "SELECT count(*) AS n, median(v) AS m [RANGE ALL, SLIDE 7, WA ts] FROM S WHERE v > 1",
    "rows": "SELECT v, count(*) AS n [RANGE ALL, SLIDE 3 rows] FROM S GROUP BY v",
}
EXACT = {
    "last": "SELECT last(v) AS la, count(DISTINCT k) AS d [RANGE ALL, SLIDE 5, WA ts] FROM S",
    "nested": "SELECT k, max(n) AS hi [RANGE ALL, SLIDE 20] FROM"
    " (SELECT k, count(*) AS n [RANGE 10, WA ts] FROM S GROUP BY k) GROUP BY k",
}
#: How far each batch gets: one closes a few windows, the next one 17, and the last one 2000.
ENDS = (5, 22, 2022)


def files(folder: Path) -> list[Row]:
    """A file for each batch, with tuples at its end and out of order before it, and all that is in them."""
    folder.mkdir()
    everything, start = list[Row](), 0
    for number, end in enumerate(ENDS):
        places = sorted({start, (2 * start + end) // 3, (start + end) // 2, end - 1}, reverse=number % 2 == 1)
        rows = [{"ts": at, "k": "abc"[at % 3], "v": (at + number) % 4} for at in [*places, places[0], places[-1]]]
        pq.write_table(pa.Table.from_pylist(rows, TYPES), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (number, number))  # Files come in the order of their age.
        everything, start = everything + rows, end
    return everything


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("policy", [hg.exact(), hg.estimate(rate=1.0)])
def test_any_number_of_them_closes_in_a_batch(spark: SparkSession, tmp_path: Path, policy: Policy) -> None:
    rows = files(tmp_path / "files")
    flow = hg.Flow(spark, "landmarks", str(tmp_path / "checkpoint"))
    source = hg.sources.files(str(tmp_path / "files"), schema="ts INT, k STRING, v INT", max_files_per_batch=1)
    flow.stream("S", source, progress=hg.progress("ts", within=2))
    queries = QUERIES | (EXACT if policy == hg.exact() else {})
    for name, sql in queries.items():
        flow.query(name, sql, policy=policy)
    run = flow.run_available()
    assert not any(run.status()["late"].values())
    for name, sql in queries.items():
        expected = reference.evaluate(sql, {"S": SCHEMA}, S=rows)
        # A live stream closes those that progress has passed.
        closed = max(row["window_end"] for row in run.results(name).collect())
        assert closed >= (ENDS[-1] // 2 if name != "rows" else len(rows) - 3)
        answers = [row.asDict() for row in run.results(name).collect()]
        columns = expected[0].keys()
        assert_same(
            [{c: row[c] for c in columns} for row in answers], [r for r in expected if r["window_end"] <= closed]
        )
