"""A batch that is run again takes the same tuples, and counts them alike, however Spark would split its files now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import headgate as hg
from headgate.testing import at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")
#: As after a restart on a larger machine.
OTHER = {"spark.sql.files.maxPartitionBytes": "16384", "spark.sql.leafNodeDefaultParallelism": "5"}
QUERIES = {
    "sums": ("SELECT k, count(*) AS n, sum(v) AS s [RANGE 100, SLIDE 100, WA ts] FROM S GROUP BY k", 0.3),
    "some": ("SELECT ts, k, v FROM S WHERE k < 3", 0.1),
    "rows": ("SELECT sum(v) AS s [RANGE 50 ROWS, SLIDE 50 ROWS] FROM S", None),
}


class CrashError(Exception):
    pass


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three files of many row groups."""
    folder = str(tmp_path_factory.mktemp("splitting"))
    rows = spark.range(9_000, numPartitions=3).selectExpr(
        "id DIV 10 AS ts", "CAST(id % 7 AS INT) AS k", "pmod(xxhash64(id), 1000) AS v"
    )
    rows.write.mode("overwrite").option("parquet.block.size", 8192).parquet(folder)
    return folder


@contextmanager
def elsewhere(spark: SparkSession) -> Iterator[None]:
    """Spark with other settings, and so to say with more cores."""
    before = {name: spark.conf.get(name, None) for name in OTHER}
    for name, value in OTHER.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def answers(spark: SparkSession, files: str, checkpoint: Path) -> dict[str, list[Row]]:
    flow = hg.Flow(spark, "test", str(checkpoint))
    flow.stream("S", hg.sources.files(files), progress=hg.progress("ts", within=2000))
    for name, (sql, rate) in QUERIES.items():
        flow.query(name, sql, policy=hg.estimate(rate=rate) if rate else hg.exact())
    run = flow.run_available()
    return {name: sorted(run.results(name).collect()) for name in QUERIES}


def crash(spark: SparkSession, files: str, checkpoint: Path) -> None:
    """Runs a flow that a crash cuts off after its decision."""

    def stop() -> None:
        raise CrashError

    with at("ingested", stop), pytest.raises(hg.FlowError, match="CrashError"):
        answers(spark, files, checkpoint)


def test_a_batch_is_split_as_it_was_decided(spark: SparkSession, files: str, tmp_path: Path) -> None:
    crash(spark, files, tmp_path / "crashed")
    undisturbed = answers(spark, files, tmp_path / "whole")
    with elsewhere(spark):
        assert answers(spark, files, tmp_path / "crashed") == undisturbed
        assert {name: spark.conf.get(name) for name in OTHER} == OTHER
        # Without a decision from before, it is another sample.
        assert answers(spark, files, tmp_path / "new")["some"] != undisturbed["some"]
