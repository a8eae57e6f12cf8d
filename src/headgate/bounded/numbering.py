"""Arrival numbers and ranks, counted without gathering the stream: count each piece, then shift it by those before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.sql.text import Name, col, floor_div, moving, others, own, same_keys

_PARTITION_BITS = 33  # monotonically_increasing_id: the partition above, the row within it below
#: Rows that are ranked together: a task gets at most this many of one partition.
PIECE = 65_536
_ID, _PART, _SIZE, _OWN, _START = map(own, ("id", "part", "size", "own", "start"))
_TASK, _INDEX, _SHIFT = map(own, ("task", "index", "shift"))
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


def with_arrival_numbers(
    df: DataFrame, name: str, first: int, good: str | None, place: Sequence[str], files: Sequence[str] | None
) -> tuple[DataFrame, bool]:
    """The rows that are `good`, which is SQL, with their place in the order of arrival; and whether there are others.

    Rows of files come file by file, and within each from its beginning: Spark takes the parts of files in any order,
    but each of them as a whole. The columns of `place` tell the parts apart, and are dropped. Parts come in the order
    of these columns; where `files` are given, the first of them is the file, and these are in their order. Rows without
    a place come in the order of the DataFrame.
    """
    df, keys = _stable(df), [Name(column) for column in place] or [_TASK]
    if not place:
        df = df.withColumn(_TASK.plain, F.expr("CAST(spark_partition_id() AS BIGINT)"))
    parts, ordinals = _parts(df, keys, good), {file: i for i, file in enumerate(files or ())}
    shifts = _shifts(parts, lambda p: (ordinals[unquote(p.key[0])], *p.key[1:]) if files else p.key, first)
    if good is not None:
        # As long as it depends on the task, Spark does not read without the others, and split what there is to read in
        # another way.
        df = df.where(f"if(spark_partition_id() >= 0, {good}, false)")
    df = df.withColumn(_INDEX.plain, F.expr(f"monotonically_increasing_id() & {(1 << _PARTITION_BITS) - 1}L"))
    if len(shifts) > 1:
        rows = ", ".join(f"struct({', '.join(map(_sql, (*key, shift)))})" for key, shift in shifts.items())
        known = df.sparkSession.sql(f"SELECT inline(array({rows})) AS ({', '.join(map(str, (*others(keys), _SHIFT)))})")
        df = df.join(F.broadcast(known), same_keys(keys, others(keys)))
        df = df.withColumn(name, F.expr(f"{_INDEX} + {_SHIFT}"))
        df = df.drop(*(own.plain for own in (_SHIFT, *others(keys))))
    else:
        shift = next(iter(shifts.values()), first)
        df = df.withColumn(name, F.expr(f"{_INDEX} + {moving(shift, str(_INDEX))}"))
    return df.drop(*(own.plain for own in (_INDEX, *keys))), any(part.all > part.good for part in parts)


class _Part(NamedTuple):
    """The rows of a part of a file, or of a task."""

    key: tuple[Any, ...]
    task: int
    first: int
    all: int
    good: int


def _parts(df: DataFrame, keys: Sequence[Name], good: str | None) -> list[_Part]:
    counts = (F.min(col(_ID)), F.count("*"), F.expr(f"count_if({good})") if good else F.count("*"))
    numbered = df.withColumn(_ID.plain, F.monotonically_increasing_id())
    rows = numbered.groupBy(*map(col, keys)).agg(*counts).collect()
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
