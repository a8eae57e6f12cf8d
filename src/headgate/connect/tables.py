"""The tables of a flow that tuples are looked up in: read once, held in memory, and read afresh when files change."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from headgate.connect.files.bounded import File, found
from headgate.connect.files.reading import Mode, Reader
from headgate.connect.sources import Files
from headgate.errors import Error, FlowError
from headgate.given import shown
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)


@dataclass
class _Held:
    """A table as it was read, and the files that it was read from."""

    rows: DataFrame
    files: Sequence[File]


@dataclass
class Tables:
    """The tables of a flow by name."""

    spark: SparkSession
    sources: dict[str, Files | DataFrame] = field(default_factory=dict)
    schemas: dict[str, StructType] = field(default_factory=dict)
    _held: dict[str, _Held] = field(default_factory=dict)
    _reads: int = 0

    def add(self, name: str, source: Files | DataFrame) -> None:
        """Adds a table: files, or a bounded DataFrame, which is read anew for every batch."""
        if isinstance(source, DataFrame):
            if source.isStreaming:
                raise FlowError(f"table {name}: it streams: add it with flow.stream(...)")
            self.schemas[name] = source.schema
        elif isinstance(source, Files):
            self.schemas[name] = source.columns(self.spark)
        else:
            raise FlowError(f"table {name}: {shown(source)} is neither a DataFrame nor hg.sources.files(...)")
        self.sources[name] = source

    def now(self, names: Collection[str]) -> Mapping[str, DataFrame]:
        """These tables as they are now."""
        return {name: self._now(name) for name in names}

    def _now(self, name: str) -> DataFrame:
        source = self.sources[name]
        if isinstance(source, DataFrame):
            return source
        known = self._held.get(name)
        try:
            with plain_errors():
                reader = source.reader(self.spark, self.schemas[name], Mode.FAILFAST)
                files = found(self.spark, reader.place, source.options)
                if known is not None and known.files == files:
                    return known.rows
                rows = self._read(reader, files)
                _hold(rows)
        except Error as error:
            # Files are often replaced one by one: what was there before serves until the new ones can be read.
            if known is None:
                raise type(error)(f"table {name}: {error}") from None
            _log.warning("table %s cannot be read anew, and stays as it was: %s", name, error)
            return known.rows
        if known is not None:
            known.rows.unpersist()
        self._held[name] = _Held(rows, files)
        return rows

    def _read(self, reader: Reader, files: Sequence[File]) -> DataFrame:
        """The rows of a table. A record that does not fit is told at once, while the table as it was is still there."""
        # To Spark, two reads of one path are the same, and what it holds of the one serves the other: the number tells
        # them apart.
        self._reads += 1
        reader = replace(reader, options={**reader.options, "read": self._reads})
        return reader.rows([file.path for file in files], reader.schema.names, whole=True)


def _hold(rows: DataFrame) -> None:
    try:
        rows.persist().count()
    except BaseException:
        rows.unpersist()
        raise
