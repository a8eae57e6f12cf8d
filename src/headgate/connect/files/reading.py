"""Reads files as rows of one schema. Files that differ are read in different ways, and their rows are stacked.

They may differ in the folders that name columns, as in region=eu: Spark fills such columns if it knows where these
folders begin. They may differ in the header of a CSV file, where the same columns can be in another order. They may
differ in the unit of times: nanoseconds, for which Spark has no type, are read as numbers and converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from headgate.connect.files.columns import BY_FOLDERS, OPTIONAL, by_name, record_column
from headgate.connect.files.folders import column_names, foldered
from headgate.connect.files.footers import nanoseconds
from headgate.connect.files.headers import Header, headers, key
from headgate.connect.files.options import BASE, FINDING, FOLLOWING, RECORDS, without
from headgate.connect.files.origin import FILE, PART, with_place
from headgate.connect.files.place import literal
from headgate.connect.files.times import TIMES, from_nanoseconds, refuse_inside, times_inside
from headgate.errors import Error, SourceError
from headgate.incremental.reduce import MALFORMED
from headgate.spark.failures import plain_errors
from headgate.sql.text import ddl, empty, quoted, stacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.connect.files.place import Place

#: The names of columns that are read and not wanted begin with this.
_UNREAD = "_hg_unread_"


class Mode(Enum):
    """What to do with a record that does not fit the schema."""

    MARK = "MARK"
    """Pass it on as text, in the column MALFORMED."""
    PERMISSIVE = "PERMISSIVE"
    """Read what does not fit as NULL. The schema may have a column for the record."""
    FAILFAST = "FAILFAST"
    """Raise an error."""
    DROPMALFORMED = "DROPMALFORMED"
    """Leave it out."""


@dataclass(frozen=True)
class _Way:
    """How to read a file. Files that are read in the same way are read together."""

    base: str | None = None
    """The folder above those that name columns, if any do."""
    folders: tuple[str, ...] = ()
    """The columns that folders name."""
    header: Header | None = None
    nanos: frozenset[str] = frozenset()
    """The columns with times in nanoseconds, in lower case."""


@dataclass(frozen=True)
class Reader:
    """Reads files of a format as rows of a schema."""

    spark: SparkSession
    format: str
    schema: T.StructType
    options: Mapping[str, Any]
    place: Place
    mode: Mode | None = None
    """None for a format whose records always fit."""

    def rows(
        self, paths: Sequence[str], columns: Sequence[str], placed: bool = False, whole: bool = False
    ) -> DataFrame:
        """The rows of files with these columns, and MALFORMED if records are marked.

        With `placed`, also FILE and PART. With `whole`, the paths are all files of the place.
        """
        ways: dict[_Way, list[str]] = {}
        for path, way in self._ways(paths).items():
            ways.setdefault(way, []).append(path)
        if whole and len(ways) == 1:
            # Spark finds many files faster by their place than one by one.
            return self._scan(next(iter(ways)), [self.place.pattern], columns, placed)
        found = [self._scan(way, [literal(path) for path in own], columns, placed) for way, own in ways.items()]
        return stacked(found) if found else self._none(columns, placed)

    def _none(self, columns: Sequence[str], placed: bool) -> DataFrame:
        own = {f.name: f for f in self.schema}
        marked = [T.StructField(MALFORMED, T.StringType())] if self.mode is Mode.MARK else []
        where = [T.StructField(FILE, T.StringType()), T.StructField(PART, T.LongType())] if placed else []
        return empty(self.spark, T.StructType([*(own[c] for c in columns), *marked, *where]))

    def _ways(self, paths: Sequence[str]) -> dict[str, _Way]:
        """The way in which each file is read."""
        ways = {path: _Way(*foldered(path, self.place.depth)) for path in paths}
        if by_name(self.format, self.options):
            tops = headers(self.spark, paths, self.options)
            return {p: replace(ways[p], header=top) for p, top in zip(paths, tops, strict=True) if top is not None}
        times = {f.name.lower() for f in self.schema if isinstance(f.dataType, TIMES)}
        inside = times_inside(self.schema, TIMES)
        if self.format == "parquet" and (times or inside):
            nanos = nanoseconds(self.spark, paths)
            refuse_inside(nanos, inside)
            return {p: replace(ways[p], nanos=frozenset(own.keys() & times)) for p, own in nanos.items()}
        return ways

    @property
    def _record(self) -> str | None:
        """The column into which Spark puts a record that does not fit."""
        if self.mode is not Mode.PERMISSIVE:
            return None if self.mode is None else MALFORMED
        own = record_column(self.spark, self.options)
        return own if own in self.schema.names else None

    def _scan(self, way: _Way, paths: Sequence[str], columns: Sequence[str], placed: bool) -> DataFrame:
        """The rows of files that are read in one way."""
        named, absent = self._elsewhere(way)
        data = [f for f in self.schema if f.name not in named | absent | {self._record}]
        read, missing = (data, []) if way.header is None else _by_header(data, way.header)
        if missing and self.mode is Mode.FAILFAST:
            header = ", ".join(way.header or ())
            raise SourceError(f"{paths[0]} has no column {', '.join(missing)}: its header is {header}")
        if not read and self._record is not None:
            # If only the record is asked for, Spark gives nothing.
            read = [T.StructField(f"{_UNREAD}0", T.StringType())]
        df = self._loaded(way, paths, [*read, *(f for f in self.schema if f.name in named)])
        if placed:
            df = with_place(df)
        judged = self.mode not in (None, Mode.PERMISSIVE)
        record = _whole(self._record, data or read, missing) if self._record is not None else ""
        taken = [FILE, PART] if placed else []
        for name in dict.fromkeys((*columns, *([MALFORMED] if judged else []))):
            sql = record if name == self._record else self._column(name, way, absent)
            taken.append(sql if sql == quoted(name) else f"{sql} AS {quoted(name)}")
        df = df.selectExpr(*taken)
        return df.where(f"{MALFORMED} IS NULL").drop(MALFORMED) if judged and self.mode is not Mode.MARK else df

    def _column(self, name: str, way: _Way, absent: set[str]) -> str:
        """A column of the schema as SQL over the columns that Spark reads."""
        if name in absent:
            return f"CAST(NULL AS {ddl(self.schema[name].dataType)})"
        return from_nanoseconds(name, self.schema[name].dataType) if name.lower() in way.nanos else quoted(name)

    def _elsewhere(self, way: _Way) -> tuple[set[str], set[str]]:
        """The columns that folders name, and the columns that these files lack although others have them.

        Where no record can be malformed, files also lack the column for malformed records.
        """
        folders = column_names(way.folders)
        named = {f.name for f in self.schema if f.name.lower() in folders}
        strict = self.mode in (Mode.FAILFAST, Mode.DROPMALFORMED)
        none = {record_column(self.spark, self.options)} & {*self.schema.names} - named if strict else set()
        if self.format != "csv":
            return named, none
        header = {key(name) for name in way.header or ()}
        spared = {f.name for f in self.schema if f.metadata.keys() & {OPTIONAL, BY_FOLDERS}}
        return named, {name for name in spared if key(name) not in header} - named | none

    def _loaded(self, way: _Way, paths: Sequence[str], fields: Sequence[T.StructField]) -> DataFrame:
        """The columns of files as Spark reads them."""
        kinds = [T.StructField(f.name, T.LongType()) if f.name.lower() in way.nanos else f for f in fields]
        if self._record is not None:
            kinds.append(T.StructField(self._record, T.StringType()))
        options = without(self.options, FOLLOWING)
        if self.place.pattern not in paths:
            options = without(options, [*FINDING, BASE]) | ({BASE: way.base} if way.base else {})
        if self.mode is not None:
            mode = Mode.PERMISSIVE if self.mode is Mode.MARK else self.mode
            # Spark sees whether a whole record fits only if it reads all columns.
            options = {"columnPruning": "false"} | without(options, ["mode"]) | {"mode": mode.value}
        if self._record is not None:
            options = without(options, [RECORDS]) | {RECORDS: self._record}
        try:
            with plain_errors():
                reader = self.spark.read.format(self.format).schema(T.StructType(kinds)).options(**options)
                return reader.load(list(paths))
        except Error as error:
            raise SourceError(f"cannot read {way.base or paths[0]}: {error}") from None


def _by_header(fields: Sequence[T.StructField], header: Header) -> tuple[list[T.StructField], list[str]]:
    """The columns of a CSV file in the order of its header, then those that it lacks; and the names of the latter."""
    known = {key(f.name): f for f in fields}
    found = [known.get(key(name)) for name in header]
    here = {key(name) for name in header}
    missing = [f for f in fields if key(f.name) not in here]
    as_read = [f or T.StructField(f"{_UNREAD}{i}", T.StringType()) for i, f in enumerate(found)]
    return [*as_read, *missing], [f.name for f in missing]


def _whole(record: str, fields: Sequence[T.StructField], missing: Sequence[str]) -> str:
    """The text of a record that does not fit, as SQL that reads all columns.

    Spark judges a record by the columns that a query needs, so this needs them all. Spark does not know that a length
    is never below zero.
    """
    texts = ", ".join(f"CAST({quoted(f.name)} AS STRING)" for f in fields)
    if missing:
        return f"coalesce({record}, concat_ws(',', {texts}))"
    return f"if(length({quoted(record)}) < 0, concat({texts}), {quoted(record)})" if fields else quoted(record)
