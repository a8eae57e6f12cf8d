"""Times in nanoseconds, for which Spark has no type: read as numbers and converted, or refused inside other columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from pyspark.sql import types as T

from headgate.errors import SourceError
from headgate.sql.text import quoted

TIMES = (T.TimestampType, T.TimestampNTZType)


def times_inside(schema: T.StructType, kinds: tuple[type[T.DataType], ...]) -> re.Pattern[str] | None:
    """The columns, in lower case, of these types that lie inside a struct, array or map; None if there are none.

    The pattern matches the paths in a Parquet file. Each writer has its own names for the levels of lists and maps.

    >>> events = T.ArrayType(T.StructType().add("t", T.TimestampType()))
    >>> times_inside(T.StructType().add("e", events), TIMES).fullmatch("e.list.element.t")[0]
    'e.list.element.t'
    """
    nested = (f for f in schema if isinstance(f.dataType, T.StructType | T.ArrayType | T.MapType))
    paths = [path for f in nested for path in _paths(re.escape(f.name.lower()), f.dataType, kinds)]
    return re.compile("|".join(paths)) if paths else None


def _paths(path: str, type_: T.DataType, kinds: tuple[type[T.DataType], ...]) -> Iterator[str]:
    """Patterns for the paths to the parts of a column that have one of these types."""
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
    """Raises a SourceError for files with times in nanoseconds inside a column: Spark would read them as numbers."""
    if inside is None:
        return
    for path, columns in nanos.items():
        found = [column for column in sorted(columns) if inside.fullmatch(column)]
        if found:
            raise SourceError(
                f"{path} has times in nanoseconds inside a struct, array or map: {', '.join(found)}; write it with"
                " microseconds, or give a schema= without that column or with BIGINT for these times"
            )


def from_nanoseconds(name: str, type_: T.DataType) -> str:
    """The time in a column that holds a number of nanoseconds, to the microsecond, as SQL."""
    micros = f"{quoted(name)} div 1000L - if({quoted(name)} % 1000L < 0L, 1L, 0L)"
    if isinstance(type_, T.TimestampNTZType):
        return f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ'1970-01-01 00:00:00')"
    return f"timestamp_micros({micros})"
