"""The columns of files: those that a schema gives, and those that a file may lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from headgate.connect.files.options import RECORDS, is_on, value_of
from headgate.errors import Error, SourceError
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Marks a column that a file may lack, as when only some headers have it.
OPTIONAL = "_hg_optional"
#: Marks a column that folders name, with its place among such columns.
BY_FOLDERS = "_hg_by_folders"


def columns_of(schema: T.StructType | str) -> T.StructType:
    """The columns of a schema, which may be given as text."""
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
    """Whether columns go by the names in a header. With `enforceSchema` they go by their position."""
    return format_ == "csv" and is_on(options, "header") and value_of(options, "enforceSchema") is None


def record_column(spark: SparkSession, options: Mapping[str, Any]) -> str:
    """The name of the column for records that do not fit, if the schema has such a column."""
    return str(value_of(options, RECORDS) or spark.conf.get(f"spark.sql.{RECORDS}"))


def optional(field: T.StructField) -> T.StructField:
    """The column, marked as one that a file may lack."""
    return T.StructField(field.name, field.dataType, metadata={OPTIONAL: True})


def by_folders(schema: T.StructType, names: Sequence[str]) -> T.StructType:
    """The schema with these columns, in lower case, marked as named by folders.

    A file that lies in no such folder may lack them.
    """
    places = {name: i for i, name in enumerate(names)}
    return T.StructType([_by_folder(f, places[low]) if (low := f.name.lower()) in places else f for f in schema])


def _by_folder(field: T.StructField, place: int) -> T.StructField:
    return T.StructField(field.name, field.dataType, metadata={**field.metadata, BY_FOLDERS: place})
