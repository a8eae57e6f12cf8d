"""Where streams come from. Sources that we know are read directly, batch by batch, with pruning and pushdown.

The DataFrame that Spark hands to `foreachBatch` is a scan of rows that were already made: no column is pruned and no
filter pushed down any more. So of a source that we know, only what the batch consists of (its files, its offsets) is
taken from Spark's plan, and an ordinary read gets it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from headgate.errors import SourceError
from headgate.operators.ingest import MALFORMED
from headgate.operators.sql import quoted
from headgate.runtime.failures import plain_errors
from headgate.runtime.files import OPTIONS, literal, read_files
from headgate.runtime.packets import PacketSource
from headgate.runtime.pieces import Piece, Read
from headgate.runtime.splitting import cores

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType


#: Up to this many bytes of a batch, a shuffle costs more than rows that are made of all tuples for want of it.
_SMALL = 2 << 20
#: What Spark tells of a file.
_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
#: With more cores than this, one plan for all of them is better than a piece for each.
_MOST_PIECES = 8


class Source(Protocol):
    """A stream that is found by Spark and read by us."""

    @property
    def columnar(self) -> bool:
        """Whether a few columns can be read without the others, so that to read it again is cheap."""

    def schema(self, spark: SparkSession) -> StructType:
        """The columns of the stream, and MALFORMED where it has records that may not fit them."""

    def stream(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        """The streaming DataFrame that finds the data, from a reader that may have a name."""

    def read(self, spark: SparkSession, schema: StructType, needed: Sequence[str], leaf: JavaObject) -> Read:
        """The data of a batch, from the leaf of its plan that stands for the stream, with the `needed` columns."""


@dataclass(frozen=True)
class Files:
    """Files in a folder, each read once."""

    path: str
    format: str = "parquet"
    given_schema: StructType | str | None = None
    max_files_per_batch: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def columnar(self) -> bool:
        return self.format == "parquet"

    def schema(self, spark: SparkSession) -> StructType:
        from pyspark.sql.types import StringType, StructField, StructType

        schema = self.columns(spark)
        return StructType([*schema, StructField(MALFORMED, StringType())]) if self._marks_malformed else schema

    def columns(self, spark: SparkSession) -> StructType:
        """The columns of its records."""
        from pyspark.sql.types import DataType, StructType

        if isinstance(self.given_schema, str):
            with plain_errors():
                parsed = DataType.fromDDL(self.given_schema)
            assert isinstance(parsed, StructType)
            return parsed
        if self.given_schema is not None:
            return self.given_schema
        return read_files(spark, self.path, self.format).schema

    @property
    def _marks_malformed(self) -> bool:
        """Whether a record that does not fit the schema is passed on as such; a `mode` says what else to do with it."""
        return self.format in ("csv", "json") and "mode" not in self.options

    def stream(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        # Only which files there are is asked for: as a row for each of them, nothing of what they hold is read.
        reader = reader.format("binaryFile").schema(_FILE).options(**self.options)
        if self.max_files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self.max_files_per_batch)
        with plain_errors():
            return reader.load(self.path)

    def read(self, spark: SparkSession, schema: StructType, needed: Sequence[str], leaf: JavaObject) -> Read:
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            return Read([])
        statuses = leaf.relation().location().allFiles()
        sizes = {
            statuses.apply(i).getPath().toString(): int(statuses.apply(i).getLen()) for i in range(statuses.size())
        }
        reader = spark.read.format(self.format).schema(schema).options(**self._options())
        pieces = cores(spark)
        small = pieces <= _MOST_PIECES and sum(sizes.values()) <= _SMALL
        columns = [quoted(c) for c in dict.fromkeys((*needed, *([MALFORMED] if self._marks_malformed else [])))]
        shares = shared_out(sizes, pieces) if small else [list(sizes)]
        scans = [reader.load([literal(p) for p in paths]).select(columns) for paths in shares if paths]
        parquet = list(sizes) if self.columnar else ()
        return Read([Piece(scan, small) for scan in scans], float(sum(sizes.values())), parquet)

    def _options(self) -> dict[str, Any]:
        marks = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED} if self._marks_malformed else {}
        return {**OPTIONS[self.format], **marks, **self.options}


def shared_out(sizes: dict[str, int], pieces: int) -> list[list[str]]:
    """The files in so many pieces of about the same size, none of them empty.

    >>> shared_out({"a": 5, "b": 3, "c": 3}, 2)
    [['a'], ['b', 'c']]
    """
    shares: list[tuple[int, list[str]]] = [(0, []) for _ in range(pieces)]
    for path in sorted(sizes, key=lambda p: (-sizes[p], p)):
        least = min(range(pieces), key=lambda i: shares[i][0])
        shares[least] = (shares[least][0] + sizes[path], [*shares[least][1], path])
    return [paths for _, paths in shares if paths]


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
    columnar = False

    def schema(self, spark: SparkSession) -> StructType:
        return self.rows.schema()

    def stream(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        return self.rows.stream(spark, reader)

    def read(self, spark: SparkSession, schema: StructType, needed: Sequence[str], leaf: JavaObject) -> Read:
        if leaf.getClass().getSimpleName() == "LocalRelation":
            return Read([])
        start, end = (json.loads(o.get().json())["row"] for o in (leaf.startOffset(), leaf.endOffset()))
        pieces = [Piece(self.rows.read(spark, start, end, needed))] if end > start else []
        return Read(pieces, float(end - start))


def packets(**parameters: Any) -> Packets:
    """Generated network packets, live at their rate or `rows_per_batch` at a time; see PacketSource."""
    return Packets(PacketSource(**parameters))
