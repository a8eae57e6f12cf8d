"""Arrival numbers and ranks, counted without gathering the stream: count each piece, then shift it by those before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.operators.sql import floor_div, moving, same_keys

_PARTITION_BITS = 33  # monotonically_increasing_id: the partition above, the row within it below
_TASK = "_hg_task"
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


def with_arrival_numbers(
    df: DataFrame, name: str, first: int, good: str | None, place: Sequence[str], files: Sequence[str] | None
) -> tuple[DataFrame, bool]:
    """The rows that are `good`, which is SQL, with their place in the order of arrival; and whether there are others.

    Rows of files come file by file, and within each from its beginning: Spark takes the parts of files in any order,
    but each of them as a whole. The columns of `place` tell the parts apart, and are dropped. Parts come in the order
    of these columns; where `files` are given, the first of them is the file, and these are in their order. Rows without
    a place come in the order of the DataFrame.
    """
    df, keys = _stable(df), place or (_TASK,)
    if not place:
        df = df.withColumn(_TASK, F.expr("CAST(spark_partition_id() AS BIGINT)"))
    parts, ordinals = _parts(df, keys, good), {file: i for i, file in enumerate(files or ())}
    shifts = _shifts(parts, lambda p: (ordinals[unquote(p.key[0])], *p.key[1:]) if files else p.key, first)
    if good is not None:
        # As long as it depends on the task, Spark does not read without the others, and split what there is to read in
        # another way.
        df = df.where(f"if(spark_partition_id() >= 0, {good}, false)")
    df = df.withColumn("_hg_index", F.expr(f"monotonically_increasing_id() & {(1 << _PARTITION_BITS) - 1}L"))
    if len(shifts) > 1:
        rows = ", ".join(f"struct({', '.join(map(_sql, (*key, shift)))})" for key, shift in shifts.items())
        names = ", ".join([*(f"_hg_of{k}" for k in keys), "_hg_shift"])
        known = df.sparkSession.sql(f"SELECT inline(array({rows})) AS ({names})")
        df = df.join(F.broadcast(known), same_keys(keys, "_hg_of")).withColumn(name, F.expr("_hg_index + _hg_shift"))
        df = df.drop("_hg_shift", *(f"_hg_of{k}" for k in keys))
    else:
        shift = next(iter(shifts.values()), first)
        df = df.withColumn(name, F.expr(f"_hg_index + {moving(shift, '_hg_index')}"))
    return df.drop("_hg_index", *keys), any(part.all > part.good for part in parts)


class _Part(NamedTuple):
    """The rows of a part of a file, or of a task."""

    key: tuple[Any, ...]
    task: int
    first: int
    all: int
    good: int


def _parts(df: DataFrame, keys: Sequence[str], good: str | None) -> list[_Part]:
    counts = (F.min("_hg_id"), F.count("*"), F.expr(f"count_if({good})") if good else F.count("*"))
    rows = df.withColumn("_hg_id", F.monotonically_increasing_id()).groupBy(*keys).agg(*counts).collect()
    return [_Part(tuple(key), first >> _PARTITION_BITS, first, count, met) for *key, first, count, met in rows]


def _shifts(parts: Sequence[_Part], order: Callable[[_Part], Any], first: int) -> dict[tuple[Any, ...], int]:
    """By part, what has to be added to the index of a good row among those of its task."""
    within, shifts = Counter[int](), {}
    for part in sorted(parts, key=lambda p: p.first):
        shifts[part.key] = -within[part.task]
        within[part.task] += part.good
    for part in sorted(parts, key=order):
        shifts[part.key] += first
        first += part.good
    return shifts


def _sql(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"{value}L"


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
