"""Packets as a data source of Spark, in batch and as a stream: what Spark asks for, by row numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.connect.packets.rows import PacketRows, arrow_schema


class PacketDataSource(DataSource):
    """Reads the rows of `packets`, the parameters as JSON, in so many `partitions`.

    A batch has the rows from `first` up to `last`. A stream ends before row `rows`, if that is given; it moves on
    by `rowsPerBatch` rows a batch, or else as fast as the rate of the packets says.

    Spark does not tell a Python data source which columns a query needs: the ones in the schema of the read are made.
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
        return PacketStreamReader(self._packets, schema.names, self._partitions, rows, rows_per_batch)

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
        # Without any partition Spark would make up one of its own.
        return self._rows.cut(self._partitions) or [self._rows]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RowRange)
        return self._packets.batches(partition.first, partition.last, self._columns)


class PacketStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream of rows; its offset is the number of the next row.

    If live, the stream follows the clock from when it first started, which is kept in the offset as `origin`, in
    microseconds: so it goes on after a restart as if it had never stopped.
    """

    def __init__(
        self,
        packets: PacketRows,
        columns: Sequence[str],
        partitions: int,
        rows: int | None,
        rows_per_batch: int | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._packets = packets
        self._columns = columns
        self._partitions = partitions
        self._rows = rows
        self._rows_per_batch = rows_per_batch
        self._clock = clock

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name, as below
        return {"row": 0} if self._rows_per_batch else {"row": 0, "origin": self._now()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows_per_batch) if self._rows_per_batch else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        now = self._clock()
        self._clock = lambda: now

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        ends = [self._rows] if self._rows is not None else []
        if "origin" in start:
            ends.append(int(self._packets.profile.rows_by(max(self._now() - start["origin"], 0) / 1e6)))
        if isinstance(limit, ReadMaxRows):
            ends.append(start["row"] + limit.max_rows)
        return start | {"row": max(min(ends), start["row"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[RowRange]:
        return RowRange(start["row"], end["row"]).cut(self._partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RowRange)
        return self._packets.batches(partition.first, partition.last, self._columns)

    def _now(self) -> int:
        return int(self._clock() * 1e6)


def spark_schema(columns: Sequence[str]) -> StructType:
    """The Spark types of some of the columns."""
    return from_arrow_schema(arrow_schema(columns))
