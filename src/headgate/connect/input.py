"""The lower door for streams: found by Spark, read by Headgate. Most sources are easier to write as `hg.Source`.

Spark keeps the offsets of every stream in its log, so it must find the data: `find` gives it a streaming DataFrame. The
rows that Spark would pass on with that DataFrame are made already: no column can be pruned, no filter pushed down. So
`take` reads the data of a micro-batch once more, as an ordinary batch DataFrame with only the columns that are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Sequence

    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from headgate.connect.scan import Read


@dataclass(frozen=True)
class Need:
    """What a flow needs of a stream."""

    spark: SparkSession
    schema: StructType
    columns: Sequence[str]
    ordered: bool = False
    """Whether the flow has to know in which order the tuples came."""


@dataclass(frozen=True)
class Share:
    """What a micro-batch holds of a stream."""

    leaf: JavaObject | None = None
    """The leaf of the batch's plan that stands for the stream, if the stream is not `passed`."""
    rows: DataFrame | None = None
    """The rows that Spark passed on, if the stream is `passed`."""


class Input(ABC):
    """A stream as a flow takes it."""

    bounded: ClassVar[bool] = False
    """Whether the stream is over once it has been read. Spark does not have to find such a stream."""
    passed: ClassVar[bool] = False
    """Whether `take` uses the rows that Spark passes on, and not the leaf of the plan."""

    @property
    def columnar(self) -> bool:
        """Whether reading a few columns is cheap, so that a batch may be read several times."""
        return False

    @abstractmethod
    def schema(self, spark: SparkSession) -> StructType | str:
        """The columns of the stream."""

    @abstractmethod
    def find(self, need: Need, reader: DataStreamReader) -> DataFrame:
        """The streaming DataFrame that finds the data; Spark passes on the rows and columns that it has."""

    @abstractmethod
    def take(self, need: Need, share: Share) -> Read:
        """The tuples of a micro-batch with the columns that are needed."""

    def tells_order(self) -> bool:
        """Whether the rows that Spark passes on can say in which order they came."""
        return False

    def prepare(self, session: SparkSession) -> None:  # noqa: B027
        """Prepares the session that Spark runs the flow in, which is a copy of the caller's."""

    def gone(self, spark: SparkSession) -> str | None:  # noqa: ARG002
        """The place that the data came from, if it is gone. Otherwise Spark would wait there for ever."""
        return None

    def describe(self) -> str:
        """What `explain` says the stream is read from, such as "parquet"."""
        return type(self).__name__.removesuffix("Source").lower()


def nothing(df: DataFrame) -> DataFrame:
    """The DataFrame without rows and columns: Spark finds its data, and reads none of it."""
    return df.where(F.lit(False)).select()
