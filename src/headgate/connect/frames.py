"""DataFrames that callers give as streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headgate.connect.files.origin import PLACE, has_place, with_place
from headgate.connect.input import Input
from headgate.connect.scan import Piece, Read
from headgate.sql.text import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from headgate.connect.input import Need, Share


@dataclass(frozen=True)
class BoundedFrame(Input):
    """A bounded DataFrame: read once, as a batch of its own."""

    df: DataFrame
    bounded: ClassVar[bool] = True

    def schema(self, spark: SparkSession) -> StructType:  # noqa: ARG002
        return self.df.schema

    def find(self, need: Need, reader: DataStreamReader) -> DataFrame:
        raise NotImplementedError("a bounded DataFrame does not stream")

    def take(self, need: Need, share: Share) -> Read:  # noqa: ARG002
        return Read([Piece(_columns(self.df, need.columns))])

    def describe(self) -> str:
        return "a DataFrame"


@dataclass(frozen=True)
class StreamingFrame(Input):
    """A streaming DataFrame: Spark passes its rows on, with only the columns that are needed."""

    df: DataFrame
    passed: ClassVar[bool] = True

    def schema(self, spark: SparkSession) -> StructType:  # noqa: ARG002
        return self.df.schema

    def find(self, need: Need, reader: DataStreamReader) -> DataFrame:  # noqa: ARG002
        if need.ordered and self.tells_order():
            return _columns(with_place(self.df), [*need.columns, *PLACE])
        return _columns(self.df, need.columns)

    def take(self, need: Need, share: Share) -> Read:
        rows = share.rows
        assert rows is not None
        if PLACE[0] not in rows.columns:
            return Read([Piece(rows)])
        # A query may have been dropped that had to know the order.
        return Read([Piece(rows)], place=PLACE) if need.ordered else Read([Piece(rows.drop(*PLACE))])

    def tells_order(self) -> bool:
        return has_place(self.df)

    def describe(self) -> str:
        return "a streaming DataFrame"


def _columns(df: DataFrame, names: Sequence[str]) -> DataFrame:
    return df.select(*map(quoted, names))
