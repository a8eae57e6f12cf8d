"""What users give, made to fit the doors: a DataFrame becomes an input, a function becomes a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from headgate import given
from headgate.connect.call import CallSink, takes_answers
from headgate.connect.frames import BoundedFrame, StreamingFrame
from headgate.connect.input import Input
from headgate.connect.lookup import Lookup, LookupFrame
from headgate.connect.sink import Sink
from headgate.errors import FlowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def as_input(name: str, source: object) -> Input:
    """A stream as users give it: a DataFrame, one of `hg.sources`, or an `hg.Source` of their own."""
    if isinstance(source, DataFrame):
        return StreamingFrame(source) if source.isStreaming else BoundedFrame(source)
    if isinstance(source, Input):
        return source
    raise FlowError(f"stream {name}: {given.shown(source)} is neither a DataFrame nor one of hg.sources")


def as_lookup(name: str, source: object) -> Lookup:
    """A table as users give it: a bounded DataFrame, or files."""
    if isinstance(source, DataFrame):
        if source.isStreaming:
            raise FlowError(f"table {name}: it streams: add it with flow.stream(...)")
        return LookupFrame(source)
    if not isinstance(source, type) and all(hasattr(source, part) for part in ("columns", "version", "rows")):
        return source  # type: ignore[return-value]
    raise FlowError(f"table {name}: {given.shown(source)} is neither a DataFrame nor hg.sources.files(...)")


def as_sink(sink: object) -> Sink:
    """A sink as users give it: an `hg.Sink`, an object with its methods, or a function (df, batch)."""
    if isinstance(sink, Sink):
        return sink
    if not isinstance(sink, type):
        if callable(getattr(sink, "deliver", None)):
            return _ReadableLike(sink) if callable(getattr(sink, "delivered", None)) else _Like(sink)
        if callable(sink) and takes_answers(sink):
            return CallSink(sink)
    raise FlowError(
        f"{given.shown(sink)} is not a sink: give hg.sinks.parquet(path) or another of hg.sinks, or a function"
        " (df, batch)"
    )


class _Like(Sink):
    """An object that has the methods of a sink, or some of them, and is none by its class."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        self._sink.deliver(answers, name, batch)

    def check(self, spark: SparkSession, name: str) -> None:
        if (check := getattr(self._sink, "check", None)) is not None:
            check(spark, name)

    def describe(self) -> str:
        if (describe := getattr(self._sink, "describe", None)) is not None:
            return str(describe())
        return type(self._sink).__name__.removesuffix("Sink").lower()


class _ReadableLike(_Like):
    """One that can be read."""

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        found: DataFrame | None = self._sink.delivered(spark, name)
        return found
