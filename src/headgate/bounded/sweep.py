"""The sweep over events: from rows that count from an event on, or up to one, to the spans between events.

Between two events the answer is the same, so the work is per event, and windows are spelt out at the very end. Each
block of each group is swept on its own, so that neither a long stream nor a single group ends up in one task.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.aggregates import Merge
from headgate.bounded.rollup import WINDOW_ID
from headgate.sql.partials import Additive, PartialColumn, merged, merged_pair, same_type

BLOCK, EVENT, NEXT = "_hg_block", "_hg_event", "_hg_next"
_IN, _OUT = "_hg_in", "_hg_out"


def two_sided(rows: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], end: str) -> DataFrame:
    """Spans [_hg_event, _hg_next) with their merged partials, from rows of two sides in each group and block.

    A row of side 'in' counts from its event on, a row of side 'out' up to its event; a row of side 'start' only makes
    sure that a span begins at its event. `end` is where the last span of a block ends.
    """
    additive, group = Additive.of(columns), [*keys, BLOCK]
    spread = additive.spread(rows, [*keys, BLOCK])
    types = {name: spread.schema[name].dataType for name, _ in additive.parts}
    sides = [
        _merged_side(name, merge, side).alias(f"{prefix}{name}")
        for prefix, side in ((_IN, "in"), (_OUT, "out"))
        for name, merge in additive.parts
    ]
    centres = [F.max(c).alias(c) for c in additive.centres]
    points = spread.groupBy(*group, EVENT).agg(*sides, *centres)
    ahead, behind = W.partitionBy(*group).orderBy(EVENT), W.partitionBy(*group).orderBy(F.desc(EVENT))
    so_far = ahead.rowsBetween(W.unboundedPreceding, W.currentRow)
    # Descending, because Spark merges a frame that ends at the last row anew for every row.
    still_to_leave = behind.rowsBetween(W.unboundedPreceding, -1)
    swept = points.select(
        *group,
        EVENT,
        F.lead(EVENT).over(ahead).alias(NEXT),
        *additive.centres,
        *(merged(F.col(f"{_IN}{name}"), merge).over(so_far).alias(f"{_IN}{name}") for name, merge in additive.parts),
        *(
            merged(F.col(f"{_OUT}{name}"), merge).over(still_to_leave).alias(f"{_OUT}{name}")
            for name, merge in additive.parts
        ),
    )
    spans = swept.select(
        *group,
        EVENT,
        F.coalesce(NEXT, F.expr(end)).alias(NEXT),
        *additive.centres,
        *(
            same_type(merged_pair(F.col(f"{_IN}{name}"), F.col(f"{_OUT}{name}"), merge), types[name]).alias(name)
            for name, merge in additive.parts
        ),
    )
    return additive.gather(spans)


def _merged_side(name: str, merge: Merge, side: str) -> Column:
    """A part merged over the rows of one side."""
    return merged(F.expr(f"CASE WHEN _side = '{side}' THEN {name} END"), merge)


def spelt_out(spans: DataFrame) -> DataFrame:
    """One row for each window of each span [_hg_event, _hg_next)."""
    return spans.where(f"{NEXT} > {EVENT}").withColumn(WINDOW_ID, F.explode(F.sequence(F.col(EVENT), F.col(NEXT) - 1)))
