"""Windows that slide by tuple: every n-th tuple ends a window (w - range, w].

The axis is cut into blocks of which a range holds a whole number m, so that a window that ends in block b holds a
suffix of block b - m, all of the blocks between, and a prefix of block b. Both ends are swept as in the roll-up of
panes; the windows of a block are counted off by their place in it. The finer the blocks, the more tasks share the work.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.bounded.rollup import PANE, WINDOW_ID
from headgate.bounded.sweep import BLOCK, EVENT, spelt_out, two_sided
from headgate.sql.partials import ROWS, Additive, PartialColumn, merged, same_type
from headgate.sql.text import floor_div, literal
from headgate.windows import Number, TupleSlide

_PER_RANGE, _INDEX, _COUNT = "_hg_per_range", "_hg_index", "_hg_count"
#: Blocks that the stream is cut into for each core, and the most that a range is cut into: a place in microseconds
#: times this number stays within 64 bits.
_BLOCKS_A_CORE, _MOST = 8, 1024


def sweep(
    panes: DataFrame,
    keys: Sequence[str],
    columns: Sequence[PartialColumn],
    ends: DataFrame,
    size: Number,
    per_range: DataFrame,
) -> DataFrame:
    """The partials of every window, as (keys, _hg_wid, columns), from those of each place (`_hg_pane`) of each group.

    `ends` holds the window ids as the column `_hg_wid`; `per_range` is from `blocks_per_range`. One of the columns
    counts the tuples.
    """
    placed = _in_blocks(panes, PANE, size, per_range)
    names = ", ".join(c.name for c in columns)
    near = placed.select(
        *keys,
        F.explode(
            F.expr(
                f"""array(struct({BLOCK}, {PANE} AS {EVENT}, 'in' AS _side, {names}),
                struct({BLOCK} + {_PER_RANGE} AS {BLOCK}, {PANE} + {literal(size)} AS {EVENT}, 'out' AS _side, {names}),
                struct({BLOCK} + {_PER_RANGE} AS {BLOCK}, NULL AS {EVENT}, 'start' AS _side, {names}))"""
            )
        ).alias("_e"),
    ).select(*keys, "_e.*")
    windows = _in_blocks(ends, WINDOW_ID, size, per_range).select(BLOCK, WINDOW_ID)
    rows = _counted_off(near.unionByName(_between(placed, keys, columns), allowMissingColumns=True), windows)
    spans = two_sided(rows, [*keys, _COUNT], columns, end=_COUNT)
    # Between the last tuple of a group that leaves and the next one that enters, it has none.
    found = spelt_out(spans.where(f"{ROWS} > 0")).withColumnRenamed(WINDOW_ID, _INDEX)
    in_block = W.partitionBy(BLOCK).orderBy(WINDOW_ID)
    numbered = windows.withColumn(_INDEX, (F.row_number().over(in_block) - 1).cast("bigint"))
    return found.join(numbered, [BLOCK, _INDEX]).select(*keys, WINDOW_ID, *(c.name for c in columns))


def window_ends(places: DataFrame, window: TupleSlide, per_range: DataFrame) -> DataFrame:
    """The ids of all windows: the places of every n-th tuple, in arrival order or in the order of the places.

    A tuple has its place as the column `_hg_pane`.
    """
    if window.order == "row_num":
        every = places.where(f"row_num % {window.slide} = 0 AND {PANE} IS NOT NULL")
        return every.select(F.col(PANE).alias(WINDOW_ID)).distinct()
    known = places.where(f"{PANE} IS NOT NULL")
    counts = known.groupBy(F.col(PANE).alias(WINDOW_ID)).agg(F.count("*").alias("_hg_n"))
    blocks = _in_blocks(counts, WINDOW_ID, window.range, per_range)
    before = W.partitionBy(F.lit(0)).orderBy("_hg_of").rowsBetween(W.unboundedPreceding, -1)
    starts = (
        blocks.groupBy(F.col(BLOCK).alias("_hg_of"))
        .agg(F.sum("_hg_n").alias("_hg_size"))
        .select("_hg_of", F.coalesce(F.sum("_hg_size").over(before), F.lit(0)).alias("_hg_start"))
    )
    within = W.partitionBy(BLOCK).orderBy(WINDOW_ID).rowsBetween(W.unboundedPreceding, W.currentRow)
    ranked = blocks.withColumn("_hg_upto", F.sum("_hg_n").over(within)).join(starts, F.col(BLOCK) == F.col("_hg_of"))
    upto = f"_hg_start + _hg_upto + {window.skipped}L"
    # Equal places share their ranks, so a multiple of n among them is enough.
    return ranked.where(
        f"{floor_div(f'{upto} - 1', window.slide)} > {floor_div(f'{upto} - _hg_n - 1', window.slide)}"
    ).select(WINDOW_ID)


def blocks_per_range(places: DataFrame, size: Number) -> DataFrame:
    """One row: into how many blocks a range is cut, so that the stream as a whole has enough of them for all cores."""
    wanted = places.sparkSession.sparkContext.defaultParallelism * _BLOCKS_A_CORE
    span = f"CAST(max({PANE}) - min({PANE}) + 1 AS DOUBLE)"
    return places.agg(
        F.expr(f"CAST(greatest(1, least({_MOST}, ceil({wanted} * {float(size)!r}D / {span}))) AS BIGINT)").alias(
            _PER_RANGE
        )
    )


def _in_blocks(df: DataFrame, place: str, size: Number, per_range: DataFrame) -> DataFrame:
    block = floor_div(f"{place} * {_PER_RANGE}", size)
    return df.crossJoin(F.broadcast(per_range)).withColumn(BLOCK, F.expr(block))


def _between(placed: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn]) -> DataFrame:
    """Each block's totals for the blocks after it whose windows hold all of it: there from the start on."""
    additive = Additive.of(columns)
    spread = additive.spread(placed.where(f"{_PER_RANGE} > 1"), [*keys, BLOCK])
    totals = spread.groupBy(*keys, BLOCK, _PER_RANGE).agg(
        *(
            same_type(merged(F.col(name), merge), spread.schema[name].dataType).alias(name)
            for name, merge in additive.parts
        ),
        *(F.max(c).alias(c) for c in additive.centres),
    )
    later = F.expr(f"explode(sequence({BLOCK} + 1, {BLOCK} + {_PER_RANGE} - 1))")
    return (
        additive.gather(totals)
        .withColumn(BLOCK, later)
        .select(*keys, BLOCK, F.lit("in").alias("_side"), *(c.name for c in columns))
    )


def _counted_off(rows: DataFrame, windows: DataFrame) -> DataFrame:
    """The rows with their event as the number of windows of the block that end before it, and the count of them all."""
    ends = windows.select(BLOCK, F.col(WINDOW_ID).alias(EVENT), F.lit(1).alias("_hg_end"))
    both = rows.withColumn("_hg_end", F.lit(0)).unionByName(ends, allowMissingColumns=True)
    so_far = W.partitionBy(BLOCK).orderBy(EVENT, "_hg_end").rowsBetween(W.unboundedPreceding, W.currentRow)
    return (
        both.withColumn("_hg_before", F.sum("_hg_end").over(so_far))
        .withColumn(_COUNT, F.sum("_hg_end").over(W.partitionBy(BLOCK)))
        .where(f"_hg_end = 0 AND {_COUNT} > 0")
        .withColumn(EVENT, F.col("_hg_before"))
        .drop("_hg_end", "_hg_before")
    )
