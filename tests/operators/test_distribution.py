"""No plan gathers a whole stream into one task, whatever the window: even the largest task gets a fraction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

import headgate as hg
from headgate.operators import numbering
from headgate.runtime.packets import packets

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


def stages(spark: SparkSession) -> list[JavaObject]:
    context = spark.sparkContext
    gateway, jvm = context._gateway, context._jvm
    assert gateway is not None
    assert jvm is not None
    nothing = gateway.new_array(jvm.double, 0)
    store = context._jsc.sc().statusStore()
    found = store.stageList(None, True, False, nothing, jvm.java.util.ArrayList())
    return [found.apply(i) for i in range(found.size())]


def largest_shares(spark: SparkSession, known: set[int]) -> dict[int, float]:
    """For each new stage that reads as many records as the stream has, the share of its largest task."""
    shares = {}
    for stage in stages(spark):
        if stage.stageId() in known or not stage.tasks().isDefined():
            continue
        read = []
        tasks = stage.tasks().get().values().iterator()
        while tasks.hasNext():
            metrics = tasks.next().taskMetrics()
            if metrics.isDefined():
                read.append(metrics.get().shuffleReadMetrics().recordsRead())
        if sum(read) >= ROWS / 2:
            shares[stage.stageId()] = max(read) / sum(read)
    return shares


@pytest.mark.usefixtures("many_partitions")
@pytest.mark.parametrize("clause", CLAUSES)
def test_no_task_gets_the_whole_stream(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, clause: str) -> None:
    monkeypatch.setattr(numbering, "PIECE", 1_000)  # The stream is small, so its pieces have to be too.
    data = packets(spark, ROWS, seconds=100, partitions=CORES)
    known = {stage.stageId() for stage in stages(spark)}
    columns = "proto, max(len) AS m" if "PA" in clause else "max(len) AS m"
    hg.evaluate(f"SELECT {columns} {clause} FROM S", S=data).write.format("noop").mode("overwrite").save()
    shares = largest_shares(spark, known)
    assert all(share < 0.6 for share in shares.values()), shares
