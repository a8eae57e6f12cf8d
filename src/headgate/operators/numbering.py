"""Arrival numbers and ranks, counted without gathering the stream: count each piece, then shift it by those before."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.operators.sql import Name, col, floor_div, others, own, same_keys

_PARTITION_BITS = 33  # monotonically_increasing_id: the partition above, the row within it below
#: Rows that are ranked together: a task gets at most this many of one partition.
PIECE = 65_536
_ID, _PART, _SIZE, _OWN, _START = map(own, ("id", "part", "size", "own", "start"))
_PIECE, _OF_PIECE, _WITHIN = map(own, ("piece", "of piece", "within"))


def with_row_numbers(df: DataFrame, name: str, first: int = 0) -> DataFrame:
    """The rows with their place in the order of the DataFrame, counted from `first`."""
    df = _stable(df).withColumn(_ID.plain, F.monotonically_increasing_id())
    partition = F.shiftright(col(_ID), _PARTITION_BITS)
    sizes = df.groupBy(partition.alias(_PART.plain)).agg(F.count("*").alias(_SIZE.plain))
    before = W.partitionBy(F.lit(0)).orderBy(col(_PART)).rowsBetween(W.unboundedPreceding, -1)
    starts = sizes.select(
        col(_PART).alias(_OWN.plain), F.coalesce(F.sum(col(_SIZE)).over(before), F.lit(0)).alias(_START.plain)
    )
    index = col(_ID).bitwiseAND((1 << _PARTITION_BITS) - 1)
    return (
        df.join(F.broadcast(starts), partition == col(_OWN))
        .withColumn(name, col(_START) + index + first)
        .drop(*(own.plain for own in (_ID, _OWN, _START)))
    )


def with_ranks(df: DataFrame, partition: Sequence[Name], order: str, name: str) -> DataFrame:
    """The rows with their place (from 0) among those of their partition, in the order of a whole number.

    A partition is counted piece by piece, so that one that holds most of the stream is still spread over tasks.
    """
    df, keys, theirs = (
        df.withColumn(_PIECE.plain, F.expr(floor_div(order, PIECE))),
        [*map(col, partition)],
        others(partition),
    )
    pieces = df.groupBy(*keys, col(_PIECE)).agg(F.count("*").alias(_SIZE.plain))
    before = W.partitionBy(*keys).orderBy(col(_PIECE)).rowsBetween(W.unboundedPreceding, -1)
    starts = pieces.select(
        *(key.alias(their.plain) for key, their in zip(keys, theirs, strict=True)),
        col(_PIECE).alias(_OF_PIECE.plain),
        F.coalesce(F.sum(col(_SIZE)).over(before), F.lit(0)).alias(_START.plain),
    )
    within = F.row_number().over(W.partitionBy(*keys, col(_PIECE)).orderBy(F.expr(order))) - 1
    same = (col(_PIECE) == col(_OF_PIECE)) & same_keys(partition, theirs)
    return (
        df.withColumn(_WITHIN.plain, within)
        .join(starts, same)
        .withColumn(name, col(_START) + col(_WITHIN))
        .drop(*(own.plain for own in (_PIECE, _OF_PIECE, _WITHIN, _START, *theirs)))
    )


def _stable(df: DataFrame) -> DataFrame:
    """The rows, sure to lie in the same partitions in the same order each time they are read.

    Numbering reads them twice. After a shuffle that is not certain, so there they are kept at the first reading.
    """
    plan = df._jdf.queryExecution().executedPlan().toString()
    return df.localCheckpoint(eager=False) if "Exchange" in plan else df
