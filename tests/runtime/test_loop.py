"""The same answer, whatever the order of arrival, the cut into batches, the strategy, and wherever a crash comes."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from tests.support import assert_same, collected

import headgate as hg
from headgate.runtime.loop import Loop
from headgate.runtime.pieces import Piece, Read

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = "ts INT, k STRING, v INT"
WITHIN = 5
QUERIES = {
    "counts": "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS a [RANGE 10, SLIDE 5, WA ts] FROM A GROUP BY k",
    "coarse": "SELECT count(*) AS n, stddev(v) AS sd [RANGE 10, SLIDE 10, WA ts] FROM A WHERE v > 1",
    "tumbling": "SELECT k, min(v) AS lo, max(v) AS hi [RANGE 5, SLIDE 5, WA ts] FROM A WHERE v > 2 GROUP BY k",
    "filtered": "SELECT k, count(*) AS n, count(v) FILTER (WHERE v % 2 = 0) AS even [RANGE 20, SLIDE 10, WA ts]"
    " FROM A WHERE v < 8 GROUP BY k HAVING count(*) > 1",
    "melded": "SELECT count(*) AS n, sum(v) AS s [RANGE 7, SLIDE 3, WA ts] FROM A UNION B",
    "holistic": "SELECT k, median(v) AS m, count(DISTINCT v) AS d, stddev(v) AS sd [RANGE 10, SLIDE 5, WA ts]"
    " FROM A GROUP BY k",
    "sampling": "SELECT sum(v) AS s [RANGE 3, SLIDE 7, WA ts] FROM B",
    "ends": "SELECT k, first(v) AS f, last(v) AS l [RANGE 6, SLIDE 2, WA ts] FROM B GROUP BY k",
    "renamed": "SELECT w, max(z) AS m [RANGE 10, SLIDE 10, WA ts]"
    " FROM (SELECT ts, k AS w, v * 2 AS z FROM A WHERE v IS NOT NULL) GROUP BY w",
    "nested": "SELECT max(n) AS top, count(*) AS groups [RANGE 10, SLIDE 5]"
    " FROM (SELECT k, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM A WHERE v > 1 GROUP BY k) WHERE n > 1",
    "deep": "SELECT avg(s) AS a [RANGE 20, SLIDE 20] FROM (SELECT k, sum(m) AS s [RANGE 10, SLIDE 5]"
    " FROM (SELECT k, max(v) AS m [RANGE 5, SLIDE 2, WA ts] FROM B GROUP BY k) GROUP BY k)",
    "by_start": "SELECT window_start, max(n) AS top, sum(n) AS n"
    " FROM (SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM A GROUP BY k) GROUP BY window_start",
    "melded_answers": "SELECT k, n FROM (SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM A GROUP BY k)"
    " UNION (SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM B GROUP BY k)",
    "growing": "SELECT k, count(*) AS n, sum(v) AS s, stddev(v) AS sd [RANGE ALL, SLIDE 5, WA ts] FROM A GROUP BY k",
    "growing_distinct": "SELECT count(DISTINCT v) AS d, max(v) AS hi [RANGE ALL, SLIDE 10, WA ts] FROM B WHERE v > 0",
    "pairs": "SELECT A.ts AS at, B.ts AS bt, A.v, B.v AS w FROM A [RANGE 4, WA ts], B [RANGE 3, WA ts]"
    " WHERE A.k = B.k AND A.v < B.v",
    "same": "SELECT A.k, A.v, B.v AS w FROM A, B [RANGE TUMBLING 5, WA ts] WHERE A.v = B.v",
    "of_pairs": "SELECT k, count(*) AS n, max(w) AS hi [RANGE 10, SLIDE 5, WA at]"
    " FROM (SELECT A.ts AS at, A.k, B.v AS w FROM A [RANGE 4, WA ts], B [RANGE 3, WA ts] WHERE A.k = B.k) GROUP BY k",
    "three": "SELECT x.v AS a, y.v AS b, z.v AS c FROM A AS x [RANGE 2, WA ts], B AS y [RANGE 2, WA ts],"
    " A AS z [RANGE 3, WA ts] WHERE x.k = y.k AND z.v = y.v",
    "of_windows": "SELECT h.k, h.n, t.total"
    " FROM (SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM A GROUP BY k) AS h,"
    " (SELECT count(*) AS total [RANGE 10, SLIDE 5, WA ts] FROM A) AS t [RANGE TUMBLING 5] WHERE h.n * 3 >= t.total",
    "rows": "SELECT k, count(*) AS n, sum(v) AS s [RANGE 7 rows, SLIDE 3 rows] FROM A GROUP BY k",
    "all_rows": "SELECT count(*) AS n, sum(v) AS s [RANGE ALL, SLIDE 4 rows] FROM B WHERE v > 2",
    "by_tuple": "SELECT max(v) AS hi, count(*) AS n [RANGE 6, RATTR ts, SLIDE 2 rows, SATTR row_num] FROM A",
    "by_rank": "SELECT k, sum(v) AS s [RANGE 6, RATTR ts, SLIDE 3 rows, SATTR rank(ts)] FROM B WHERE v > 0 GROUP BY k",
    "by_partition": "SELECT k, sum(v) AS s, count(*) AS n [RANGE 3 rows, SLIDE 2 rows, PA k] FROM A GROUP BY k",
    "each_third": "SELECT k, max(v) AS hi [RANGE 1 rows, SLIDE 3 rows, PA k] FROM B GROUP BY k",
    "tuples": "SELECT k, v + 1 AS w FROM A WHERE v > 3",
    "first_of_key": "SELECT DISTINCT ON (k) ts, v FROM A [RANGE 4, WA ts] WHERE v > 1",
    "of_first": "SELECT k, count(*) AS n, sum(v) AS s [RANGE 10, SLIDE 5, WA ts]"
    " FROM (SELECT DISTINCT ON (k, v % 3) ts, k, v FROM B [RANGE 7, WA ts]) GROUP BY k",
    "first_of_windows": "SELECT DISTINCT ON (n) k, n"
    " FROM (SELECT k, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM A GROUP BY k) [RANGE 12]",
    "named": "SELECT A.ts, A.v, t.name FROM A JOIN T AS t ON A.k = t.k WHERE A.v > t.least",
    "by_name": "SELECT t.name, count(*) AS n, sum(A.v) AS s [RANGE 10, SLIDE 5, WA ts] FROM A LEFT JOIN T AS t"
    " ON A.k = t.k AND A.v > t.least GROUP BY t.name",
    "growing_names": "SELECT t.name, count(*) AS n [RANGE ALL, SLIDE 5, WA B.ts] FROM B, T AS t, T AS u"
    " WHERE B.k = t.k AND u.k = t.k GROUP BY t.name",
    "named_pairs": "SELECT A.v, B.v AS w, t.name FROM A [RANGE 3, WA ts], B [RANGE 2, WA ts], T AS t"
    " WHERE A.k = B.k AND B.k = t.k AND t.least < A.v",
    "names_of_windows": "SELECT name, max(n) AS top [RANGE 10, SLIDE 5, WA window_start]"
    " FROM (SELECT t.name, c.n, c.window_start"
    " FROM (SELECT k, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM A GROUP BY k) AS c"
    " JOIN (SELECT k, name FROM T WHERE least < 3) AS t ON c.k = t.k) GROUP BY name",
}
STEPS = ["decided", "ingested", "matched", "closed", "kept", "delivered", "compacted", "committed"]
#: What tuples are looked up in.
TABLE = [("a", 2, "one"), ("a", 5, "other"), ("c", 0, "nobody"), (None, 1, "nothing")]
TABLE_SCHEMA = "k STRING, least INT, name STRING"
Rows = list[tuple[int, str | None, int | None]]


class CrashError(Exception):
    pass


def flow(spark: SparkSession, checkpoint: Path, queries: Sequence[str], strategy: Any = None) -> hg.Flow:
    made = hg.Flow(spark, "test", str(checkpoint))
    for name in "AB":
        source = hg.sources.files(str(checkpoint / name), schema=SCHEMA)
        made.stream(name, source, progress=hg.progress("ts", within=WITHIN))
    made.table("T", spark.createDataFrame(TABLE, TABLE_SCHEMA))
    for name in queries:
        made.query(name, QUERIES[name], strategy=strategy)
    return made


def loop_of(made: hg.Flow) -> Loop:
    return made._run()._loop


def frames_of(spark: SparkSession, batch: dict[str, Rows]) -> dict[str, Read]:
    return {name: Read([Piece(spark.createDataFrame(rows, SCHEMA))]) for name, rows in batch.items() if rows}


def arrival(rows: Rows, seed: int) -> Rows:
    """The rows in an order in which no tuple comes later than the rule allows."""
    rng = random.Random(seed)
    return sorted(rows, key=lambda row: row[0] + rng.uniform(0, WITHIN))


def cut(rows: Rows, places: Sequence[float]) -> list[Rows]:
    ends = sorted({round(p * len(rows)) for p in places} | {0, len(rows)})
    return [rows[a:b] for a, b in itertools.pairwise(ends)]


def check(spark: SparkSession, run: Loop, streams: dict[str, Rows]) -> None:
    frames = {name: spark.createDataFrame(rows, SCHEMA) for name, rows in streams.items()}
    for name, query in run.queries.items():
        needed: dict[str, Any] = {s: frames[s] for s in query.streams}
        needed["T"] = hg.table(spark.createDataFrame(TABLE, TABLE_SCHEMA))
        assert_same(collected(run.kept(name)), collected(hg.evaluate(QUERIES[name], **needed)))


def random_rows(rng: random.Random) -> Rows:
    return [
        (rng.randint(-20, 60), rng.choice(["a", "b", None]), rng.choice([None, *range(10)]))
        for _ in range(rng.randint(1, 40))
    ]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", range(int(os.environ.get("HEADGATE_FUZZ", 1))))
def test_a_flow_answers_as_evaluate_does(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    a, b = random_rows(rng), random_rows(rng)
    strategy = rng.choice([None, "eager", "paned"])
    crash = rng.choice([None, *((number, step) for number in range(3) for step in STEPS)])
    made = flow(spark, tmp_path, list(QUERIES)[seed % 2 :: 2], strategy)  # Half of them, for the time it takes.
    places = [rng.random() for _ in range(2)]
    batches_a, batches_b = cut(arrival(a, seed), places), cut(arrival(b, seed + 1), places[:1])
    run = loop_of(made)
    for number in range(max(len(batches_a), len(batches_b))):
        batch = {
            name: Read([Piece(spark.createDataFrame(batches[number], SCHEMA))])
            for name, batches in (("A", batches_a), ("B", batches_b))
            if number < len(batches)
        }
        if crash is not None and crash[0] == number:
            run = crashed(made, run, batch, number, crash[1])
        if number > run.manifest.source_batch:
            run.run(batch, number)
    run.run({}, None, ended=["A", "B"])
    check(spark, run, {"A": arrival(a, seed), "B": arrival(b, seed + 1)})
    assert sum(run.manifest.counters["late"].values()) == 0


def crashed(made: hg.Flow, run: Loop, batch: dict[str, Any], number: int, step: str) -> Loop:
    """The flow restarted after a batch that was cut off at a step, if it got that far."""

    def stop(reached: str) -> None:
        if reached == step:
            raise CrashError

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(CrashError):
        patch.setattr("headgate.runtime.loop.reach", stop)
        patch.setattr("headgate.runtime.tuples.reach", stop)
        run.run(batch, number)
    return loop_of(made)
