"""From panes to windows, at a cost that does not depend on how many panes a window has.

A pane p enters the windows at `enter` (the first that holds it) and leaves them at `leave` (the first that does not).
Windows are worked on in blocks by the pane they end in, each block of each group on its own, so that neither a long
stream nor a single group ends up in one task; a pane matters to its own block and the next one only. Between two
entries or departures the answer is the same, so the work is per event, and windows are spelt out at the very end.

*running*: what leaves is subtracted; for sums of exact numbers.
*blocks*: blocks as long as a window. A window that ends in a block holds of the block before it a suffix, and of its
own a prefix; both are running merges, so nothing is ever subtracted. For everything else. (It is the batch form of a
queue made of two stacks.)
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.aggregates import Merge
from headgate.operators.partials import ROWS, Additive, PartialColumn, merged, merged_pair, same_type
from headgate.operators.sql import floor_div
from headgate.windows import Panes

PANE, WINDOW_ID = "_hg_pane", "_hg_wid"
BLOCK, EVENT, NEXT = "_hg_block", "_hg_event", "_hg_next"
_IN, _OUT = "_hg_in", "_hg_out"
#: Shortest block of the running form, in panes: shorter ones only copy panes from block to block.
_RUNNING_BLOCK = 4096


def roll_up(
    panes: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], spec: Panes, running: bool
) -> DataFrame:
    """The partials of every window that holds a tuple, as (keys, _hg_wid, columns), from those of its panes."""
    size = spec.per_window * max(1, _RUNNING_BLOCK // spec.per_window) if running else spec.per_window
    enter = f"{floor_div(f'{PANE} - {spec.per_window}L', spec.per_slide)} + 1"
    leave = f"{floor_div(PANE, spec.per_slide)} + 1"
    own = floor_div(PANE, size)
    border = _first_window(f"({own}) + 1", size, spec)
    events = panes.withColumns(
        {"_enter": F.expr(enter), "_leave": F.expr(leave), "_own": F.expr(own), "_border": F.expr(border)}
    )
    roll = _running if running else _blocks
    spans = roll(events, keys, columns, _first_window(f"{BLOCK} + 1", size, spec))
    return spelt_out(spans).select(*keys, WINDOW_ID, *(c.name for c in columns))


def _first_window(block: str, size: int, spec: Panes) -> str:
    """The first window whose last pane is in the block."""
    return f"{floor_div(f'({block}) * {size}L - {spec.per_window}L', spec.per_slide)} + 1"


def spelt_out(spans: DataFrame) -> DataFrame:
    """One row for each window of each span [_hg_event, _hg_next)."""
    return spans.where(f"{NEXT} > {EVENT} AND {ROWS} > 0").withColumn(
        WINDOW_ID, F.explode(F.sequence(F.col(EVENT), F.col(NEXT) - 1))
    )


def _running(events: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], end: str) -> DataFrame:
    names, nullable = [c.name for c in columns], [c.name for c in columns if c.nullable]
    types = {name: events.schema[name].dataType for name in names}
    # A sum of no values is NULL, so the panes that have one are counted along.
    seen = {name: f"{name}_seen" for name in nullable}
    values = {**{n: f"coalesce({n}, 0)" for n in names}, **{s: f"int({n} IS NOT NULL)" for n, s in seen.items()}}
    plus, minus = (", ".join(f"{sign}{v} AS {name}" for name, v in values.items()) for sign in ("", "-"))
    rows = _inline(
        events,
        keys,
        f"CASE WHEN _enter < _border THEN struct(_own AS {BLOCK}, _enter AS {EVENT}, {plus}) END",
        f"CASE WHEN _leave < _border THEN struct(_own AS {BLOCK}, _leave AS {EVENT}, {minus}) END",
        f"CASE WHEN _leave > _border THEN struct(_own + 1 AS {BLOCK}, _border AS {EVENT}, {plus}) END",
        f"CASE WHEN _leave > _border THEN struct(_own + 1 AS {BLOCK}, _leave AS {EVENT}, {minus}) END",
    )
    group = [*keys, BLOCK]
    # One exchange by group and block serves the merge of equal events and the running sum alike.
    deltas = (
        rows.repartition(*group)
        .groupBy(*group, EVENT)
        .agg(*(same_type(F.sum(v), types.get(v, T.LongType())).alias(v) for v in values))
    )
    ahead = W.partitionBy(*group).orderBy(EVENT)
    up_to_here = ahead.rowsBetween(W.unboundedPreceding, W.currentRow)

    def sum_of(name: str) -> Column:
        total = same_type(F.sum(name).over(up_to_here), types[name])
        return F.when(F.sum(seen[name]).over(up_to_here) > 0, total) if name in seen else total

    following = F.coalesce(F.lead(EVENT).over(ahead), F.expr(end))
    return deltas.select(*group, EVENT, following.alias(NEXT), *(sum_of(name).alias(name) for name in names))


def _blocks(events: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], end: str) -> DataFrame:
    values = ", ".join(c.name for c in columns)
    following = f"_own + 1 AS {BLOCK}"
    rows = _inline(
        events,
        keys,
        f"CASE WHEN _enter < _border THEN struct(_own AS {BLOCK}, _enter AS {EVENT}, 'in' AS _side, {values}) END",
        f"CASE WHEN _leave > _border THEN struct({following}, _border AS {EVENT}, 'start' AS _side, {values}) END",
        f"CASE WHEN _leave > _border THEN struct({following}, _leave AS {EVENT}, 'out' AS _side, {values}) END",
    )
    return two_sided(rows.repartition(*keys, BLOCK), keys, columns, end)


def _inline(events: DataFrame, keys: Sequence[str], *structs: str) -> DataFrame:
    """One row for each struct that is there."""
    rows = events.select(*keys, F.inline(F.expr(f"array({', '.join(structs)})")))
    return rows.where(f"{BLOCK} IS NOT NULL")


def two_sided(rows: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], end: str) -> DataFrame:
    """Spans [_hg_event, _hg_next) with their merged partials, from rows of two sides in each group and block.

    A row of side 'in' counts from its event on, a row of side 'out' up to its event; a row of side 'start' only makes
    sure that a span begins at its event. `end` is where the last span of a block ends.
    """
    additive, group = Additive.of(columns), [*keys, BLOCK]
    spread = additive.spread(rows, [*keys, BLOCK])
    types = {name: spread.schema[name].dataType for name, _ in additive.parts}
    sides = [
        merged_side(name, merge, side).alias(f"{prefix}{name}")
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


def merged_side(name: str, merge: Merge, side: str) -> Column:
    """A part merged over the rows of one side."""
    return merged(F.expr(f"CASE WHEN _side = '{side}' THEN {name} END"), merge)
