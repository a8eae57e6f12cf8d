"""What a batch has of a stream, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from headgate.operators.estimates import tossed
from headgate.operators.ingest import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Piece:
    """Tuples as they are read. A `single` piece is reduced in one task, without a shuffle."""

    scan: DataFrame
    single: bool = False

    @cached_property
    def df(self) -> DataFrame:
        """All of them."""
        return self._placed(self.scan)

    def tossed(self, seed: int) -> DataFrame:
        """All of them with their coins, which are those of a sample with this seed."""
        return self._placed(tossed(self.scan, seed))

    def sample(self, seed: int, conditions: Sequence[str]) -> DataFrame:
        """A sample with its coins, taken where tuples are read: behind it they would be whole rows already."""
        return self._placed(tossed(self.scan, seed).where(" AND ".join(conditions)))

    def where(self, condition: str) -> DataFrame:
        """Those that meet a condition, which the reader may use to skip others."""
        return self._placed(self.scan.where(condition))

    def _placed(self, df: DataFrame) -> DataFrame:
        return df.coalesce(1) if self.single else df


@dataclass(frozen=True)
class Read:
    """The tuples of a stream in a batch, and how much that is by a measure that is known without a look at them."""

    pieces: list[Piece]
    amount: float | None = None
    files: Sequence[str] = ()
    """The Parquet files that it is."""


def together(pieces: Sequence[DataFrame]) -> DataFrame:
    """All tuples of a stream in a batch, with malformed records."""
    return reduce(DataFrame.union, pieces)


def sound(pieces: Sequence[DataFrame]) -> DataFrame:
    """The tuples of a stream in a batch, without malformed records."""
    df = together(pieces)
    return df.where(f"{MALFORMED} IS NULL").drop(MALFORMED) if MALFORMED in df.columns else df
