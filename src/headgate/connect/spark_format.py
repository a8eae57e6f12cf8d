"""The sink for every format that Spark can write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pyspark.errors import AnalysisException

from headgate.connect.files.options import value_of, without
from headgate.connect.sink import Sink
from headgate.errors import Error, FlowError
from headgate.plan.logical.catalog import did_you_mean
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION_BY = "partitionBy"


@dataclass(frozen=True)
class FormatSink(Sink):
    """Any format that Spark can write. The format decides whether a batch that comes again is written twice."""

    format: str
    options: dict[str, Any] = field(default_factory=dict)

    def check(self, spark: SparkSession, name: str) -> None:
        """Raises an error if Spark has no such format. Spark itself would say so only when there are answers."""
        state, jvm = spark._jsparkSession.sessionState(), cast("Any", spark._jvm)
        if state.dataSourceManager().dataSourceExists(self.format):  # It is written in Python.
            return
        try:
            with plain_errors():
                jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(self.format, state.conf())
        except Error as error:
            raise FlowError(f"the {self.format} sink of {name}: {error}") from None

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        options = {"txnAppId": name, "txnVersion": batch, **without(self.options, [_PARTITION_BY])}
        if missing := [column for column in self._partition_by if column.lower() not in _lower(answers.columns)]:
            hint = did_you_mean(missing[0], answers.columns)
            raise FlowError(f"the {self.format} sink of {name}: partitionBy has no column {missing[0]}: {hint}")
        writer = answers.write.format(self.format).mode("append").options(**options)
        (writer.partitionBy(self._partition_by) if self._partition_by else writer).save()

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:  # noqa: ARG002
        try:
            return spark.read.format(self.format).options(**without(self.options, [_PARTITION_BY])).load()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":  # The first answers make it.
                return None
            raise

    def describe(self) -> str:
        return f"{self.format} '{self.options['path']}'" if "path" in self.options else self.format

    @property
    def _partition_by(self) -> list[str]:
        """The columns whose values name the folders."""
        columns = value_of(self.options, _PARTITION_BY, ())
        return [column.strip() for column in columns.split(",")] if isinstance(columns, str) else list(columns)


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}
