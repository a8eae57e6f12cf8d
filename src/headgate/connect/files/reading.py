"""The rows of files. Those that have to be read in different ways are: by folder, by header, by the unit of times.

A folder may name a column and its value, as in region=eu; Spark fills such columns if it knows where these folders
begin. The columns of a CSV file with a header go by their names, which may be in another order in the next file. Times
in nanoseconds, which Spark has no type for, are read as numbers; inside structs, arrays and maps they are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.connect.files.footers import nanoseconds
from headgate.connect.files.headers import Header, headers, key
from headgate.connect.files.options import BASE, FINDING, FOLLOWING, RECORDS, is_on, value_of, without
from headgate.errors import Error, SourceError
from headgate.incremental.reduce import MALFORMED
from headgate.spark.failures import plain_errors
from headgate.sql.text import ddl, empty, quoted, stacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Where a tuple lies: its file, as Spark names it, and the place in it where the part begins that is read in one go.
FILE, PART = "_hg_file", "_hg_part"
#: The same where it is not known how Spark came by the files: it takes them by their age.
PLACE = ("_hg_age", FILE, PART)
#: Marks a column of a schema that a file need not have, as only some headers do.
_OPTIONAL = "_hg_optional"
#: Marks a column of a schema that folders name, by its place among these.
_BY_FOLDERS = "_hg_by_folders"
#: So many folders are shown of those that disagree.
_MOST_SHOWN = 3
#: The columns that folders name, in lower case, each with a folder below which they are named so.
Ways = Mapping[str, tuple[str, ...]]
_TIMES = (T.TimestampType, T.TimestampNTZType)
_UNREAD = "_hg_unread_"
_SCHEME = re.compile(r"[^/]*:(//[^/]*)?")
_PATTERN = re.compile(r"([\\*?\[\]{}])")


class Mode(Enum):
    """What is done with a record that does not fit the schema."""

    MARK = "MARK"
    """It is passed on as it is, in the column MALFORMED."""
    PERMISSIVE = "PERMISSIVE"
    """What does not fit is NULL; the schema may have a column for the record."""
    FAILFAST = "FAILFAST"
    DROPMALFORMED = "DROPMALFORMED"


@dataclass(frozen=True)
class Place:
    """Where files are."""

    pattern: str
    """For Spark, to which a name with brackets is a pattern."""
    depth: int | None
    """How many folders deep it is; None if folders below it name no columns."""
    exists: bool = True
    """Whether there is a file or folder of this name; what a pattern names may be there all the same."""

    @classmethod
    def of(cls, spark: SparkSession, path: str, options: Mapping[str, Any]) -> Place:
        """The place that a path stands for: a folder, a file, or all that a pattern names."""
        path = os.path.expanduser(path)
        with plain_errors():
            exists, is_file, depth, full = _looked_up(spark, path)
            if (base := value_of(options, BASE)) is not None:
                _, _, depth, above = _looked_up(spark, str(base))
                if not f"{full}/".startswith(f"{above.rstrip('/')}/"):
                    raise SourceError(f"{BASE}={str(base)!r}: give a folder that {path} is, or is in")
        # A pattern of alternatives may be as deep as any of them.
        flat = is_on(options, "recursiveFileLookup") or (not exists and re.search(r"\{[^}]*/", path))
        pattern = literal(path) if exists else path
        if is_file and pattern == path:
            # To Spark, a stream is a folder or a pattern.
            folder, name = os.path.split(path)
            pattern = os.path.join(folder, f"[{name[0]}]{name[1:]}")
        return cls(pattern, None if flat else depth, exists)

    def has(self, path: str) -> bool:
        """Whether a file counts, which is in the place or below it: below it, if a folder on the way names a column."""
        shallow = self.depth is None or len(_parents(path)[1]) - 1 <= self.depth
        return shallow or self.base(path) is not None

    def base(self, path: str) -> str | None:
        """Where the folders begin that a file lies in and that name columns, if there are any."""
        return _foldered(path, self.depth)[0]

    def ways(self, folders: Iterable[str]) -> Ways:
        """The ways in which folders name columns, each with a folder that has it.

        To Spark it is one way if they name the same columns in the same order, from the same folder on.
        """
        found: dict[tuple[str | None, tuple[str, ...]], str] = {}
        for folder in sorted(folders):
            base, names = _foldered(f"{folder}/", self.depth)
            if names:
                found.setdefault((base, _columns(names)), folder)
        return {folder: names for (_, names), folder in found.items()}


def _looked_up(spark: SparkSession, path: str) -> tuple[bool, bool, int, str]:
    """Whether there is something of this name, whether it is a file, how many folders deep it is, and its full name."""
    assert spark._jvm is not None
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    exists, full = system.exists(place), system.makeQualified(place)
    return exists, exists and system.getFileStatus(place).isFile(), full.depth(), full.toString()


def is_pattern(path: str) -> bool:
    """Whether a path may stand for several, whether there are any or not."""
    return _PATTERN.search(path) is not None


def literal(path: str) -> str:
    """The name of a file for Spark, to which brackets in it would be a pattern."""
    return _PATTERN.sub(r"\\\1", path)


@dataclass(frozen=True)
class _Way:
    """How a file is read; files that are read in one way are read together."""

    base: str | None = None
    """Where the folders begin that name columns, if there are any."""
    folders: tuple[str, ...] = ()
    """The columns that folders name."""
    header: Header | None = None
    nanos: frozenset[str] = frozenset()
    """The columns with times in nanoseconds."""


@dataclass(frozen=True)
class Reader:
    """Reads files of a format as rows of a schema."""

    spark: SparkSession
    format: str
    schema: T.StructType
    options: Mapping[str, Any]
    place: Place
    mode: Mode | None = None
    """None of a format whose records always fit."""

    def rows(
        self, paths: Sequence[str], columns: Sequence[str], placed: bool = False, whole: bool = False
    ) -> DataFrame:
        """The rows of files in some columns, and in MALFORMED if records are marked.

        Those that are `placed` have FILE and PART, too. With `whole`, these are all files of the place.
        """
        ways: dict[_Way, list[str]] = {}
        for path, way in self._ways(paths).items():
            ways.setdefault(way, []).append(path)
        if whole and len(ways) == 1:
            # Spark takes long to look for many files one by one.
            return self._scan(next(iter(ways)), [self.place.pattern], columns, placed)
        found = [self._scan(way, [literal(path) for path in own], columns, placed) for way, own in ways.items()]
        return stacked(found) if found else self._none(columns, placed)

    def _none(self, columns: Sequence[str], placed: bool) -> DataFrame:
        own = {f.name: f for f in self.schema}
        marked = [T.StructField(MALFORMED, T.StringType())] if self.mode is Mode.MARK else []
        where = [T.StructField(FILE, T.StringType()), T.StructField(PART, T.LongType())] if placed else []
        return empty(self.spark, T.StructType([*(own[c] for c in columns), *marked, *where]))

    # In which way

    def _ways(self, paths: Sequence[str]) -> dict[str, _Way]:
        ways = {path: _Way(*_foldered(path, self.place.depth)) for path in paths}
        if by_name(self.format, self.options):
            tops = headers(self.spark, paths, self.options)
            return {p: replace(ways[p], header=top) for p, top in zip(paths, tops, strict=True) if top is not None}
        times = {f.name.lower() for f in self.schema if isinstance(f.dataType, _TIMES)}
        inside = times_inside(self.schema, _TIMES)
        if self.format == "parquet" and (times or inside):
            nanos = nanoseconds(self.spark, paths)
            refuse_inside(nanos, inside)
            return {p: replace(ways[p], nanos=frozenset(own.keys() & times)) for p, own in nanos.items()}
        return ways

    # As rows

    @property
    def _record(self) -> str | None:
        """The column that Spark puts a record into that does not fit."""
        if self.mode is not Mode.PERMISSIVE:
            return None if self.mode is None else MALFORMED
        own = record_column(self.spark, self.options)
        return own if own in self.schema.names else None

    def _scan(self, way: _Way, paths: Sequence[str], columns: Sequence[str], placed: bool) -> DataFrame:
        named, absent = self._elsewhere(way)
        data = [f for f in self.schema if f.name not in named | absent | {self._record}]
        read, missing = (data, []) if way.header is None else _by_header(data, way.header)
        if missing and self.mode is Mode.FAILFAST:
            header = ", ".join(way.header or ())
            raise SourceError(f"{paths[0]} has no column {', '.join(missing)}: its header is {header}")
        if not read and self._record is not None:
            read = [T.StructField(f"{_UNREAD}0", T.StringType())]  # Of the record alone, Spark gives nothing.
        df = self._loaded(way, paths, [*read, *(f for f in self.schema if f.name in named)])
        if placed:
            df = with_place(df)
        judged = self.mode not in (None, Mode.PERMISSIVE)
        types = {f.name: f.dataType for f in self.schema}
        taken = [FILE, PART] if placed else []
        for name in dict.fromkeys((*columns, *([MALFORMED] if judged else []))):
            sql = quoted(name)
            if name == self._record:
                sql = _whole(name, data or read, missing)
            elif name in absent:
                sql = f"CAST(NULL AS {ddl(types[name])})"
            elif name.lower() in way.nanos:
                sql = _micros(name, types[name])
            taken.append(sql if sql == quoted(name) else f"{sql} AS {quoted(name)}")
        df = df.selectExpr(*taken)
        return df.where(f"{MALFORMED} IS NULL").drop(MALFORMED) if judged and self.mode is not Mode.MARK else df

    def _elsewhere(self, way: _Way) -> tuple[set[str], set[str]]:
        """The columns that folders name, and those that the text of a file lacks because others have them.

        It lacks the column for records that do not fit, too, which there are none of in the other modes.
        """
        folders = _columns(way.folders)
        named = {f.name for f in self.schema if f.name.lower() in folders}
        strict = self.mode in (Mode.FAILFAST, Mode.DROPMALFORMED)
        none = {record_column(self.spark, self.options)} & {*self.schema.names} - named if strict else set()
        if self.format != "csv":
            return named, none
        header = {key(name) for name in way.header or ()}
        spared = {f.name for f in self.schema if f.metadata.keys() & {_OPTIONAL, _BY_FOLDERS}}
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
            # To see whether all of a record fits, Spark has to look at all columns.
            options = {"columnPruning": "false"} | without(options, ["mode"]) | {"mode": mode.value}
        if self._record is not None:
            options = without(options, [RECORDS]) | {RECORDS: self._record}
        try:
            with plain_errors():
                reader = self.spark.read.format(self.format).schema(T.StructType(kinds)).options(**options)
                return reader.load(list(paths))
        except Error as error:
            raise SourceError(f"cannot read {way.base or paths[0]}: {error}") from None


def with_place(df: DataFrame) -> DataFrame:
    """The rows of files with the columns of PLACE."""
    about = df.metadataColumn("_metadata")
    age = F.unix_micros(about["file_modification_time"])
    return df.withColumns(dict(zip(PLACE, (age, about["file_path"], about["file_block_start"]), strict=True)))


def has_place(df: DataFrame) -> bool:
    """Whether it is known of rows in which file they came."""
    try:
        return with_place(df) is not df
    except (PySparkException, Py4JJavaError):
        return False


def columns_of(schema: T.StructType | str) -> T.StructType:
    """The columns that a schema names, which may be text."""
    if not isinstance(schema, str):
        return schema
    try:
        with plain_errors():
            columns = T.StructType.fromDDL(schema)
    except Error as error:
        raise SourceError(f"schema={schema!r}: {error}") from None
    if not isinstance(columns, T.StructType):
        raise SourceError(f"schema={schema!r} names no columns: write it as 'ts TIMESTAMP, v INT'")
    return columns


def by_name(format_: str, options: Mapping[str, Any]) -> bool:
    """Whether columns go by the names in a header: `enforceSchema` says whether they go by their place instead."""
    return format_ == "csv" and is_on(options, "header") and value_of(options, "enforceSchema") is None


def record_column(spark: SparkSession, options: Mapping[str, Any]) -> str:
    """The column of a schema, if it has one of this name, for records that do not fit the others."""
    return str(value_of(options, RECORDS) or spark.conf.get(f"spark.sql.{RECORDS}"))


def _parents(path: str) -> tuple[str, list[str]]:
    """The scheme of a path, and the folders that it lies in, from the root."""
    found = _SCHEME.match(path)
    scheme = found[0] if found else ""
    return scheme, path[len(scheme) :].split("/")[:-1]


def optional(field: T.StructField) -> T.StructField:
    """A column that a file need not have."""
    return T.StructField(field.name, field.dataType, metadata={_OPTIONAL: True})


def by_folders(schema: T.StructType, names: Sequence[str]) -> T.StructType:
    """The schema, in which these columns are known to be named by folders: a file that lies in none need not have them.

    They are in lower case.
    """
    places = {name: i for i, name in enumerate(names)}
    return T.StructType([_by_folder(f, places[low]) if (low := f.name.lower()) in places else f for f in schema])


def _by_folder(field: T.StructField, place: int) -> T.StructField:
    return T.StructField(field.name, field.dataType, metadata={**field.metadata, _BY_FOLDERS: place})


def still_agreed(schema: T.StructType, paths: Iterable[str], place: Place, given: Collection[str]) -> None:
    """Raises a SourceError if files have come in folders that disagree with those that were there.

    A flow that is started again would refuse them, so one that runs does too, before it has taken them. Where there
    were no such folders, nothing is known of what they name.
    """
    places = {f.metadata[_BY_FOLDERS]: f.name.lower() for f in schema if _BY_FOLDERS in f.metadata}
    before = tuple(name for _, name in sorted(places.items()))
    found = {names: path for path in paths if (names := _columns(_foldered(path, place.depth)[1]))}
    if before and not found.keys() <= {before}:
        late = {path.rpartition("/")[0]: names for names, path in found.items() if names != before}
        agreed({"those before": before, **late}, given)


def agreed(ways: Ways, given: Collection[str]) -> tuple[str, ...]:
    """The columns that folders name; a SourceError if they do it in several ways and not all columns are `given`."""
    names = named(ways)
    if len(ways) > 1 and not {name.lower() for name in given}.issuperset(names):
        shown = ", ".join(f"{folder} ({', '.join(own)})" for folder, own in list(ways.items())[:_MOST_SHOWN])
        raise SourceError(
            f"its folders disagree on the columns that they name: {shown}; name {', '.join(names)} in schema=, or have"
            " no columns of folders with recursiveFileLookup=True"
        )
    return names


def named(ways: Ways) -> tuple[str, ...]:
    """The columns that folders name in any way.

    >>> named({"in/k=2/m=3": ("k", "m"), "in/j=1": ("j",)})
    ('k', 'm', 'j')
    """
    return tuple(dict.fromkeys(name for own in ways.values() for name in own))


def _columns(folders: Iterable[str]) -> tuple[str, ...]:
    """What the columns are known by that folders name."""
    return tuple(unquote(folder).lower() for folder in folders)


def _names_column(folder: str) -> bool:
    return folder.find("=") > 0


def _foldered(path: str, depth: int | None) -> tuple[str | None, tuple[str, ...]]:
    """Where the folders begin that a file lies in and that name columns, and these columns.

    Folders below them that name none make no difference.

    >>> _foldered("file:/in/year=2026/day=1/late/a.csv", 1)
    ('file:/in', ('year', 'day'))
    """
    scheme, parents = _parents(path)
    top = len(parents) if depth is None else min(depth + 1, len(parents))
    last = len(parents)
    while last > top and not _names_column(parents[last - 1]):
        last -= 1
    first = last
    while first > top and _names_column(parents[first - 1]):
        first -= 1
    names = tuple(folder.partition("=")[0] for folder in parents[first:last])
    return (scheme + "/".join(parents[:first]) if names else None), names


def _by_header(fields: Sequence[T.StructField], header: Header) -> tuple[list[T.StructField], list[str]]:
    """The columns of a CSV file as its header has them, then those that it has not, and the names of these."""
    known = {key(f.name): f for f in fields}
    found = [known.get(key(name)) for name in header]
    here = {key(name) for name in header}
    missing = [f for f in fields if key(f.name) not in here]
    as_read = [f or T.StructField(f"{_UNREAD}{i}", T.StringType()) for i, f in enumerate(found)]
    return [*as_read, *missing], [f.name for f in missing]


def _whole(record: str, fields: Sequence[T.StructField], missing: Sequence[str]) -> str:
    """The text of a record that does not fit, as SQL that depends on all columns.

    Whether it fits is up to the columns that Spark looks at, and it only looks at those that are needed. That no text
    is shorter than nothing, it does not know.
    """
    texts = ", ".join(f"CAST({quoted(f.name)} AS STRING)" for f in fields)
    if missing:
        return f"coalesce({record}, concat_ws(',', {texts}))"
    return f"if(length({quoted(record)}) < 0, concat({texts}), {quoted(record)})" if fields else quoted(record)


def times_inside(schema: T.StructType, kinds: tuple[type[T.DataType], ...]) -> re.Pattern[str] | None:
    """The columns of Parquet files, in lower case, that are inside of others and of these types in a schema.

    None if there are none. What Parquet calls the lists and maps in between is up to who wrote the file.

    >>> times_inside(T.StructType.fromDDL("e ARRAY<STRUCT<t: TIMESTAMP>>"), _TIMES).fullmatch("e.list.element.t")[0]
    'e.list.element.t'
    """
    nested = (f for f in schema if isinstance(f.dataType, T.StructType | T.ArrayType | T.MapType))
    paths = [path for f in nested for path in _paths(re.escape(f.name.lower()), f.dataType, kinds)]
    return re.compile("|".join(paths)) if paths else None


def _paths(path: str, type_: T.DataType, kinds: tuple[type[T.DataType], ...]) -> Iterator[str]:
    """Patterns of the paths to what is of these types in a column of a type."""
    match type_:
        case T.StructType():
            for field in type_:
                yield from _paths(rf"{path}\.{re.escape(field.name.lower())}", field.dataType, kinds)
        case T.ArrayType():
            yield from _paths(rf"{path}(?:\.[^.]+){{1,2}}", type_.elementType, kinds)
        case T.MapType():
            yield from _paths(rf"{path}\.[^.]+\.key", type_.keyType, kinds)
            yield from _paths(rf"{path}\.[^.]+\.value", type_.valueType, kinds)
        case _ if isinstance(type_, kinds):
            yield path


def refuse_inside(nanos: Mapping[str, Collection[str]], inside: re.Pattern[str] | None) -> None:
    """Raises a SourceError if files have times in nanoseconds inside of columns: these would be read as numbers."""
    if inside is None:
        return
    for path, columns in nanos.items():
        found = [column for column in sorted(columns) if inside.fullmatch(column)]
        if found:
            raise SourceError(
                f"{path} has times in nanoseconds inside a struct, array or map: {', '.join(found)}; write it with"
                " microseconds, or give a schema= without that column or with BIGINT for these times"
            )


def _micros(name: str, type_: T.DataType) -> str:
    """The time that a number of nanoseconds is, to the microsecond, as SQL."""
    micros = f"{quoted(name)} div 1000L - if({quoted(name)} % 1000L < 0L, 1L, 0L)"
    if isinstance(type_, T.TimestampNTZType):
        return f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ'1970-01-01 00:00:00')"
    return f"timestamp_micros({micros})"
