"""Answers for people and programs: a table, CSV, JSON lines, or files."""

from __future__ import annotations

import csv
from itertools import chain, islice
from typing import IO, TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headgate.cli.engine import progress
from headgate.connect.files.bounded import FORMATS
from headgate.errors import SourceError
from headgate.plan.logical.nodes import WINDOW_START
from headgate.plan.logical.render import counted
from headgate.sql.text import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Spark's default format of times stops at milliseconds.
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_UNORDERED = ("map<", "variant", "void")
_WIDE = 100_000


def ordered(df: DataFrame) -> DataFrame:
    """The rows in order of their windows, then of the other columns from first to last."""
    names = [name for name, type_ in df.dtypes if not any(word in type_ for word in _UNORDERED)]
    names.sort(key=lambda name: name != WINDOW_START)
    return df.orderBy(*(F.col(quoted(name)) for name in names)) if names else df


def as_text(df: DataFrame) -> DataFrame:
    """The rows with each value as text, times in UTC. Python would turn times into its own time zone."""
    return df.select(*(_text(f.name, f.dataType).alias(f.name) for f in df.schema.fields))


def _text(name: str, type_: T.DataType) -> Column:
    column = F.col(quoted(name))
    if isinstance(type_, T.ArrayType | T.MapType | T.StructType | T.VariantType):
        return F.to_json(column, _JSON)
    return column.cast("string")


def print_table(df: DataFrame, limit: int, out: IO[str]) -> None:
    """The first rows as a table, and how many there are."""
    seen = Observation()
    counted_rows = df.observe(seen, F.count(F.lit(1)).alias("rows"))
    with progress("computing"):
        rows = as_text(ordered(counted_rows)).take(limit + 1)
    draw_table(df.schema, [tuple(row) for row in rows[:limit]], out)
    print(file=out)
    if len(rows) <= limit:
        print(counted(len(rows), "rows"), file=out)
    else:
        print(f"{counted(seen.get['rows'], 'rows')}, the first {limit:,} shown", file=out)


def draw_table(schema: T.StructType, rows: list[tuple[str | None, ...]], out: IO[str]) -> None:
    """A table of texts, with numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold")
    for field in schema.fields:
        right = isinstance(field.dataType, T.NumericType)
        table.add_column(Text(field.name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("NULL", "dim") if value is None else Text(value) for value in row))
    # A file or a pipe has no width that a row must fit into.
    Console(file=out, width=None if out.isatty() else _WIDE).print(table)


def print_csv(df: DataFrame, out: IO[str]) -> None:
    """All rows as CSV with a header line; NULL is an empty field."""
    rows = as_text(ordered(df)).toLocalIterator(prefetchPartitions=True)
    first = list(islice(rows, 1))  # This comes before the header, so that an answer that fails prints nothing.
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(df.columns)
    writer.writerows(chain(first, rows))


def print_json(df: DataFrame, out: IO[str]) -> None:
    """All rows as JSON, one object per line."""
    whole = F.to_json(F.struct(*(F.col(quoted(name)) for name in df.columns)), _JSON)
    for (line,) in ordered(df).select(whole).toLocalIterator(prefetchPartitions=True):
        out.write(f"{line}\n")


def output_format(path: str) -> str:
    """The output format that the suffix of a path names, or a SourceError.

    >>> output_format("results.jsonl")
    'json'
    """
    for suffix, format_ in FORMATS.items():
        if path.lower().endswith(suffix):
            return format_
    raise SourceError(f"--output {path}: end the name with {', '.join(FORMATS)} to say the format")


def write_files(df: DataFrame, path: str) -> None:
    """Writes all rows into a new directory of files."""
    match output_format(path):
        case "csv":
            as_text(df).write.csv(path, header=True)
        case "json":
            df.write.options(**_JSON).json(path)
        case _:
            df.write.parquet(path)
