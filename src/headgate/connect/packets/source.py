"""Packets as a source of a flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.connect.offsets import register
from headgate.connect.packets.datasource import PacketDataSource
from headgate.connect.packets.packets import PacketSource
from headgate.connect.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.connect.packets.pace import Place


@dataclass(frozen=True)
class Packets(Source):
    """The generated packets of `hg.sources.packets`."""

    rows: PacketSource

    def schema(self, spark: SparkSession) -> StructType:  # noqa: ARG002
        return self.rows.schema()

    def begin(self) -> Place:
        return self.rows.pace.begin()

    def latest(self, start: Place) -> Place:
        return self.rows.pace.latest(start)

    def batch_end(self, start: Place, end: Place) -> Place:
        return self.rows.pace.batch_end(start, end)

    def read(self, spark: SparkSession, start: Place, end: Place, columns: Sequence[str]) -> DataFrame:
        return self.rows.read(spark, start["row"], end["row"], columns)

    def size(self, start: Place, end: Place) -> float:
        return float(end["row"] - start["row"])

    def set_up(self, session: SparkSession) -> None:
        register(session, PacketDataSource)
