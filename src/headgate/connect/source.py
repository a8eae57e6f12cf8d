"""The door for sources: what an author says of a stream, by offsets. Headgate does the rest."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias, final

from headgate.connect.input import Input, nothing
from headgate.connect.offsets import OffsetDataSource, find_offsets, register
from headgate.connect.scan import Piece, Read
from headgate.errors import SourceError
from headgate.incremental.reduce import MALFORMED
from headgate.sql.text import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from headgate.connect.input import Need, Share

#: A place in a stream: anything that JSON can hold, such as a number, or a number for each partition.
Offset: TypeAlias = Any


class Source(Input):
    """A stream that can be read from one offset to another. Subclass it and write the four abstract methods.

    Spark logs the offsets of a micro-batch before the batch is read. After a crash it asks for the same offsets again.
    So every tuple counts exactly once if `read` gives the same tuples whenever it is given the same offsets.

    `begin`, `latest` and `batch_end` run in a Python process beside Spark, on a copy of the source that lives as long
    as the flow runs: they may open connections and keep them. All other methods run in the process of the flow.
    """

    @abstractmethod
    def schema(self, spark: SparkSession) -> StructType | str:
        """The columns of the stream, such as "ts TIMESTAMP, user STRING".

        A source of records that may be malformed adds `hg.sources.MALFORMED`, a column of STRING. It holds the record
        where a tuple could not be made of one, and NULL for all other tuples.
        """

    @abstractmethod
    def begin(self) -> Offset:
        """Where the stream begins; asked once, before the first batch of a new checkpoint."""

    @abstractmethod
    def latest(self, start: Offset) -> Offset:
        """How far the stream goes now: the offset after the last tuple, or `start` if nothing has come since."""

    @abstractmethod
    def read(self, spark: SparkSession, start: Offset, end: Offset, columns: Sequence[str]) -> DataFrame:
        """The tuples from `start` up to, not including, `end`, with at least these columns.

        The same offsets give the same tuples in the same order. Queries that count rows take them in this order.
        """

    def batch_end(self, start: Offset, end: Offset) -> Offset:  # noqa: ARG002
        """Where a batch ends that begins at `start`, of a stream that goes to `end` now; `end`, unless you say less."""
        return end

    def size(self, start: Offset, end: Offset) -> float | None:  # noqa: ARG002
        """How many tuples, or bytes, there are between two offsets, if that is known without reading them.

        With it, Headgate predicts better how long a batch will take.
        """
        return None

    def set_up(self, session: SparkSession) -> None:
        """Prepares the session that Spark runs the flow in: registers data sources, or sets options.

        This session is a copy of the one that the flow was made with.
        """

    @final
    def prepare(self, session: SparkSession) -> None:
        register(session, OffsetDataSource)
        self.set_up(session)

    @final
    def find(self, need: Need, reader: DataStreamReader) -> DataFrame:
        return nothing(find_offsets(self, need.spark, reader))

    @final
    def take(self, need: Need, share: Share) -> Read:
        leaf = share.leaf
        if leaf is None or leaf.getClass().getSimpleName() == "LocalRelation":
            return Read([])
        start, end = (json.loads(offset.get().json()) for offset in (leaf.startOffset(), leaf.endOffset()))
        if start == end:
            return Read([])
        marked = [MALFORMED] if MALFORMED in need.schema.names else []
        columns = list(dict.fromkeys([*need.columns, *marked]))
        rows = self._as_declared(self.read(need.spark, start, end, columns), need.schema, columns)
        return Read([Piece(rows)], self.size(start, end))

    def _as_declared(self, rows: DataFrame, schema: StructType, columns: Sequence[str]) -> DataFrame:
        """The rows with these columns; an error if they are not what the schema says."""
        found = {field.name: field.dataType.simpleString() for field in rows.schema}
        for name in columns:
            declared = schema[name].dataType.simpleString()
            if found.get(name) != declared:
                what = f"gives {name} as {found[name]}" if name in found else f"gives no column {name}"
                raise SourceError(f"the source {type(self).__name__} {what}, and its schema says {name} {declared}")
        return rows if list(found) == list(columns) else rows.select(*map(quoted, columns))
