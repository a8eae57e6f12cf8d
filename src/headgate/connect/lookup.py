"""The door for tables that tuples are looked up in: rows that are read again when they have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Lookup(Protocol):
    """A table of a flow."""

    def columns(self, spark: SparkSession) -> StructType:
        """The columns of the table."""

    def version(self, spark: SparkSession) -> Any:
        """What the table holds now, in a form that can be compared; None if it is to be read for every batch."""

    def rows(self, spark: SparkSession, schema: StructType, version: Any, number: int) -> DataFrame:
        """The rows of a version. `number` is another one at every call."""

    def describe(self) -> str:
        """What `explain` says the table is read from."""


@dataclass(frozen=True)
class LookupFrame:
    """A bounded DataFrame as a table: it is read for every batch."""

    df: DataFrame

    def columns(self, spark: SparkSession) -> StructType:  # noqa: ARG002
        return self.df.schema

    def version(self, spark: SparkSession) -> None:
        """None: nobody knows whether it has changed."""

    def rows(self, spark: SparkSession, schema: StructType, version: Any, number: int) -> DataFrame:  # noqa: ARG002
        return self.df

    def describe(self) -> str:
        return "a DataFrame"
