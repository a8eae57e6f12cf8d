"""`hg.sinks`: where answers can go. A sink of your own is a subclass of `hg.Sink`."""

from __future__ import annotations

import os
from typing import Any

from headgate import given
from headgate.connect.console import ConsoleSink
from headgate.connect.files.options import wrong_writing
from headgate.connect.memory import MemorySink
from headgate.connect.parquet import ParquetSink
from headgate.connect.spark_format import FormatSink
from headgate.connect.spark_table import TableSink
from headgate.errors import FlowError

__all__ = ["console", "format", "memory", "parquet", "table"]


@given.checked("hg.sinks.parquet")
def parquet(path: str | os.PathLike[str]) -> ParquetSink:
    """Parquet files in a folder; `spark.read.parquet(path)` reads what has been delivered."""
    return ParquetSink(given.place("hg.sinks.parquet: path", path).rstrip("/"))


@given.checked("hg.sinks.format")
def format(name: str, /, **options: Any) -> FormatSink:  # noqa: A001 - Spark's word for it
    """Any format that Spark can write, with its options; `partitionBy` names the columns that folders are made of.

    >>> format("parquet", path="out", partitionby="k", compresion="zstd")
    Traceback (most recent call last):
    headgate.errors.FlowError: hg.sinks.format('parquet'): unknown option compresion: did you mean compression?
    """
    given.text("hg.sinks.format: name", name, "the name of a format, such as 'delta'")
    options = {option: value for option, value in options.items() if value is not None}
    for option in (o for o in options if o.lower() == "path"):
        options[option] = given.place(f"hg.sinks.format({name!r}): {option}", options[option])
    wrong = wrong_writing(name, options, others=("path",))
    if wrong is not None:
        raise FlowError(f"hg.sinks.format({name!r}): {wrong}")
    return FormatSink(name, options)


@given.checked("hg.sinks.table")
def table(name: str) -> TableSink:
    """A table of Spark's catalog."""
    return TableSink(given.text("hg.sinks.table: name", name, "the name of a table, such as 'talkers'"))


@given.checked("hg.sinks.memory")
def memory() -> MemorySink:
    """Kept by the flow, for tests and notebooks: `run.results(query)`."""
    return MemorySink()


@given.checked("hg.sinks.console")
def console(rows: int = 20) -> ConsoleSink:
    """Printed to the terminal."""
    return ConsoleSink(given.whole("hg.sinks.console: rows", rows, "a whole number, one or more", least=1))
