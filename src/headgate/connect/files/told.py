"""The columns of files as the files themselves tell them: by headers, by footers, or by their data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from headgate.connect.files.columns import by_folders, by_name, optional
from headgate.connect.files.folders import agreed
from headgate.connect.files.footers import nanoseconds
from headgate.connect.files.headers import headers, key
from headgate.connect.files.listing import found, ways_of
from headgate.connect.files.options import BASE, FOLLOWING, RECORDS, value_of, without
from headgate.connect.files.place import Place, literal
from headgate.connect.files.times import refuse_inside, times_inside
from headgate.errors import Error, SourceError
from headgate.spark.failures import plain_errors
from headgate.sql.text import stacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrameReader, SparkSession

#: To infer the types of text. Spark would add a column for malformed records if it happened to meet any.
_INFER: dict[str, dict[str, Any]] = {
    "csv": {"inferSchema": True},
    "json": {"inferTimestamp": True, "mode": "DROPMALFORMED"},
}
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def told(spark: SparkSession, path: str, kind: str, options: Mapping[str, Any]) -> T.StructType:
    """The columns of the files in a place."""
    with reading(path, kind):
        place = Place.of(spark, path, options)
        names = agreed(ways_of(spark, place, options), ())
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
    """The columns of a given schema, then the columns that only folders name."""
    known = {name.lower() for name in given.names}
    with reading(path, kind):
        place = Place.of(spark, path, options)
        names = agreed(ways_of(spark, place, options), known)
        _check_values(spark, kind, given, options)
        if known.issuperset(names):
            return by_folders(given, names)
        # Spark infers their types from the names of the folders.
        reader = spark.read.format(kind).schema(given).options(**without(options, FOLLOWING))
        whole = reader.load(place.pattern).schema
    return by_folders(T.StructType([*given, *(f for f in whole if f.name.lower() not in known)]), names)


@contextmanager
def reading(path: str, kind: str) -> Iterator[None]:
    """Lets every error that is raised inside name the files that cannot be read."""
    try:
        with plain_errors():
            yield
    except Error as error:
        what = "JSON lines, one object a line" if kind == "json" else kind
        raise SourceError(f"cannot read {path} as {what}: {error}") from None


def _check_values(spark: SparkSession, kind: str, given: T.StructType, options: Mapping[str, Any]) -> None:
    """Lets Spark check the values of options now. It would otherwise do so in the first batch."""
    if options and kind in ("csv", "json"):
        reader = spark.read.schema(given).options(**without(options, FOLLOWING))
        getattr(reader, kind)(spark.sparkContext.emptyRDD())


def _reader(spark: SparkSession, kind: str, options: Mapping[str, Any]) -> DataFrameReader:
    infer = without(_INFER.get(kind, {}), ["mode"] if value_of(options, RECORDS) is not None else [])
    return spark.read.format(kind).options(**infer | without(options, FOLLOWING))


def _told_by_headers(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> T.StructType:
    """The columns of CSV files. Files with the same header are read together, as Spark reads only one order."""
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
    if unknown is not None:  # Spark has taken a line of tabs, or an indented comment, for the header.
        raise SourceError(
            f"Spark does not find the header {', '.join(unknown)}: put it first, or give the columns in schema="
        )
    everywhere = frozenset.intersection(*(frozenset(map(key, top)) for top in tops.values())) if tops else frozenset()
    return T.StructType([f if key(f.name) in everywhere else optional(f) for f in schema])


def _told_by_footers(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> T.StructType:
    """The columns of Parquet files. Spark has no type for times in nanoseconds, so footers tell which columns are."""
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
    """The column as a time, if any file has it in nanoseconds.

    If the files differ, the column is a point in time: a wall-clock time can be read as one, but not the reverse.
    """
    points = [own[field.name.lower()] for own in by_file if field.name.lower() in own]
    if not points:
        return field
    a_point = any(points) or isinstance(field.dataType, T.TimestampType)
    return T.StructField(field.name, T.TimestampType() if a_point else T.TimestampNTZType())
