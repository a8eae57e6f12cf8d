"""Whole queries on Spark equal the reference: filters, joins, unions and nesting around random windows."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.conformance.cases import SCHEMA, stream
from tests.support import assert_same, collected, frame, seeds

import headgate as hg
from headgate import reference

QUERIES = {
    "where, having, alias": "SELECT k AS key, count(*) AS n, sum(v) AS s [RANGE 2 minutes, SLIDE 30 seconds, WA ts]"
    " FROM A WHERE v > -2 OR b GROUP BY key HAVING n > 1 AND max(d) > 0",
    "spark's window": "SELECT window, window.start AS s, k, avg(d) AS a FROM A"
    " GROUP BY window(ts, '2 minutes', '45 seconds', '10 seconds'), k",
    "window behind the stream": "SELECT max(v) AS m FROM A [RANGE 3 minutes SLIDE 1 minute WA ts]",
    "no aggregate": "SELECT k, v * 2 AS w, upper(k) || 'x' AS u FROM A WHERE v IS NOT NULL AND k LIKE '%a%'",
    "union": "SELECT g, count(*) AS n, sum(d) AS s [RANGE 1 minute, SLIDE 20 seconds, WA ts]"
    " FROM A UNION B UNION A GROUP BY g",
    "union by rows": "SELECT max(v) AS m, count(*) AS n [RANGE 10 rows, SLIDE 4 rows] FROM A UNION B",
    "union of selects": "SELECT g, count(*) AS n [RANGE 1 minute, WA ts] FROM"
    " (SELECT g, ts FROM A WHERE v > 0 UNION ALL SELECT v AS g, ts FROM B) GROUP BY g",
    "nested": "SELECT count(*) AS n, max(d) AS m [RANGE 4 minutes, SLIDE 2 minutes] FROM"
    " (SELECT k, max(d) - min(d) AS d [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM A GROUP BY k) WHERE d > 1",
    "nested twice": "SELECT max(a) AS top [RANGE 6 minutes, SLIDE 3 minutes] FROM (SELECT avg(n) AS a"
    " [RANGE 2 minutes, SLIDE 1 minute] FROM (SELECT k, count(*) AS n [RANGE 30 seconds, SLIDE 15 seconds, WA ts]"
    " FROM A GROUP BY k) WHERE n > 0) WHERE a < 100",
    "nested by the inner window": "SELECT window_start AS inner_start, max(n) AS top FROM"
    " (SELECT k, count(*) AS n [RANGE 1 minute, WA ts] FROM A GROUP BY k) GROUP BY window_start",
    "landmark of a filtered stream": "SELECT k, sum(v) AS s [RANGE ALL, SLIDE 1 minute, WA ts] FROM A"
    " WHERE v > 3 GROUP BY k",
    "with": "WITH minutes AS (SELECT k, count(*) AS n [RANGE 1 minute, WA ts] FROM A GROUP BY k)"
    " SELECT sum(n) AS n [RANGE 5 minutes, SLIDE 5 minutes] FROM minutes",
    "band join": "SELECT A.k, A.ts AS t1, B.ts AS t2, B.v FROM A [RANGE 20 seconds, WA ts], B [RANGE 40 seconds, WA ts]"
    " WHERE A.k = B.k AND A.v + B.v > 0",
    "band join without keys": "SELECT A.v, B.w FROM A [RANGE 4, WA at], B [RANGE 3, WA at] WHERE A.g <> B.g",
    "tumbling join": "SELECT A.*, B.d AS other FROM A, B [RANGE TUMBLING 1 minute, WA ts] WHERE A.g = B.g AND A.b",
    "join on": "SELECT x.k, y.v FROM A AS x [RANGE 9 seconds, WA ts] JOIN B AS y [RANGE 9 seconds, WA ts] ON x.k = y.k",
    "three-way join": "SELECT A.v AS a, B.v AS b, C.v AS c FROM A [RANGE 30 seconds, WA ts],"
    " B [RANGE 30 seconds, WA ts], A AS C [RANGE 60 seconds, WA ts] WHERE A.k = B.k AND B.g = C.g",
    "aggregate over a join": "SELECT A.k, count(*) AS n, max(B.d - A.d) AS gap"
    " [RANGE 2 minutes, SLIDE 1 minute, WA B.ts] FROM A [RANGE 30 seconds, WA ts], B [RANGE 10 seconds, WA ts]"
    " WHERE A.g = B.g GROUP BY A.k",
    "join by both times": "SELECT A.ts AS s, B.ts AS t, count(*) AS n FROM A [RANGE 20 seconds, WA ts],"
    " B [RANGE 20 seconds, WA ts] WHERE A.k = B.k GROUP BY A.ts, B.ts",
    "join of aggregates": "SELECT h.k, h.n, t.total FROM"
    " (SELECT k, count(*) AS n [RANGE 2 minutes, SLIDE 1 minute, WA ts] FROM A GROUP BY k) AS h,"
    " (SELECT count(*) AS total [RANGE 2 minutes, SLIDE 1 minute, WA ts] FROM A) AS t [RANGE TUMBLING 1 minute]"
    " WHERE h.n >= 0.3 * t.total",
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in QUERIES for seed in seeds(name)])
def test_spark_agrees_with_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    random = Random(f"{name} {seed}")
    a, b = stream(random, 50), stream(random, 40)
    for row in b:  # Around the same time, so that joins find partners.
        if row["ts"] is not None:
            row["ts"] = random.choice([r["ts"] for r in a]) or row["ts"]
    schemas = {"A": SCHEMA, "B": SCHEMA}
    expected = reference.evaluate(QUERIES[name], schemas, A=a, B=b)
    assert expected, "a case without an answer shows nothing"
    df = hg.evaluate(QUERIES[name], A=frame(spark, a, SCHEMA), B=frame(spark, b, SCHEMA))
    assert df.columns[:-1] == list(expected[0])
    assert_same(collected(df), expected)
