"""Bounded files as DataFrames: the format by the suffix, the columns by what is in them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from headgate.connect.files.footers import nanoseconds
from headgate.connect.files.headers import headers, key
from headgate.connect.files.options import BASE, FOLLOWING, READABLE, RECORDS, finding, value_of, without
from headgate.connect.files.reading import (
    Place,
    Reader,
    Ways,
    agreed,
    by_folders,
    by_name,
    columns_of,
    literal,
    named,
    optional,
    refuse_inside,
    times_inside,
)
from headgate.errors import Error, SourceError
from headgate.spark.failures import plain_errors
from headgate.sql.text import stacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_KNOWN = "Parquet (.parquet), CSV (.csv) and JSON lines (.json, .jsonl, .ndjson) can be read, also packed (.gz)"
#: To be told the types of text. For records that do not fit, Spark would make a column, if there happen to be any.
_INFER: dict[str, dict[str, Any]] = {
    "csv": {"inferSchema": True},
    "json": {"inferTimestamp": True, "mode": "DROPMALFORMED"},
}
#: A record that does not fit is an error: as a row of NULLs it would silently change the answers.
_STRICT = {"mode": "FAILFAST", "columnPruning": "false"}
#: Is in no name of a file.
_BETWEEN = "\0"
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def read_files(
    spark: SparkSession,
    path: str,
    format: str | None = None,  # noqa: A002 - the word that Spark has for it
    schema: str | None = None,
) -> DataFrame:
    r"""The rows of a file, of all files in a directory, or of all that a pattern such as `logs/*.csv` names.

    The format is told by the suffix unless it is given. A CSV file has a header line; its types, and those of
    JSON lines, are told by the data unless `schema` names them, as in "ts TIMESTAMP, len INT".

    >>> import tempfile
    >>> from headgate.api.session import session
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("ts,len\n2026-01-01 00:00:00,40\n")
    ...     file.flush()
    ...     read_files(session(master="local[2]"), file.name).dtypes
    [('ts', 'timestamp'), ('len', 'int')]
    """
    kind = format or format_of(path)
    if kind not in READABLE:
        raise SourceError(f"{path}: unknown format {kind}; {_KNOWN}")
    options = {"header": "true"} | _STRICT if kind == "csv" else _STRICT if kind == "json" else {}
    columns = told(spark, path, kind, options) if schema is None else columns_of(schema)
    with _named(path, kind):
        place = Place.of(spark, path, options)
        if schema is not None:
            columns = by_folders(columns, named(_ways(spark, place, options)))
        paths = [file.path for file in found(spark, place, options)]
        return Reader(spark, kind, columns, options, place).rows(paths, columns.names, whole=True)


def told(spark: SparkSession, path: str, kind: str, options: Mapping[str, Any]) -> T.StructType:
    """The columns of the files in a place, as they tell them."""
    with _named(path, kind):
        place = Place.of(spark, path, options)
        names = agreed(_ways(spark, place, options), ())
        if by_name(kind, options):
            schema = _told_by_headers(spark, place, options)
        elif kind == "parquet":
            schema = _told_by_footers(spark, place, options)
        else:
            schema = _reader(spark, kind, options).load(place.pattern).schema
    if not schema.names:
        if kind == "json":
            raise SourceError(f"{path} has no columns: no line of it is a JSON object with any")
        raise SourceError(f"{path} is empty: it has no columns")
    return by_folders(schema, names)


def with_folders(
    spark: SparkSession, path: str, kind: str, given: T.StructType, options: Mapping[str, Any]
) -> T.StructType:
    """The columns of files by a schema that is given, and behind them those that only folders name."""
    known = {name.lower() for name in given.names}
    with _named(path, kind):
        place = Place.of(spark, path, options)
        names = agreed(_ways(spark, place, options), known)
        _check_values(spark, kind, given, options)
        if known.issuperset(names):
            return by_folders(given, names)
        # Spark tells their types by their values.
        reader = spark.read.format(kind).schema(given).options(**without(options, FOLLOWING))
        whole = reader.load(place.pattern).schema
    return by_folders(T.StructType([*given, *(f for f in whole if f.name.lower() not in known)]), names)


def _check_values(spark: SparkSession, kind: str, given: T.StructType, options: Mapping[str, Any]) -> None:
    """Lets Spark look at the values of options, which it would only do in the first batch."""
    if options and kind in ("csv", "json"):
        reader = spark.read.schema(given).options(**without(options, FOLLOWING))
        getattr(reader, kind)(spark.sparkContext.emptyRDD())


def _reader(spark: SparkSession, kind: str, options: Mapping[str, Any]) -> DataFrameReader:
    infer = without(_INFER.get(kind, {}), ["mode"] if value_of(options, RECORDS) is not None else [])
    return spark.read.format(kind).options(**infer | without(options, FOLLOWING))


def _told_by_headers(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> T.StructType:
    """The columns of CSV files: to Spark, those of all files are in the order of the first one."""
    paths = [file.path for file in found(spark, place, options)]
    tops = {p: top for p, top in zip(paths, headers(spark, paths, options), strict=True) if top is not None}
    alike: dict[Any, list[str]] = {}
    for path, top in tops.items():
        alike.setdefault((top, place.base(path)), []).append(literal(path))
    if len(alike) < 2:
        schema = _reader(spark, "csv", options).load(place.pattern).schema
    else:
        bases = [({BASE: base} if base else {}, own) for (_, base), own in alike.items()]
        frames = [_reader(spark, "csv", {**options, **base}).load(own) for base, own in bases]
        schema = stacked(df.toDF(*(name.strip() for name in df.columns)) for df in frames).schema
    known = {key(name) for name in schema.names}
    unknown = next((top for top in tops.values() if not known.issuperset(map(key, top))), None)
    if unknown is not None:  # To tell columns, it takes lines of tabs and indented comments for the header.
        raise SourceError(
            f"Spark does not find the header {', '.join(unknown)}: put it first, or give the columns in schema="
        )
    everywhere = frozenset.intersection(*(frozenset(map(key, top)) for top in tops.values())) if tops else frozenset()
    return T.StructType([f if key(f.name) in everywhere else optional(f) for f in schema])


def _told_by_footers(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> T.StructType:
    """The columns of Parquet files: Spark has no type for times in nanoseconds."""
    before = str(spark.conf.get(_NANOS_AS_LONG))
    spark.conf.set(_NANOS_AS_LONG, "true")
    try:
        schema = _reader(spark, "parquet", options).load(place.pattern).schema
    finally:
        spark.conf.set(_NANOS_AS_LONG, before)
    inside = times_inside(schema, (T.LongType,))
    if inside is None and not any(isinstance(f.dataType, T.LongType) for f in schema):
        return schema
    by_file = nanoseconds(spark, [file.path for file in found(spark, place, options)])
    refuse_inside(by_file, inside)
    return T.StructType([_with_nanoseconds(field, by_file.values()) for field in schema])


def _with_nanoseconds(field: T.StructField, by_file: Iterable[Mapping[str, bool]]) -> T.StructField:
    """The column with the type of its times, if they are in nanoseconds in any file.

    Wall-clock times can be read as points in time, and not the other way round.
    """
    points = [own[field.name.lower()] for own in by_file if field.name.lower() in own]
    if not points:
        return field
    a_point = any(points) or isinstance(field.dataType, T.TimestampType)
    return T.StructField(field.name, T.TimestampType() if a_point else T.TimestampNTZType())


@dataclass(frozen=True)
class File:
    """A file as it was found."""

    path: str
    size: int
    changed: int
    """When, in milliseconds."""


def found(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> list[File]:
    """The files in a place, none of them read."""
    return listed(_all_below(spark, place, options), place)


def _all_below(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> JavaObject:
    """The relation of all files in a place and below it."""
    only = in_all_folders(finding(without(options, FOLLOWING)))
    rows = spark.read.format("binaryFile").options(**only).load(place.pattern)
    return rows._jdf.queryExecution().analyzed().collectLeaves().apply(0)


def _ways(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> Ways:
    """The ways in which the folders of a place name columns; none of a place that is not there yet."""
    if place.depth is None:
        return {}
    try:
        with plain_errors():
            relation = _all_below(spark, place, options)
    except SourceError:
        if place.exists:
            raise
        return {}
    # Files may be many: their folders are brought here in one go.
    folders = relation.relation().location().leafDirToChildrenFiles().keys().mkString(_BETWEEN)
    return place.ways(folders.split(_BETWEEN)) if folders else {}


def in_all_folders(options: Mapping[str, Any]) -> dict[str, Any]:
    """These options, to find files in all folders below a place."""
    return without(options, ["recursiveFileLookup"]) | {"recursiveFileLookup": True}


def listed(leaf: JavaObject, place: Place) -> list[File]:
    """The files that a relation reads, without those in folders that do not count."""
    statuses = leaf.relation().location().allFiles()
    files = []
    for i in range(statuses.size()):
        status = statuses.apply(i)
        path = status.getPath().toString()
        if place.has(path):
            files.append(File(path, int(status.getLen()), int(status.getModificationTime())))
    return files


@contextmanager
def _named(path: str, kind: str) -> Iterator[None]:
    """Errors that are raised inside with what cannot be read."""
    try:
        with plain_errors():
            yield
    except Error as error:
        what = "JSON lines, one object a line" if kind == "json" else kind
        raise SourceError(f"cannot read {path} as {what}: {error}") from None


def format_of(path: str) -> str:
    """The format of the files that a path stands for, or a SourceError if they are not there or not alike.

    >>> with __import__("tempfile").NamedTemporaryFile(suffix=".csv.gz") as file:
    ...     format_of(file.name)
    'csv'
    """
    if "://" in path:
        found = {_by_suffix(path)}  # Only Spark can look there.
    else:
        files = list(_files(path))
        if not files:
            what = "holds no files" if os.path.isdir(_local(path)) else "does not exist"
            raise SourceError(f"{path} {what}")
        found = {_by_suffix(file) for file in files}
    known = sorted(kind for kind in found if kind)
    if len(known) > 1:
        raise SourceError(f"{path} holds files of several formats, {' and '.join(known)}: name those of one with a *")
    if None in found:
        raise SourceError(f"{path}: unknown format; {_KNOWN}")
    return known[0]


def _by_suffix(path: str) -> str | None:
    suffixes = [s.lower() for s in Path(path).suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


def _files(path: str) -> Iterator[str]:
    """The data files that a local path stands for: to Spark, names with _ or . in front are none."""
    place = _local(path)
    for match in [place] if os.path.exists(place) else sorted(glob.glob(place)):
        if not os.path.isdir(match):
            yield match
        for folder, folders, names in os.walk(match):
            folders[:] = [f for f in folders if not f.startswith(("_", "."))]
            yield from (os.path.join(folder, n) for n in names if not n.startswith(("_", ".")))


def _local(path: str) -> str:
    return os.path.expanduser(path)
