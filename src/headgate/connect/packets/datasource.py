"""Packets as a data source of Spark, in batch and as a stream, by row numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headgate.connect.offsets import OffsetReader
from headgate.connect.packets.chunk import arrow_schema
from headgate.connect.packets.pace import Pace, Place
from headgate.connect.packets.rows import PacketRows


class PacketDataSource(DataSource):
    """Reads rows of `packets`, the parameters as JSON, in as many partitions as `partitions` says.

    A batch has the rows from `first` up to, not including, `last`. A stream ends before row `rows`, if that is given.
    Its batches have `rowsPerBatch` rows, or as many as the rate of the packets says.

    Spark does not tell a Python data source which columns a query needs. So it makes the columns that the schema of
    the read has.
    """

    @classmethod
    def name(cls) -> str:
        return "headgate_packets"

    def schema(self) -> StructType:
        return spark_schema(self._packets.columns)

    def reader(self, schema: StructType) -> PacketReader:
        rows = RowRange(int(self.options["first"]), int(self.options["last"]))
        return PacketReader(self._packets, schema.names, rows, self._partitions)

    def streamReader(self, schema: StructType) -> PacketStreamReader:  # noqa: N802 - Spark's name
        rows, rows_per_batch = (
            int(self.options[name]) if name in self.options else None for name in ("rows", "rowsPerBatch")
        )
        return PacketStreamReader(Pace(self._packets, rows, rows_per_batch), schema.names, self._partitions)

    @property
    def _packets(self) -> PacketRows:
        return PacketRows.from_json(self.options["packets"])

    @property
    def _partitions(self) -> int:
        return int(self.options.get("partitions", "1"))


@dataclass
class RowRange(InputPartition):
    """The rows from `first` up to, not including, `last`."""

    first: int
    last: int

    def cut(self, parts: int) -> list[RowRange]:
        """As many ranges of about the same length, in order, none of them empty.

        >>> RowRange(0, 10).cut(3)
        [RowRange(first=0, last=3), RowRange(first=3, last=6), RowRange(first=6, last=10)]
        """
        rows = self.last - self.first
        parts = min(parts, rows)
        edges = [self.first + rows * part // parts for part in range(parts + 1)] if parts else []
        return [RowRange(*pair) for pair in pairwise(edges)]


class PacketReader(DataSourceReader):
    """Reads one range of rows."""

    def __init__(self, packets: PacketRows, columns: Sequence[str], rows: RowRange, partitions: int) -> None:
        self._packets = packets
        self._columns = columns
        self._rows = rows
        self._partitions = partitions

    def partitions(self) -> list[RowRange]:
        # If there were no partition, Spark would make up one of its own.
        return self._rows.cut(self._partitions) or [self._rows]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RowRange)
        return self._packets.batches(partition.first, partition.last, self._columns)


class PacketStreamReader(OffsetReader):
    """Reads a stream of rows; its offsets are those of a Pace."""

    def __init__(self, pace: Pace, columns: Sequence[str], partitions: int) -> None:
        super().__init__(pace)
        self._packets = pace.packets
        self._columns = columns
        self._partitions = partitions

    def partitions(self, start: Place, end: Place) -> list[RowRange]:
        return RowRange(start["row"], end["row"]).cut(self._partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RowRange)
        return self._packets.batches(partition.first, partition.last, self._columns)


def spark_schema(columns: Sequence[str]) -> StructType:
    """The Spark types of some of the columns."""
    return from_arrow_schema(arrow_schema(columns))
