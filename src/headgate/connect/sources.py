"""Where streams come from. Sources that we know are read directly, batch by batch, with pruning and pushdown.

The DataFrame that Spark hands to `foreachBatch` is a scan of rows that were already made: no column is pruned and no
filter pushed down any more. So of a source that we know, only what the batch consists of (its files, its offsets) is
taken from Spark's plan, and an ordinary read gets it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.types import StringType, StructField, StructType

from headgate import given
from headgate.connect.files.bounded import File, in_all_folders, listed, told, with_folders
from headgate.connect.files.options import READABLE, RECORDS, finding, is_on, value_of, wrong_reading
from headgate.connect.files.reading import (
    FILE,
    PART,
    Mode,
    Place,
    Reader,
    columns_of,
    is_pattern,
    record_column,
    still_agreed,
)
from headgate.connect.packets.packets import PacketSource
from headgate.connect.scan import Piece, Read
from headgate.errors import Error, SourceError
from headgate.incremental.reduce import MALFORMED
from headgate.spark.failures import plain_errors
from headgate.spark.splitting import cores

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


#: Up to this many bytes of a batch, a shuffle costs more than rows that are made of all tuples for want of it.
_SMALL = 2 << 20
#: What Spark tells of a file.
_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
#: With more cores than this, one plan for all of them is better than a piece for each.
_MOST_PIECES = 8
_PARAMETERS = ("format", "schema", "max_files_per_batch")


class Source(Protocol):
    """A stream that is found by Spark and read by us."""

    @property
    def columnar(self) -> bool:
        """Whether a few columns can be read without the others, so that to read it again is cheap."""

    def schema(self, spark: SparkSession) -> StructType:
        """The columns of the stream, and MALFORMED where it has records that may not fit them."""

    def stream(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        """The streaming DataFrame that finds the data, from a reader that may have a name."""

    def read(
        self, spark: SparkSession, schema: StructType, needed: Sequence[str], leaf: JavaObject, ordered: bool
    ) -> Read:
        """The data of a batch, from the leaf of its plan that stands for the stream, with the `needed` columns.

        If it is `ordered`, it says in which order its tuples came.
        """

    def gone(self, spark: SparkSession) -> str | None:
        """The place that data came from, if it is not there any more: Spark would wait for more of it for ever."""


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
        schema = self.columns(spark)
        marked = self.mode(spark, schema, Mode.MARK) is Mode.MARK
        return StructType([*schema, StructField(MALFORMED, StringType())]) if marked else schema

    def columns(self, spark: SparkSession) -> StructType:
        """The columns of its records, and those that folders name."""
        if self.given_schema is None:
            return told(spark, self.path, self.format, self.options)
        return with_folders(spark, self.path, self.format, columns_of(self.given_schema), self.options)

    def mode(self, spark: SparkSession, schema: StructType, usual: Mode) -> Mode | None:
        """What is done with a record that does not fit the schema, if nothing is said of it."""
        if self.format not in ("csv", "json"):
            return None
        mode = value_of(self.options, "mode")
        if mode is not None:
            return Mode[str(mode).upper()]
        own = value_of(self.options, RECORDS) is not None or record_column(spark, self.options) in schema.names
        return Mode.PERMISSIVE if own else usual

    def reader(self, spark: SparkSession, schema: StructType, usual: Mode) -> Reader:
        """What reads its files as rows of a schema."""
        schema = StructType([f for f in schema if f.name != MALFORMED])
        place = Place.of(spark, self.path, self.options)
        return Reader(spark, self.format, schema, self.options, place, self.mode(spark, schema, usual))

    def stream(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        # Only which files there are is asked for: as a row for each of them, nothing of what they hold is read. What
        # their folders say is not asked for either, as there may be others in the next batch.
        options = finding(self.options)
        if str(value_of(options, "cleanSource", "off")).lower() == "off":
            options = in_all_folders(options)  # It finds files that do not count: these may not be cleaned away.
        if self.max_files_per_batch is not None:
            options["maxFilesPerTrigger"] = self.max_files_per_batch
        with plain_errors():
            reader = reader.format("binaryFile").schema(_FILE).options(**options)
            return reader.load(Place.of(spark, self.path, self.options).pattern)

    def read(
        self, spark: SparkSession, schema: StructType, needed: Sequence[str], leaf: JavaObject, ordered: bool
    ) -> Read:
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            return Read([])
        reader = self.reader(spark, schema, Mode.MARK)
        files = self._found(leaf, reader.place, ordered)
        if not files:
            return Read([])
        self._check_folders(schema, files, reader.place)
        sizes = {file.path: file.size for file in files}
        total = float(sum(sizes.values()))
        parquet = list(sizes) if self.columnar else ()
        if ordered:
            rows = reader.rows(list(sizes), needed, placed=True)
            return Read([Piece(rows)], total, parquet, (FILE, PART), list(sizes))
        pieces = cores(spark)
        small = pieces <= _MOST_PIECES and total <= _SMALL
        scans = [reader.rows(paths, needed) for paths in (shared_out(sizes, pieces) if small else [list(sizes)])]
        return Read([Piece(scan, small) for scan in scans], total, parquet)

    def gone(self, spark: SparkSession) -> str | None:
        return None if is_pattern(self.path) or Place.of(spark, self.path, self.options).exists else self.path

    def _check_folders(self, schema: StructType, files: Sequence[File], place: Place) -> None:
        named = () if self.given_schema is None else columns_of(self.given_schema).names
        try:
            still_agreed(schema, [file.path for file in files], place, named)
        except SourceError as error:
            raise SourceError(f"cannot read {self.path}: {error}") from None

    def _found(self, leaf: JavaObject, place: Place, ordered: bool) -> list[File]:
        """The files of a batch; if `ordered`, as Spark takes them, and those of the same time by their names."""
        location = leaf.relation().location()
        roots = location.rootPaths().distinct()
        if not ordered and roots.size() == location.allFiles().size():
            return listed(leaf, place)
        taken = [path for i in range(roots.size()) if place.has(path := roots.apply(i).toString())]
        files = {file.path: file for file in listed(leaf, place)}
        gone = [path for path in taken if path not in files]
        if gone and not is_on(self.options, "ignoreMissingFiles"):
            raise SourceError(
                f"{gone[0]} is gone: the stream had found it, and it is not read yet; put it back, or go on without it"
                " with the option ignoreMissingFiles=True"
            )
        in_order = [files[path] for path in taken if path in files]
        alike = (sorted(own, key=lambda f: f.path) for _, own in groupby(in_order, key=lambda f: f.changed))
        return list(chain.from_iterable(alike))


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


@given.checked("hg.sources.files", SourceError)
def files(
    path: str | os.PathLike[str],
    format: str = "parquet",  # noqa: A002 - the word that Spark has for it
    schema: StructType | str | None = None,
    max_files_per_batch: int | None = None,
    **options: Any,
) -> Files:
    """The files of a folder as they appear: Parquet, CSV or JSON lines.

    Without a `schema` it is told by the files that are there already. `options` are those of Spark's readers and of its
    file streams.

    >>> files("in", format="csv", seperator=";")
    Traceback (most recent call last):
    headgate.errors.SourceError: in: unknown option seperator: did you mean sep?
    """
    what = given.place("hg.sources.files: path", path, SourceError)
    given.one_of(f"{what}: format", format, READABLE, SourceError)
    if not (schema is None or isinstance(schema, str | StructType)):
        text = "a text, such as 'ts TIMESTAMP, v INT', or a StructType"
        raise given.refused(f"{what}: schema", schema, text, SourceError)
    most = max_files_per_batch
    if most is not None:
        most = given.whole(f"{what}: max_files_per_batch", most, "a whole number, one or more", 1, SourceError)
    wrong = wrong_reading(format, options, follows=True, others=_PARAMETERS)
    if wrong is not None:
        raise SourceError(f"{what}: {wrong}")
    if most is not None and value_of(options, "maxFilesPerTrigger") is not None:
        raise SourceError(f"{what}: max_files_per_batch and maxFilesPerTrigger are the same: leave one out")
    # To Spark's own readers, None is what is usual.
    return Files(what, format, schema, most, {name: value for name, value in options.items() if value is not None})


@dataclass(frozen=True)
class Packets:
    """The generated packets of `hg.sources.packets`."""

    rows: PacketSource
    columnar = False

    def schema(self, spark: SparkSession) -> StructType:
        return self.rows.schema()

    def stream(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        return self.rows.stream(spark, reader)

    def read(
        self, spark: SparkSession, schema: StructType, needed: Sequence[str], leaf: JavaObject, ordered: bool
    ) -> Read:
        if leaf.getClass().getSimpleName() == "LocalRelation":
            return Read([])
        start, end = (json.loads(o.get().json())["row"] for o in (leaf.startOffset(), leaf.endOffset()))
        pieces = [Piece(self.rows.read(spark, start, end, needed))] if end > start else []
        return Read(pieces, float(end - start))

    def gone(self, spark: SparkSession) -> str | None:
        return None


@given.checked("hg.sources.packets", Error, like=PacketSource)
def packets(**parameters: Any) -> Packets:
    """Generated network packets, live at their rate or `rows_per_batch` at a time; see PacketSource."""
    return Packets(PacketSource(**parameters))
