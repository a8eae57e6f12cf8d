"""Sources that go by offsets, as Spark finds them: a data source in Python that has offsets and no rows."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from headgate.errors import SourceError
from headgate.spark.pickled import pickled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

_SOURCE = "source"
#: Spark wants a schema, and reads no column of it.
_SCHEMA = "nothing BOOLEAN"


class Offsets(Protocol):
    """Says how far a stream goes, in the words of `hg.Source`."""

    def begin(self) -> Any: ...

    def latest(self, start: Any) -> Any: ...

    def batch_end(self, start: Any, end: Any) -> Any: ...


def find_offsets(source: Offsets, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
    """The streaming DataFrame that asks a source for its offsets."""
    register(spark, OffsetDataSource)
    return reader.format(OffsetDataSource.name()).schema(_SCHEMA).option(_SOURCE, _packed(source)).load()


class OffsetDataSource(DataSource):
    """Asks a pickled source for its offsets, and reads nothing."""

    @classmethod
    def name(cls) -> str:
        return "headgate_source"

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: StructType) -> OffsetReader:  # noqa: ARG002, N802 - Spark's name
        return OffsetReader(_Packed(self.options[_SOURCE]))


class _Packed:
    """A pickled source, unpacked when it is first asked. An error in it then reaches the user with its own words."""

    def __init__(self, packed: str) -> None:
        self._packed = packed

    @cached_property
    def _source(self) -> Offsets:
        source: Offsets = pickle.loads(base64.b64decode(self._packed))
        return source

    def begin(self) -> Any:
        return self._asked("begin")

    def latest(self, start: Any) -> Any:
        return self._asked("latest", start)

    def batch_end(self, start: Any, end: Any) -> Any:
        return self._asked("batch_end", start, end)

    def _asked(self, method: str, *offsets: Any) -> Any:
        try:
            return getattr(self._source, method)(*offsets)
        except Exception as error:
            name = type(self._source).__name__
            raise SourceError(f"the source {name} failed in {method}(): {type(error).__name__}: {error}") from error


class OffsetReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tells Spark the offsets of a source."""

    def __init__(self, source: Offsets) -> None:
        self._source = source
        self._available_now = False
        self._ends: list[Any] = []

    def initialOffset(self) -> Any:  # noqa: N802 - Spark's name, as below
        return self._source.begin()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available_now = True

    def latestOffset(self, start: Any, limit: ReadLimit) -> Any:  # noqa: ARG002, N802
        end = self._ends[0] if self._ends else self._source.latest(start)
        if self._available_now:  # What comes after the first look has to wait for another run.
            self._ends = [end]
        # Spark compares offsets as text: the same one has to stay the same text.
        return start if start == end else self._source.batch_end(start, end)

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:  # noqa: ARG002
        return []  # Spark has nothing to read: the flow does it.

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        return iter(())


def register(spark: SparkSession, data_source: type[DataSource]) -> None:
    """Makes a data source known to a session."""
    # Spark registers it in the active session, which may be another one.
    jvm: Any = spark.sparkContext._jvm
    before = jvm.SparkSession.getActiveSession()
    jvm.SparkSession.setActiveSession(spark._jsparkSession)
    try:
        spark.dataSource.register(data_source)
    finally:
        if before.isDefined():
            jvm.SparkSession.setActiveSession(before.get())
        else:
            jvm.SparkSession.clearActiveSession()


def _packed(source: Offsets) -> str:
    """The source as text."""
    try:
        return base64.b64encode(pickled(source)).decode()
    except Exception as error:
        name = type(source).__name__
        raise SourceError(
            f"the source {name} cannot be sent to Spark's Python process ({error}): keep plain values in it, and open"
            " connections in latest()"
        ) from None
