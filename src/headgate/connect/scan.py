"""The tuples of a stream in a micro-batch, as they are read."""

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
    """Tuples that are read together. A `single` piece is reduced in one task, without a shuffle."""

    scan: DataFrame
    single: bool = False

    @cached_property
    def df(self) -> DataFrame:
        """All tuples."""
        return self._placed(self.scan)

    def tossed(self, seed: int) -> DataFrame:
        """All tuples with their coins, which the seed of a sample decides."""
        return self._placed(tossed(self.scan, seed))

    def sample(self, seed: int, conditions: Sequence[str]) -> DataFrame:
        """A sample with its coins. It is drawn where tuples are read, before they become whole rows."""
        return self._placed(tossed(self.scan, seed).where(" AND ".join(conditions)))

    def where(self, condition: str) -> DataFrame:
        """The tuples that meet a condition. The reader may use it to skip others."""
        return self._placed(self.scan.where(condition))

    def _placed(self, df: DataFrame) -> DataFrame:
        return df.coalesce(1) if self.single else df


@dataclass(frozen=True)
class Read:
    """The tuples of a stream in a batch."""

    pieces: list[Piece]
    amount: float | None = None
    """How much this is, by a measure that is known without reading it, such as bytes."""
    files: Sequence[str] = ()
    """The files, if they are Parquet."""
    place: Sequence[str] = ()
    """If the tuples are to be in order: the columns that say which part of which file a tuple is from."""
    order: Sequence[str] | None = None
    """The files in their order, if that is not the order of these columns."""


def together(pieces: Sequence[DataFrame]) -> DataFrame:
    """All tuples of a stream in a batch, also the bad ones."""
    return reduce(DataFrame.union, pieces)


def sound(pieces: Sequence[DataFrame], good: str | None) -> DataFrame:
    """The tuples of a stream in a batch that are `good`, which is SQL; all of them if it is None."""
    df = together(pieces)
    return (df if good is None else df.where(good)).drop(MALFORMED)
