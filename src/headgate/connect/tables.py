"""The tables of a flow that tuples are looked up in: held in memory, and read again when they have changed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.connect.adapt import as_lookup
from headgate.errors import Error
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.connect.lookup import Lookup

_log = logging.getLogger(__name__)


@dataclass
class _Held:
    """A version of a table, and its rows."""

    rows: DataFrame
    version: Any


@dataclass
class Tables:
    """The tables of a flow by name."""

    spark: SparkSession
    sources: dict[str, Lookup] = field(default_factory=dict)
    schemas: dict[str, StructType] = field(default_factory=dict)
    _held: dict[str, _Held] = field(default_factory=dict)
    _reads: int = 0

    def add(self, name: str, source: object) -> None:
        """Adds a table: files, or a bounded DataFrame, which is read for every batch."""
        table = as_lookup(name, source)
        self.schemas[name] = table.columns(self.spark)
        self.sources[name] = table

    def now(self, names: Collection[str]) -> Mapping[str, DataFrame]:
        """These tables as they are now."""
        return {name: self._now(name) for name in names}

    def _now(self, name: str) -> DataFrame:
        source = self.sources[name]
        known = self._held.get(name)
        try:
            with plain_errors():
                version = source.version(self.spark)
                if version is None:
                    return self._rows(name, version)
                if known is not None and known.version == version:
                    return known.rows
                rows = self._rows(name, version)
                # A record that does not fit is an error now, while the version before is still there.
                _hold(rows)
        except Error as error:
            # Files are often replaced one by one. The version before serves until the new one can be read.
            if known is None:
                raise type(error)(f"table {name}: {error}") from None
            _log.warning("table %s cannot be read anew, and stays as it was: %s", name, error)
            return known.rows
        if known is not None:
            known.rows.unpersist()
        self._held[name] = _Held(rows, version)
        return rows

    def _rows(self, name: str, version: Any) -> DataFrame:
        self._reads += 1
        return self.sources[name].rows(self.spark, self.schemas[name], version, self._reads)


def _hold(rows: DataFrame) -> None:
    try:
        rows.persist().count()
    except BaseException:
        rows.unpersist()
        raise
