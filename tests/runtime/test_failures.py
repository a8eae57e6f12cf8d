"""What Spark cannot compute ends a flow with one line, which names the query and what it failed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

OTHERS = {
    "counts": "SELECT k, count(*) AS n [RANGE 2, WA ts] FROM S GROUP BY k",
    "most": "SELECT max(v) AS hi [RANGE 4, SLIDE 2, WA ts] FROM S WHERE v > 0",
    "ten": "SELECT ts, v FROM S WHERE v < 10",
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT ts, 10 / v AS r FROM S", "at 10 / `v`: Division by zero"),
        ("SELECT ts FROM S WHERE 7 % v > 2", "at 7 % `v`: Remainder by zero"),
        ("SELECT ts, CAST(k AS INT) AS i FROM S", "at CAST(`k` AS INT)"),
        ("SELECT k, sum(10 / v) AS s [RANGE 2, WA ts] FROM S GROUP BY k", "at 10 / `v`: Division by zero"),
        ("SELECT count(*) / sum(v - v) AS s [RANGE 2, WA ts] FROM S", ": Division by zero"),
        ("SELECT k, sum(v) AS s [RANGE 2, WA ts] FROM S GROUP BY k HAVING CAST(k AS INT) = 1", ": The value 'a'"),
        ("SELECT sum(9223372036854775807 + 0 * v) AS s [RANGE 2, WA ts] FROM S", ": "),
        ("SELECT to_date(k) AS d FROM S", "The value 'a'"),
        ("SELECT raise_error('no ' || v) AS r FROM S WHERE v > 3", ": no 4"),
        ("SELECT max(of_three(v)) AS m [RANGE 2, WA ts] FROM S", "failed: ZeroDivisionError: "),
        ("SELECT sum(big) AS s [RANGE 2, WA ts] FROM S", "overflow"),
        ("SELECT max(r) AS m [RANGE 4] FROM (SELECT ts, 10 / v AS r FROM S)", "at 10 / `v`: Division by zero"),
        ("SELECT a.ts AS t FROM S AS a [RANGE 2, WA ts], S AS b [RANGE 1, WA ts] WHERE a.v / b.v > 1", "by zero"),
    ],
)
def test_the_query_that_fails_is_named(spark: SparkSession, tmp_path: Path, sql: str, says: str) -> None:
    rows = [(ts, "ab"[ts % 2], ts - 3, 2**62) for ts in range(8)]
    flow = hg.Flow(spark, "fails", str(tmp_path))
    stream = spark.createDataFrame(rows, "ts INT, k STRING, v INT, big BIGINT")
    flow.stream("S", stream, progress=hg.progress("ts", ordered=True))
    spark.udf.register("of_three", lambda v: 10 // (v - 3), "int")
    for name, other in OTHERS.items():
        flow.query(name, other)
    flow.query("wrong", sql)
    with pytest.raises(hg.Error) as raised:
        flow.run_available()
    message = str(raised.value)
    assert message.startswith("query wrong"), message
    assert says in message
    assert "\n" not in message
    assert "Exception" not in message
    assert "_hg" not in message
    assert raised.value.query == "wrong"
    assert {"counts", "most", "ten"}.isdisjoint(message.replace(":", " ").split())
