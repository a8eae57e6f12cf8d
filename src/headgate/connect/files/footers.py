"""What the footers of Parquet files say about their tuples, without reading the tuples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The scheme of paths on this machine. Spark does not escape what follows it.
_HERE = "file:"
#: In the footers of Spark versions that had another calendar for early times.
_OLD_CALENDAR = b"org.apache.spark.legacyDateTime"
_WHOLE_NUMBERS = ("INT32", "INT64")
_NANOS = "TIMESTAMP(NANOS,"


@dataclass(frozen=True)
class Looked:
    """How many tuples there are, how many of them have no place, and the lowest and highest place of the others."""

    rows: int
    bad: int
    lowest: int | None
    highest: int | None


def looked_at(paths: Iterable[str], attribute: str) -> Looked | None:
    """What the footers of files say, with an attribute as the place of a tuple; None if some footer does not say it.

    Only files on this machine are opened. Elsewhere, Spark may have access that this process does not have.
    """
    parts: list[Looked] = []
    try:
        for path in paths:
            found = _in_file(path, attribute)
            if not found:
                return None
            parts += found
    except (OSError, pa.ArrowException):
        return None  # Spark will say that it cannot be read.
    return Looked(
        sum(part.rows for part in parts),
        sum(part.bad for part in parts),
        min((part.lowest for part in parts if part.lowest is not None), default=None),
        max((part.highest for part in parts if part.highest is not None), default=None),
    )


def _in_file(path: str, attribute: str) -> list[Looked]:
    """What the footer of a file says about each row group; nothing if it does not say everything."""
    if not path.startswith(_HERE):
        return []
    footer = pq.read_metadata(path.removeprefix(_HERE))
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    if attribute not in names or _OLD_CALENDAR in (footer.metadata or {}):
        return []
    column = names.index(attribute)
    if not _is_placed(footer.schema.column(column)):
        return []
    found = []
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        told = group.column(column).statistics
        if told is None or not told.has_null_count or not (told.has_min_max or told.null_count == group.num_rows):
            return []
        ends = (told.min_raw, told.max_raw) if told.has_min_max else (None, None)
        found.append(Looked(group.num_rows, told.null_count, *ends))
    return found


def _is_placed(column: pq.ColumnSchema) -> bool:
    """Whether the numbers in the file are places of tuples: microseconds, or plain whole numbers."""
    kind = json.loads(column.logical_type.to_json())
    match kind["Type"]:
        case "Timestamp":  # With a zone or without: a wall-clock time has the place of the same time in UTC.
            return bool(kind["timeUnit"] == "microseconds")
        case "Int":
            return bool(kind["isSigned"])
        case "None":
            return column.physical_type in _WHOLE_NUMBERS
    return False


def nanoseconds(spark: SparkSession, paths: Sequence[str]) -> dict[str, dict[str, bool]]:
    """The columns of each file that have times in nanoseconds, in lower case, with dots for nested ones.

    True means points in time, False wall-clock times. Looking into files on other machines takes long, so the first of
    those speaks for all. Files rarely differ, and if they do, Spark refuses the others.
    """
    here = [path.startswith(_HERE) for path in paths]
    first = _nanos_elsewhere(spark, paths[here.index(False)]) if False in here else {}
    return {path: _nanos_here(path) if own else first for path, own in zip(paths, here, strict=True)}


def _nanos_here(path: str) -> dict[str, bool]:
    try:
        schema = pq.read_metadata(path.removeprefix(_HERE)).schema
    except (OSError, pa.ArrowException):
        return {}  # Spark will say that it cannot be read.
    found = {}
    for column in (schema.column(i) for i in range(len(schema))):
        kind = json.loads(column.logical_type.to_json())
        if column.physical_type == "INT64" and kind["Type"] == "Timestamp" and kind["timeUnit"] == "nanoseconds":
            found[column.path.lower()] = bool(kind["isAdjustedToUTC"])
    return found


def _nanos_elsewhere(spark: SparkSession, path: str) -> dict[str, bool]:
    jvm: Any = spark._jvm
    try:
        file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(
            jvm.org.apache.hadoop.fs.Path(path), spark._jsparkSession.sessionState().newHadoopConf()
        )
        reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
        try:
            columns = list(reader.getFooter().getFileMetaData().getSchema().getColumns())
        finally:
            reader.close()
    except Py4JJavaError:
        return {}
    kinds = {".".join(c.getPath()).lower(): str(c.getPrimitiveType().getLogicalTypeAnnotation()) for c in columns}
    return {name: f"{_NANOS}true" in kind for name, kind in kinds.items() if _NANOS in kind}
