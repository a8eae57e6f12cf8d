"""What a look at the new tuples of a join tells, against a count of them one by one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from headgate.plan.logical.nodes import Band, Field, Join, Source
from headgate.shed.estimate.sql import tossed
from headgate.shed.join.cost import NOTHING, JoinShares
from headgate.shed.join.look import Look
from headgate.shed.join.plan import PairSubset
from headgate.shed.join.sql import ShedSide

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")
TUPLES, KEYS = 6000, 50
SHARES = JoinShares(insert_left=0.25, probe_left=0.75)


def _source(name: str) -> Source:
    return Source(name, (Field(f"{name}.ts", "bigint"), Field(f"{name}.k", "bigint")))


@pytest.fixture(scope="module")
def side() -> ShedSide:
    same = exp.EQ(this=exp.column("A.k", quoted=True), expression=exp.column("B.k", quoted=True))
    return ShedSide(Join(_source("A"), _source("B"), (Band("A.ts", "B.ts", 10, 10),), same), "left")


@pytest.fixture(scope="module")
def tuples(spark: SparkSession) -> DataFrame:
    key = f"CASE WHEN id % 10 = 0 THEN NULL ELSE id * id % {KEYS} END"
    rows = spark.range(TUPLES).selectExpr("id + 7 AS `A.ts`", f"{key} AS `A.k`")
    return tossed(rows, 1).localCheckpoint()


def test_it_tells_how_many_tuples_of_which_keys_do_what(side: ShedSide, tuples: DataFrame) -> None:
    hashes = {r.k: r.h for r in tuples.selectExpr("`A.k` AS k", f"{side.key} AS h").distinct().collect()}
    counts = Counter(r.k for r in tuples.selectExpr("`A.k` AS k").collect())
    known = {hashes[key]: SHARES for key in (1, 4)}
    look = Look(side, PairSubset(NOTHING, known), part=1.0)
    passed = look.over(tuples).where("`A.ts` < 0").collect()
    assert not passed
    frequent, none = counts[1] + counts[4], counts[None]
    told = look.left_out()
    assert {name: own["tuples"] for name, own in told.items()} == {
        "frequent keys": frequent,
        "other keys": TUPLES - frequent - none,
        "no key": none,
    }
    assert told["other keys"]["dropped"] == TUPLES - frequent - none
    assert told["no key"]["dropped"] == none
    assert told["frequent keys"]["not kept"] == pytest.approx(frequent / 2, rel=0.3)
    assert look.kept == pytest.approx(frequent / 4, rel=0.3)
    assert look.tuples == TUPLES
    seen = look.seen()
    assert (seen.tuples, seen.keyed, seen.lowest, seen.highest) == (TUPLES, TUPLES - none, 7, TUPLES + 6)
    assert seen.frequent == {hashes[key]: count for key, count in counts.items() if key is not None}
