"""Landmark windows: everything so far, answered at every slide.

Slides are cut into chunks; each chunk of each group is summed up on its own, on top of what came before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.bounded.rollup import PANE, WINDOW_ID
from headgate.bounded.sweep import BLOCK, EVENT, NEXT, spelt_out, two_sided
from headgate.sql.partials import Additive, PartialColumn, merged, same_type
from headgate.sql.text import floor_div

_CHUNK = 1024
LAST = "_hg_last"
WithLast = Callable[[DataFrame], DataFrame]


def accumulate(
    panes: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], with_last: WithLast
) -> DataFrame:
    """The partials of every window, as (keys, _hg_wid, columns), from those of its slides.

    `with_last` adds the last slide that the stream has come to, as the column `_hg_last`.
    """
    names = [c.name for c in columns]
    inner = panes.select(
        *keys,
        F.expr(floor_div(PANE, _CHUNK)).alias(BLOCK),
        F.col(PANE).alias(EVENT),
        F.lit("in").alias("_side"),
        *names,
    )
    rows = inner.unionByName(_carried(inner, keys, columns, with_last)).repartition(*keys, BLOCK)
    spans = two_sided(rows, keys, columns, end=f"({BLOCK} + 1) * {_CHUNK}L")
    capped = with_last(spans).withColumn(NEXT, F.least(NEXT, F.col(LAST) + 1))
    return spelt_out(capped).select(*keys, WINDOW_ID, *names)


def _carried(inner: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], with_last: WithLast) -> DataFrame:
    """What each later chunk starts with: the merge of all chunks before it."""
    additive = Additive.of(columns)
    spread = additive.spread(inner, keys)
    types = {name: spread.schema[name].dataType for name, _ in additive.parts}
    totals = spread.groupBy(*keys, BLOCK).agg(
        *(same_type(merged(F.col(name), merge), types[name]).alias(name) for name, merge in additive.parts),
        *(F.max(c).alias(c) for c in additive.centres),
    )
    ahead = W.partitionBy(*keys).orderBy(BLOCK)
    so_far = ahead.rowsBetween(W.unboundedPreceding, W.currentRow)
    sums = totals.select(
        *keys,
        BLOCK,
        F.lead(BLOCK).over(ahead).alias(NEXT),
        *additive.centres,
        *(
            same_type(merged(F.col(name), merge).over(so_far), types[name]).alias(name)
            for name, merge in additive.parts
        ),
    )
    until = F.coalesce(F.col(NEXT), F.expr(floor_div(LAST, _CHUNK)))
    reached = with_last(additive.gather(sums)).withColumn("_hg_until", until).where(f"_hg_until > {BLOCK}")
    return reached.withColumn(BLOCK, F.explode(F.sequence(F.col(BLOCK) + 1, F.col("_hg_until")))).select(
        *keys,
        BLOCK,
        F.expr(f"{BLOCK} * {_CHUNK}L").alias(EVENT),
        F.lit("in").alias("_side"),
        *(c.name for c in columns),
    )
