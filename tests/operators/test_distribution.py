"""No plan gathers a whole stream into one task, whatever the window: even the largest task gets a fraction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

import headgate as hg
from headgate.bounded import numbering
from headgate.connect.packets.packets import packets

ROWS = 20_000
CORES = 8
CLAUSES = [
    "[RANGE 1000 rows, SLIDE 7 rows]",
    "[RANGE 1000 rows, SLIDE 10 rows, PA proto]",
    "[RANGE ALL, SLIDE 1 row]",
    "[RANGE 10 seconds, RATTR ts, SLIDE 1 row, SATTR row_num]",
    "[RANGE 1 day, RATTR ts, SLIDE 5 rows, SATTR row_num]",
    "[RANGE 10 seconds, RATTR ts, SLIDE 5 rows, SATTR rank(ts)]",
]


@pytest.fixture
def many_partitions(spark: SparkSession) -> Iterator[None]:
    # As on a cluster: as many partitions as cores, and small ones are not put together.
    settings = {"spark.sql.shuffle.partitions": str(CORES), "spark.sql.adaptive.coalescePartitions.enabled": "false"}
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def stages(spark: SparkSession) -> set[int]:
    """The numbers of all stages that have run."""
    found = store(spark).stageList(None, False, False, *nothing(spark))
    return {found.apply(i).stageId() for i in range(found.size())}


def store(spark: SparkSession) -> JavaObject:
    return spark.sparkContext._jsc.sc().statusStore()


def nothing(spark: SparkSession) -> tuple[JavaObject, JavaObject]:
    gateway, jvm = spark.sparkContext._gateway, spark.sparkContext._jvm
    assert gateway is not None
    assert jvm is not None
    return gateway.new_array(jvm.double, 0), jvm.java.util.ArrayList()


def largest_shares(spark: SparkSession, known: set[int]) -> dict[int, float]:
    """For each new stage that reads as many records as the stream has, the share of its largest task."""
    shares, (quantiles, any_status) = {}, nothing(spark)
    for number in stages(spark) - known:
        attempts = store(spark).stageData(number, True, any_status, False, quantiles)
        read = []
        for stage in (attempts.apply(i) for i in range(attempts.size())):
            tasks = stage.tasks().get().values().iterator()
            while tasks.hasNext():
                metrics = tasks.next().taskMetrics()
                if metrics.isDefined():
                    read.append(metrics.get().shuffleReadMetrics().recordsRead())
        if sum(read) >= ROWS / 2:
            shares[number] = max(read) / sum(read)
    return shares


@pytest.mark.usefixtures("many_partitions")
@pytest.mark.parametrize("clause", CLAUSES)
def test_no_task_gets_the_whole_stream(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, clause: str) -> None:
    monkeypatch.setattr(numbering, "PIECE", 1_000)  # The stream is small, so its pieces have to be too.
    data = packets(spark, ROWS, seconds=100, partitions=CORES).localCheckpoint()  # Or every pass makes them anew.
    known = stages(spark)
    columns = "proto, max(len) AS m" if "PA" in clause else "max(len) AS m"
    hg.evaluate(f"SELECT {columns} {clause} FROM S", S=data).write.format("noop").mode("overwrite").save()
    shares = largest_shares(spark, known)
    assert all(share < 0.6 for share in shares.values()), shares
