"""The sink for tables of Spark's catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.connect.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class TableSink(Sink):
    """A table of Spark's catalog. A batch that comes again is appended again."""

    table: str

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:  # noqa: ARG002
        answers.write.mode("append").saveAsTable(self.table)

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:  # noqa: ARG002
        return spark.table(self.table) if spark.catalog.tableExists(self.table) else None

    def describe(self) -> str:
        return f"table '{self.table}'"
