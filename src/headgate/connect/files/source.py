"""Files as a stream, and as a table. Spark finds the files, and Headgate reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StringType, StructField, StructType

from headgate.connect.files.columns import columns_of, record_column
from headgate.connect.files.folders import still_agreed
from headgate.connect.files.listing import File, found, in_all_folders, listed
from headgate.connect.files.options import RECORDS, finding, is_on, value_of
from headgate.connect.files.origin import FILE, PART
from headgate.connect.files.place import Place, is_pattern
from headgate.connect.files.reading import Mode, Reader
from headgate.connect.files.told import told, with_folders
from headgate.connect.input import Input, nothing
from headgate.connect.scan import Piece, Read
from headgate.errors import SourceError
from headgate.incremental.reduce import MALFORMED
from headgate.spark.failures import plain_errors
from headgate.spark.splitting import cores

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from headgate.connect.input import Need, Share

#: Up to this many bytes in a batch, a shuffle costs more than making rows of all tuples.
_SMALL = 2 << 20
#: The columns that Spark has for a file.
_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
#: With more cores than this, one plan for all of them is better than a piece for each.
_MOST_PIECES = 8


@dataclass(frozen=True)
class Files(Input):
    """The files of a folder, each read once."""

    path: str
    format: str = "parquet"
    given_schema: StructType | str | None = None
    max_files_per_batch: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def columnar(self) -> bool:
        return self.format == "parquet"

    def describe(self) -> str:
        return self.format

    def schema(self, spark: SparkSession) -> StructType:
        """The columns of its records, and MALFORMED where records may not fit them."""
        schema = self.columns(spark)
        marked = self._mode(spark, schema, Mode.MARK) is Mode.MARK
        return StructType([*schema, StructField(MALFORMED, StringType())]) if marked else schema

    def columns(self, spark: SparkSession) -> StructType:
        """The columns of its records, and those that folders name."""
        if self.given_schema is None:
            return told(spark, self.path, self.format, self.options)
        return with_folders(spark, self.path, self.format, columns_of(self.given_schema), self.options)

    # As a stream

    def find(self, need: Need, reader: DataStreamReader) -> DataFrame:
        # Spark only lists the files, as a row for each, and reads nothing in them. It is not told about folders that
        # name columns, as the next batch may bring others.
        options = finding(self.options)
        if str(value_of(options, "cleanSource", "off")).lower() == "off":
            # Spark then also finds files that do not count. It must not clean those away.
            options = in_all_folders(options)
        if self.max_files_per_batch is not None:
            options["maxFilesPerTrigger"] = self.max_files_per_batch
        with plain_errors():
            reader = reader.format("binaryFile").schema(_FILE).options(**options)
            return nothing(reader.load(Place.of(need.spark, self.path, self.options).pattern))

    def take(self, need: Need, share: Share) -> Read:
        leaf = share.leaf
        if leaf is None or leaf.getClass().getSimpleName() != "LogicalRelation":
            return Read([])
        reader = self._reader(need.spark, need.schema, Mode.MARK)
        files = self._files(leaf, reader.place, need.ordered)
        if not files:
            return Read([])
        self._check_folders(need.schema, files, reader.place)
        sizes = {file.path: file.size for file in files}
        total = float(sum(sizes.values()))
        parquet = list(sizes) if self.columnar else ()
        if need.ordered:
            rows = reader.rows(list(sizes), need.columns, placed=True)
            return Read([Piece(rows)], total, parquet, (FILE, PART), list(sizes))
        pieces = cores(need.spark)
        small = pieces <= _MOST_PIECES and total <= _SMALL
        scans = [reader.rows(paths, need.columns) for paths in (shared_out(sizes, pieces) if small else [list(sizes)])]
        return Read([Piece(scan, small) for scan in scans], total, parquet)

    def gone(self, spark: SparkSession) -> str | None:
        return None if is_pattern(self.path) or Place.of(spark, self.path, self.options).exists else self.path

    # As a table

    def version(self, spark: SparkSession) -> list[File]:
        """The files that are there now."""
        return found(spark, Place.of(spark, self.path, self.options), self.options)

    def rows(self, spark: SparkSession, schema: StructType, version: Sequence[File], number: int) -> DataFrame:
        """The rows of these files. A record that does not fit is an error."""
        # Spark takes two reads of one path for the same, and serves one from what it holds of the other. The number
        # makes them differ.
        reader = self._reader(spark, schema, Mode.FAILFAST, {"read": number})
        return reader.rows([file.path for file in version], reader.schema.names, whole=True)

    def _reader(
        self, spark: SparkSession, schema: StructType, usual: Mode, more: dict[str, Any] | None = None
    ) -> Reader:
        """Reads its files as rows of a schema."""
        schema = StructType([f for f in schema if f.name != MALFORMED])
        place, mode = Place.of(spark, self.path, self.options), self._mode(spark, schema, usual)
        return Reader(spark, self.format, schema, {**self.options, **(more or {})}, place, mode)

    def _mode(self, spark: SparkSession, schema: StructType, usual: Mode) -> Mode | None:
        """What to do with a record that does not fit the schema: the `usual`, unless the options say otherwise."""
        if self.format not in ("csv", "json"):
            return None
        mode = value_of(self.options, "mode")
        if mode is not None:
            return Mode[str(mode).upper()]
        own = value_of(self.options, RECORDS) is not None or record_column(spark, self.options) in schema.names
        return Mode.PERMISSIVE if own else usual

    def _check_folders(self, schema: StructType, files: Sequence[File], place: Place) -> None:
        named = () if self.given_schema is None else columns_of(self.given_schema).names
        try:
            still_agreed(schema, [file.path for file in files], place.depth, named)
        except SourceError as error:
            raise SourceError(f"cannot read {self.path}: {error}") from None

    def _files(self, leaf: JavaObject, place: Place, ordered: bool) -> list[File]:
        """The files of a batch; if `ordered`, as Spark takes them, and files of the same age by their names."""
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
    """The files in at most so many pieces of about the same size, none of them empty.

    >>> shared_out({"a": 5, "b": 3, "c": 3}, 2)
    [['a'], ['b', 'c']]
    """
    shares: list[tuple[int, list[str]]] = [(0, []) for _ in range(pieces)]
    for path in sorted(sizes, key=lambda p: (-sizes[p], p)):
        least = min(range(pieces), key=lambda i: shares[i][0])
        shares[least] = (shares[least][0] + sizes[path], [*shares[least][1], path])
    return [paths for _, paths in shares if paths]
