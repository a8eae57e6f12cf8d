"""The same answer, whatever the order of arrival, the cut into batches, the strategy, and wherever a crash comes."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support import FUZZ, assert_same, collected, seeds

import headgate as hg
from headgate import reference
from headgate.testing import CRASH_POINTS, Batches, Driver, drive

if TYPE_CHECKING:
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
#: What tuples are looked up in.
TABLE = [("a", 2, "one"), ("a", 5, "other"), ("c", 0, "nobody"), (None, 1, "nothing")]
TABLE_SCHEMA = "k STRING, least INT, name STRING"
SCHEMAS = {"A": SCHEMA, "B": SCHEMA, "T": TABLE_SCHEMA}
TYPES = {name: dict(column.split() for column in ddl.lower().split(", ")) for name, ddl in SCHEMAS.items()}
Rows = list[tuple[int, str | None, int | None]]


def flow(
    spark: SparkSession, checkpoint: Path, queries: Sequence[str], strategies: Mapping[str, Any] | None = None
) -> hg.Flow:
    made = hg.Flow(spark, "test", str(checkpoint))
    for name in "AB":
        made.stream(name, Batches(SCHEMA), progress=hg.progress("ts", within=WITHIN))
    made.table("T", spark.createDataFrame(TABLE, TABLE_SCHEMA))
    for name in queries:
        made.query(name, QUERIES[name], strategy=(strategies or {}).get(name))
    return made


def arrival(rows: Rows, seed: int, disorder: float = WITHIN) -> Rows:
    """The rows in an order in which no tuple comes later than the rule allows."""
    rng = random.Random(seed)
    return sorted(rows, key=lambda row: row[0] + rng.uniform(0, disorder))


def cut(rows: Rows, places: Sequence[float]) -> list[Rows]:
    ends = sorted({round(p * len(rows)) for p in places} | {0, len(rows)})
    return [rows[a:b] for a, b in itertools.pairwise(ends)]


def random_rows(rng: random.Random, least: int = 1) -> Rows:
    return [
        (rng.randint(-20, 60), rng.choice(["a", "b", None]), rng.choice([None, *range(10)]))
        for _ in range(rng.randint(least, 40))
    ]


#: Where a crash may come, of which each flow gets its share. "later" is a batch between the first one and the last one,
#: which ends the streams. What is done once for each level of queries has a number: the second one takes answers.
POINTS = [
    *(("first", step) for step in CRASH_POINTS if step != "compacted"),
    *(("later", step) for step in CRASH_POINTS),
    ("last", "closed"),
]
SELDOM = [
    ("later", "matched:2"),
    ("later", "ingested:2"),
    ("later", "closed:2"),
    ("last", "decided"),
    ("last", "delivered"),
]
#: One by which each kind has an answer, and each step is reached where a crash is to come: else the test says so.
SEED = 3362
#: Kinds of query are run by so many flows: several in one take little longer than one, and share their tables.
FLOWS = 4


@dataclass(frozen=True)
class Drawn:
    """A flow of some kinds of query, and all else that is drawn for it."""

    kinds: list[str]
    strategies: dict[str, Any]
    arrived: dict[str, Rows]
    batches: list[dict[str, Rows]]
    pieces: list[int]
    crashes: list[list[str]]
    """Where each batch crashes, one time after the other; the last one is the end of the streams."""


def drawn(part: int, seed: int) -> Drawn:
    """A part of the kinds, so that a seed runs each of them once, with what the seed and the part say."""
    kinds = list(QUERIES)
    points = list(POINTS)
    if FUZZ:
        points += SELDOM
        random.Random(seed).shuffle(kinds)
        random.Random(seed).shuffle(points)
    rng = random.Random(f"{seed} {part}")
    kinds, points = kinds[part::FLOWS], points[part::FLOWS]
    # Few tuples show little, but what happens without any has to be seen as well.
    arrived = {
        s: arrival(random_rows(rng, rng.choice([1, 20, 20, 20])), rng.getrandbits(32), rng.choice([0, 2, WITHIN]))
        for s in "AB"
    }
    places = [[rng.random() for _ in range(rng.randint(1, 3))] for _ in "AB"]
    cuts = [cut(rows, own) for rows, own in zip(arrived.values(), places, strict=True)]
    batches = [dict(zip("AB", own, strict=True)) for own in itertools.zip_longest(*cuts, fillvalue=[])]
    crashes: list[list[str]] = [[] for _ in range(len(batches) + 1)]
    for place, point in points:
        batch = {"first": 0, "last": len(batches), "later": rng.randint(1, max(1, len(batches) - 1))}[place]
        crashes[batch].append(point)
    return Drawn(
        kinds=kinds,
        strategies={kind: rng.choice([None, "eager", "paned"]) for kind in kinds},
        arrived=arrived,
        batches=batches,
        pieces=[rng.randint(1, 2) for _ in batches],
        crashes=crashes,
    )


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", seeds(SEED))
@pytest.mark.parametrize("part", range(FLOWS))
def test_a_flow_answers_as_evaluate_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, seed: int
) -> None:
    # So that a few batches are enough for state to be merged.
    monkeypatch.setattr("headgate.store.state._FOLDERS", 2)
    monkeypatch.setattr("headgate.store.tuples._FOLDERS", 2)
    own = drawn(part, seed)

    run = drive(flow(spark, tmp_path, own.kinds, own.strategies))
    last = len(own.batches)
    for number, crashes in enumerate(own.crashes):
        for point in crashes:
            with run.killed_at(point) as hit:
                run_batch(run, own, number)
            assert hit or FUZZ, f"batch {number} of {last} does not get to {point}: take another seed"
            run = run.restarted(flow(spark, tmp_path, own.kinds, own.strategies))
            if is_done(run, number, last):
                break
        if not is_done(run, number, last):
            run_batch(run, own, number)
    check(spark, run, own.arrived)
    assert sum(run.counted("late").values()) == 0


def run_batch(run: Driver, own: Drawn, number: int) -> None:
    if number < len(own.batches):
        run.batch(own.batches[number], pieces=own.pieces[number])
    else:
        run.finish()


def is_done(run: Driver, number: int, last: int) -> bool:
    return run.batches > number if number < last else bool(run.ended)


def check(spark: SparkSession, run: Driver, arrived: Mapping[str, Rows]) -> None:
    """Fails unless the flow, `evaluate` and the definitions give the same answers."""
    rows: dict[str, Sequence[tuple[Any, ...]]] = {**arrived, "T": TABLE}
    frames = {name: spark.createDataFrame(rows[name], ddl) for name, ddl in SCHEMAS.items()}
    for name, query in run.queries.items():
        streams = sorted({*query.streams, "T"})
        lists = {s: [dict(zip(TYPES[s], row, strict=True)) for row in rows[s]] for s in streams}
        expected = reference.evaluate(QUERIES[name], TYPES, tables=["T"], **lists)
        assert expected or FUZZ, f"{name} has no answer, which shows nothing: take another seed"
        bounded: Any = {s: hg.table(frames[s]) if s == "T" else frames[s] for s in streams}
        for answers in (run.results(name), hg.evaluate(QUERIES[name], **bounded)):
            assert_same(collected(answers), expected)


def test_each_kind_is_run_and_each_step_crashed() -> None:
    for seed in seeds(SEED):
        runs = [drawn(part, seed) for part in range(FLOWS)]
        assert sorted(kind for run in runs for kind in run.kinds) == sorted(QUERIES)
        crashes = sorted(point for run in runs for own in run.crashes for point in own)
        assert crashes == sorted(point for _, point in (*POINTS, *(SELDOM if FUZZ else [])))
    known = {
        step
        for f in Path(hg.__file__).parent.rglob("*.py")
        for step in re.findall(r'\breach\("(\w+)"\)', f.read_text())
    }
    assert known == set(CRASH_POINTS)
