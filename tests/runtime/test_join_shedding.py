"""Joins that are shed in a flow: every pair that is delivered is one of the exact join, and none twice."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import headgate as hg
from headgate.runtime.pieces import Piece, Read

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.loop import Loop

pytestmark = pytest.mark.usefixtures("interpreted")
SQL = (
    "SELECT A.id AS a, B.id AS b FROM A [RANGE 60, WA ts], B [RANGE 40, WA ts] WHERE A.k = B.k AND A.id % 7 <> B.id % 7"
)
BATCHES, LENGTH, EACH, AHEAD = 3, 100, 4, 15
Pairs = set[tuple[int, int]]


@pytest.fixture(scope="module")
def streams(spark: SparkSession) -> dict[str, DataFrame]:
    """Two streams of a few tuples a place, with keys of which some are more frequent than others."""

    def rows(seed: int) -> DataFrame:
        key = f"CAST(floor(20 * pow(pmod(xxhash64(id, {seed}L), 1000) / 1000D, 2)) AS INT) AS k"
        columns = ("id", f"CAST(id div {EACH} AS INT) AS ts", key)
        return spark.range(EACH * BATCHES * LENGTH, numPartitions=1).selectExpr(*columns).localCheckpoint()

    return {"A": rows(1), "B": rows(2)}


@pytest.fixture(scope="module")
def exact(streams: dict[str, DataFrame]) -> Pairs:
    return {(row.a, row.b) for row in hg.evaluate(SQL, A=streams["A"], B=streams["B"]).collect()}


def flow(streams: dict[str, DataFrame], folder: Path, policies: dict[str, Any]) -> hg.Flow:
    made = hg.Flow(next(iter(streams.values())).sparkSession, "test", str(folder))
    for name, rows in streams.items():
        made.stream(name, rows.where("false"), progress=hg.progress("ts", within=20))
    for name, policy in policies.items():
        made.query(name, SQL, policy=policy)
    return made


def run(loop: Loop, streams: dict[str, DataFrame], number: int) -> None:
    # Half of the tuples are ahead of the others, and what would be ahead of the end comes with the last batch.
    end = (number + 1) * LENGTH
    low, high = (end - LENGTH if number else -AHEAD), (end if number + 1 < BATCHES else end + AHEAD)
    place = f"ts - {AHEAD} * (id % 2)"
    loop.run(
        {n: Read([Piece(df.where(f"{place} >= {low} AND {place} < {high}"))]) for n, df in streams.items()}, number
    )


def delivered(loop: Loop, query: str) -> Pairs:
    pairs = [(row.a, row.b) for row in loop.kept(query).collect()]
    assert not [pair for pair, times in Counter(pairs).items() if times > 1]
    return set(pairs)


def test_what_is_delivered_is_a_part_of_the_exact_join(
    streams: dict[str, DataFrame], exact: Pairs, tmp_path: Path
) -> None:
    policies = {
        "nothing": hg.subset(),
        "pni": hg.subset(drop=0.5, method="probe-no-insert"),
        "all": hg.sample(),
        "some": hg.sample(rate=0.2),
    }
    for number in range(BATCHES):  # Each time anew, from what is on disk.
        loop = flow(streams, tmp_path, policies)._run()._loop
        run(loop, streams, number)
    found = {query: delivered(loop, query) for query in policies}
    assert found["nothing"] == found["all"] == exact
    assert found["pni"] < exact
    assert found["some"] < exact
    assert len(found["pni"]) == pytest.approx(0.5 * len(exact), rel=0.1)
    assert len(found["some"]) == pytest.approx(0.2 * len(exact), rel=0.1)
