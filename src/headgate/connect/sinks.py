"""Where answers go. A sink gets the answers of a query batch by batch; after a crash, perhaps the same batch again."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyspark.errors import AnalysisException

from headgate import given
from headgate.connect.files.options import value_of, without, wrong_writing
from headgate.errors import Error, FlowError
from headgate.plan.logical.catalog import did_you_mean
from headgate.protocol.names import batch_name
from headgate.spark.failures import plain_errors
from headgate.spark.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION_BY = "partitionBy"


class Sink(Protocol):
    """Takes answers. Delivered again under the same name and batch, they replace what was delivered before."""

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        """Takes the answers of one batch."""

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        """All that was delivered so far, where the sink can be read."""


@dataclass(frozen=True)
class ParquetSink:
    """Parquet files in a folder, which any tool can read.

    The files of a batch are written aside and moved in one by one under names that the batch gives them, so a batch
    that is delivered again replaces itself.
    """

    path: str

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        spark = answers.sparkSession
        folder = Folder(spark, self.path)
        staging = folder / "_staging" / f"{name}-{batch_name(batch)}"
        answers.write.mode("overwrite").parquet(staging.path)
        own = f"{name}-{batch_name(batch)}-"
        files = [f.name for f in staging.files()]
        for i, file in enumerate(files):
            staging.move(file, folder, f"{own}{i:05d}.parquet")
        for left in folder.files():
            if left.name.startswith(own) and left.name >= f"{own}{len(files):05d}":
                folder.delete(left.name)
        staging.delete()

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        files = [f"{self.path}/{f.name}" for f in Folder(spark, self.path).files() if f.name.startswith(f"{name}-")]
        return spark.read.parquet(*files) if files else None


@dataclass(frozen=True)
class FormatSink:
    """Any format that Spark can write. Whether a batch that comes again is written twice is up to the format."""

    format: str
    options: dict[str, Any] = field(default_factory=dict)

    def check(self, spark: SparkSession, name: str) -> None:
        """Raises an error if Spark has no such format, which it would only say once there are answers."""
        state, jvm = spark._jsparkSession.sessionState(), cast("Any", spark._jvm)
        if not state.dataSourceManager().dataSourceExists(self.format):  # One that is written in Python.
            try:
                with plain_errors():
                    jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(
                        self.format, state.conf()
                    )
            except Error as error:
                raise FlowError(f"the {self.format} sink of {name}: {error}") from None

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        options = {"txnAppId": name, "txnVersion": batch, **without(self.options, [_PARTITION_BY])}
        if missing := [column for column in self._partition_by if column.lower() not in _lower(answers.columns)]:
            hint = did_you_mean(missing[0], answers.columns)
            raise FlowError(f"the {self.format} sink of {name}: partitionBy has no column {missing[0]}: {hint}")
        writer = answers.write.format(self.format).mode("append").options(**options)
        (writer.partitionBy(self._partition_by) if self._partition_by else writer).save()

    @property
    def _partition_by(self) -> list[str]:
        """The columns that tell which folder an answer goes to."""
        columns = value_of(self.options, _PARTITION_BY, ())
        return [column.strip() for column in columns.split(",")] if isinstance(columns, str) else list(columns)

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        try:
            return spark.read.format(self.format).options(**without(self.options, [_PARTITION_BY])).load()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":  # It is made by the first answers.
                return None
            raise


@dataclass(frozen=True)
class TableSink:
    """A table of Spark's catalog."""

    table: str

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        answers.write.mode("append").saveAsTable(self.table)

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        return spark.table(self.table) if spark.catalog.tableExists(self.table) else None


@dataclass(frozen=True)
class CallSink:
    """A function that takes a DataFrame and the number of the batch."""

    function: Callable[[DataFrame, int], object]

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        self.function(answers, batch)

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        return None


@dataclass(frozen=True)
class MemorySink:
    """Nowhere else: the flow keeps the answers, for `run.results`."""

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        pass

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        return None


@dataclass(frozen=True)
class ConsoleSink:
    """The terminal, for a first look."""

    rows: int = 20

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        print(f"{name}, batch {batch}")
        answers.show(self.rows, truncate=False)

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        return None


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}


@given.checked("hg.sinks.parquet")
def parquet(path: str | os.PathLike[str]) -> ParquetSink:
    """Parquet files in a folder; `spark.read.parquet(path)` reads what has been delivered."""
    return ParquetSink(given.place("hg.sinks.parquet: path", path).rstrip("/"))


@given.checked("hg.sinks.format")
def format(name: str, /, **options: Any) -> FormatSink:  # noqa: A001 - the word that Spark has for it
    """Any format that Spark can write, with its options; `partitionBy` names columns that folders are made of.

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


def as_sink(sink: object) -> Sink:
    """A sink as users give it: one of this module, or a function of a DataFrame and a batch number."""
    if not isinstance(sink, type):
        if all(callable(getattr(sink, part, None)) for part in ("deliver", "delivered")):
            return sink  # type: ignore[return-value]
        if callable(sink) and _takes_answers(sink):
            return CallSink(sink)
    raise FlowError(
        f"{given.shown(sink)} is not a sink: give hg.sinks.parquet(path) or another of hg.sinks, or a function"
        " (df, batch)"
    )


def _takes_answers(function: Callable[..., object]) -> bool:
    """Whether a function can be called with a DataFrame and the number of a batch."""
    try:
        inspect.signature(function).bind(None, 0)
    except TypeError:
        return False
    except ValueError:  # A function in C need not say what it takes.
        pass
    return True
