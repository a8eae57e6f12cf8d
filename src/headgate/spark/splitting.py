"""How Spark splits what it reads into partitions: a part of each decision.

Coins and arrival numbers go by a tuple's place in its partition. That depends on settings, and on the number of cores,
which may be others when a batch is run again after a crash: so it is split then as it was decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.protocol.decision import Decision

_CORES = "spark.sql.leafNodeDefaultParallelism"
_SETTINGS = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionNum",
    _CORES,
)


def cores(spark: SparkSession) -> int:
    """For how many cores what is read is split."""
    return int(spark.conf.get(_CORES, None) or spark.sparkContext.defaultParallelism)


def splitting(spark: SparkSession) -> dict[str, str | None]:
    """All that it depends on, as JSON has it; None for what is not set."""
    return _settings(spark) | {_CORES: str(cores(spark))}


@contextmanager
def split_as_decided(spark: SparkSession, decision: Decision | None) -> Iterator[None]:
    """Meanwhile, Spark splits what it reads as it did when a decision was made, if there is one."""
    if decision is None:
        yield
        return
    before = _settings(spark)
    _set(spark, decision.splitting)
    try:
        yield
    finally:
        _set(spark, before)


def _settings(spark: SparkSession) -> dict[str, str | None]:
    return {name: spark.conf.get(name, None) for name in _SETTINGS}


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
