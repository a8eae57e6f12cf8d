"""Where answers go. A sink gets the answers of a query batch by batch; after a crash, perhaps the same batch again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.errors import AnalysisException

from headgate.errors import FlowError
from headgate.runtime.folder import Folder
from headgate.runtime.manifest import batch_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        options = {"txnAppId": name, "txnVersion": batch, **self.options}
        answers.write.format(self.format).mode("append").options(**options).save()

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        try:
            return spark.read.format(self.format).options(**self.options).load()
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


def parquet(path: str) -> ParquetSink:
    """Parquet files in a folder; `spark.read.parquet(path)` reads what has been delivered."""
    return ParquetSink(str(path).rstrip("/"))


def format(name: str, **options: Any) -> FormatSink:  # noqa: A001 - the word that Spark has for it
    """Any format that Spark can write, with its options."""
    return FormatSink(name, options)


def table(name: str) -> TableSink:
    """A table of Spark's catalog."""
    return TableSink(name)


def memory() -> MemorySink:
    """Kept by the flow, for tests and notebooks: `run.results(query)`."""
    return MemorySink()


def console(rows: int = 20) -> ConsoleSink:
    """Printed to the terminal."""
    return ConsoleSink(rows)


def as_sink(sink: object) -> Sink:
    """A sink as users give it: one of this module, or a function of a DataFrame and a batch number."""
    if hasattr(sink, "deliver"):
        return sink  # type: ignore[return-value]
    if callable(sink):
        return CallSink(sink)
    raise FlowError(
        f"{sink!r} is not a sink: give hg.sinks.parquet(path) or another of hg.sinks, or a function (df, batch)"
    )
