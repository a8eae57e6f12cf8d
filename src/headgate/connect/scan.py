"""What a batch has of a stream, before it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from pyspark.sql import DataFrame

from headgate.incremental.reduce import MALFORMED
from headgate.shed.estimate.sql import tossed

#: The tuples of a batch by stream, in pieces.
Batches = Mapping[str, Sequence[DataFrame]]


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
    place: Sequence[str] = ()
    """The columns that say which part of which file a tuple is from, if its tuples are to be in order."""
    order: Sequence[str] | None = None
    """The files in their order, if it is not that of these columns."""


def together(pieces: Sequence[DataFrame]) -> DataFrame:
    """All tuples of a stream in a batch, with bad ones."""
    return reduce(DataFrame.union, pieces)


def sound(pieces: Sequence[DataFrame], good: str | None) -> DataFrame:
    """The tuples of a stream in a batch that are `good`, which is SQL, or all of them."""
    df = together(pieces)
    return (df if good is None else df.where(good)).drop(MALFORMED)
