"""Arrival numbers and ranks, counted without gathering the stream: count each piece, then shift it by those before."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.operators.sql import floor_div, same_keys

_PARTITION_BITS = 33  # monotonically_increasing_id: the partition above, the row within it below
#: Rows that are ranked together: a task gets at most this many of one partition.
PIECE = 65_536


def with_row_numbers(df: DataFrame, name: str, first: int = 0) -> DataFrame:
    """The rows with their place in the order of the DataFrame, counted from `first`."""
    df = _stable(df).withColumn("_hg_id", F.monotonically_increasing_id())
    partition = F.shiftright("_hg_id", _PARTITION_BITS)
    sizes = df.groupBy(partition.alias("_hg_part")).agg(F.count("*").alias("_hg_size"))
    before = W.partitionBy(F.lit(0)).orderBy("_hg_part").rowsBetween(W.unboundedPreceding, -1)
    starts = sizes.select(
        F.col("_hg_part").alias("_hg_own"), F.coalesce(F.sum("_hg_size").over(before), F.lit(0)).alias("_hg_start")
    )
    index = F.col("_hg_id").bitwiseAND((1 << _PARTITION_BITS) - 1)
    return (
        df.join(F.broadcast(starts), partition == F.col("_hg_own"))
        .withColumn(name, F.col("_hg_start") + index + first)
        .drop("_hg_id", "_hg_own", "_hg_start")
    )


def with_ranks(df: DataFrame, partition: Sequence[str], order: str, name: str) -> DataFrame:
    """The rows with their place (from 0) among those of their partition, in the order of a whole number.

    A partition is counted piece by piece, so that one that holds most of the stream is still spread over tasks.
    """
    df = df.withColumn("_hg_piece", F.expr(floor_div(order, PIECE)))
    pieces = df.groupBy(*partition, "_hg_piece").agg(F.count("*").alias("_hg_size"))
    before = W.partitionBy(*partition).orderBy("_hg_piece").rowsBetween(W.unboundedPreceding, -1)
    starts = pieces.select(
        *(F.col(p).alias(f"_hg_of{p}") for p in partition),
        F.col("_hg_piece").alias("_hg_of_piece"),
        F.coalesce(F.sum("_hg_size").over(before), F.lit(0)).alias("_hg_start"),
    )
    within = F.row_number().over(W.partitionBy(*partition, "_hg_piece").orderBy(order)) - 1
    same = (F.col("_hg_piece") == F.col("_hg_of_piece")) & same_keys(partition, "_hg_of")
    return (
        df.withColumn("_hg_within", within)
        .join(starts, same)
        .withColumn(name, F.col("_hg_start") + F.col("_hg_within"))
        .drop("_hg_piece", "_hg_of_piece", "_hg_within", "_hg_start", *(f"_hg_of{p}" for p in partition))
    )


def _stable(df: DataFrame) -> DataFrame:
    """The rows, sure to lie in the same partitions in the same order each time they are read.

    Numbering reads them twice. After a shuffle that is not certain, so there they are kept at the first reading.
    """
    plan = df._jdf.queryExecution().executedPlan().toString()
    return df.localCheckpoint(eager=False) if "Exchange" in plan else df
