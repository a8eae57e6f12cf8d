"""Where streams come from. Sources that we know are read directly, batch by batch, with pruning and pushdown.

The DataFrame that Spark hands to `foreachBatch` is a scan of rows that were already made: no column is pruned and no
filter pushed down any more. So of a source that we know, only what the batch consists of (its files, its offsets) is
taken from Spark's plan, and an ordinary read gets it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from headgate.errors import SourceError
from headgate.runtime.failures import plain_errors
from headgate.runtime.files import OPTIONS, read_files
from headgate.runtime.packets import PacketSource

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Source(Protocol):
    """A stream that is found by Spark and read by us."""

    def schema(self, spark: SparkSession) -> StructType:
        """The columns of the stream."""

    def stream(self, spark: SparkSession, schema: StructType) -> DataFrame:
        """The streaming DataFrame that finds the data."""

    def read(self, spark: SparkSession, schema: StructType, leaf: JavaObject) -> DataFrame | None:
        """The data of a batch, from the leaf of its plan that stands for the stream; None if there is none."""


@dataclass(frozen=True)
class Files:
    """Files in a folder, each read once."""

    path: str
    format: str = "parquet"
    given_schema: StructType | str | None = None
    max_files_per_batch: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def schema(self, spark: SparkSession) -> StructType:
        from pyspark.sql.types import DataType, StructType

        if isinstance(self.given_schema, str):
            with plain_errors():
                parsed = DataType.fromDDL(self.given_schema)
            assert isinstance(parsed, StructType)
            return parsed
        if self.given_schema is not None:
            return self.given_schema
        return read_files(spark, self.path, self.format).schema

    def stream(self, spark: SparkSession, schema: StructType) -> DataFrame:
        reader = spark.readStream.format(self.format).schema(schema).options(**self._options())
        if self.max_files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self.max_files_per_batch)
        with plain_errors():
            return reader.load(self.path)

    def read(self, spark: SparkSession, schema: StructType, leaf: JavaObject) -> DataFrame | None:
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            return None
        paths = [unquote(path) for path in leaf.relation().location().inputFiles()]
        return spark.read.format(self.format).schema(schema).options(**self._options()).load(paths) if paths else None

    def _options(self) -> dict[str, Any]:
        return {**OPTIONS.get(self.format, {}), **self.options}


def files(
    path: str,
    format: str = "parquet",  # noqa: A002 - the word that Spark has for it
    schema: StructType | str | None = None,
    max_files_per_batch: int | None = None,
    **options: Any,
) -> Files:
    """The files of a folder as they appear: Parquet, CSV or JSON lines.

    Without a `schema` it is told by the files that are there already. `options` are those of Spark's readers.
    """
    if format not in OPTIONS:
        raise SourceError(f"{path}: unknown format {format}; hg.sources.files reads {', '.join(OPTIONS)}")
    if max_files_per_batch is not None and max_files_per_batch < 1:
        raise SourceError(f"max_files_per_batch is {max_files_per_batch}: give one or more")
    return Files(str(path), format, schema, max_files_per_batch, options)


@dataclass(frozen=True)
class Packets:
    """The generated packets of `hg.sources.packets`."""

    rows: PacketSource

    def schema(self, spark: SparkSession) -> StructType:
        return self.rows.schema()

    def stream(self, spark: SparkSession, schema: StructType) -> DataFrame:
        return self.rows.stream(spark)

    def read(self, spark: SparkSession, schema: StructType, leaf: JavaObject) -> DataFrame | None:
        if leaf.getClass().getSimpleName() == "LocalRelation":
            return None
        start, end = (json.loads(o.get().json())["row"] for o in (leaf.startOffset(), leaf.endOffset()))
        return self.rows.read(spark, start, end) if end > start else None


def packets(**parameters: Any) -> Packets:
    """Generated network packets, live at their rate or `rows_per_batch` at a time; see PacketSource."""
    return Packets(PacketSource(**parameters))
