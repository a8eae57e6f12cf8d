"""From panes to windows, at a cost that does not depend on how many panes a window has.

The axis is cut into blocks as long as a window. A window that begins in one block and ends in the next holds a suffix
of the first and a prefix of the second. Both are running merges over the panes of a block, and each stays the same
from one pane to the next, so a pane stands for the windows between itself and its neighbours. (It is the batch form
of a queue made of two stacks.)

Where what was added can be taken away again without a trace, the suffix is what the prefix leaves of the block's
total; everything else is merged once more from the other end, which costs a second sort.

A group is worked on by one task where its panes are few, which groups over time are. Otherwise it is cut into
stretches, so that neither a long stream nor a single group ends up in one task. A stretch gives the windows that begin
in it; the panes that those reach into in the next stretch are copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.sql.partials import Additive, PartialColumn, merge, merged
from headgate.sql.text import floor_div
from headgate.windows import WindowType

PANE, WINDOW_ID = "_hg_pane", "_hg_wid"
_BLOCK, _STRETCH, _BEFORE, _AFTER = "_hg_block", "_hg_stretch", "_hg_before", "_hg_after"
_SUFFIX = "_hg_suffix"
#: Shortest stretch, in panes: the shorter it is, the more panes are copied.
_SHORTEST = 4096


def roll_up(
    panes: DataFrame, keys: Sequence[str], columns: Sequence[PartialColumn], spec: WindowType, running: bool, cut: bool
) -> DataFrame:
    """The partials of every window that holds a tuple, as (keys, _hg_wid, columns), from those of its panes.

    `cut` tells to work on a group in stretches.
    """
    additive = Additive.of(columns)
    stretch = spec.per_window * max(1, _SHORTEST // spec.per_window) if cut else None
    group = [*keys, _STRETCH] if cut else list(keys)
    placed = _in_stretches(panes, spec.per_window, stretch) if stretch else panes
    rows = additive.spread(placed.repartition(*group), group)
    ends = _from_both_ends(rows.withColumn(_BLOCK, F.expr(floor_div(PANE, spec.per_window))), group, additive, running)
    windows = _windows(ends, group, additive, spec, stretch)
    answers = merge(windows, [*group, WINDOW_ID], additive)
    return additive.gather(answers).select(*keys, WINDOW_ID, *(c.name for c in columns))


def _in_stretches(panes: DataFrame, size: int, stretch: int) -> DataFrame:
    own = floor_div(PANE, stretch)
    also_before = f"pmod({PANE}, {stretch}L) < {size - 1}L"
    places = f"CASE WHEN {also_before} THEN array({own}, ({own}) - 1) ELSE array({own}) END"
    return panes.withColumn(_STRETCH, F.explode(F.expr(places)))


def _from_both_ends(rows: DataFrame, group: Sequence[str], additive: Additive, running: bool) -> DataFrame:
    """The panes with the merge of their block up to them (as the parts) and from them on (as the suffix of each)."""
    block = W.partitionBy(*group, _BLOCK)
    ahead, behind = block.orderBy(PANE), block.orderBy(F.desc(PANE))
    prefixes = {
        name: merged(F.col(name), how).over(ahead.rowsBetween(W.unboundedPreceding, W.currentRow))
        for name, how in additive.parts
    }
    neighbours = {_BEFORE: F.lag(PANE).over(ahead), _AFTER: F.lead(PANE).over(ahead)}
    if running:
        suffixes = {name: _rest(name, block, ahead) for name, _ in additive.parts}
        return rows.select(*_kept(group, additive), *_named(neighbours), *_named(prefixes), *_named(suffixes, _SUFFIX))
    once = rows.select(
        *_kept(group, additive),
        *_named(neighbours),
        *_named(prefixes),
        *(F.col(name).alias(f"{_SUFFIX}{name}") for name, _ in additive.parts),
    )
    # Descending, because Spark merges a frame that ends at the last row anew for every row.
    so_far = behind.rowsBetween(W.unboundedPreceding, W.currentRow)
    suffixes = {name: merged(F.col(f"{_SUFFIX}{name}"), how).over(so_far) for name, how in additive.parts}
    names = [_BEFORE, _AFTER, *(name for name, _ in additive.parts)]
    return once.select(*_kept(group, additive), *names, *_named(suffixes, _SUFFIX))


def _kept(group: Sequence[str], additive: Additive) -> list[str]:
    return [*group, _BLOCK, PANE, *additive.centres]


def _named(columns: dict[str, Column], prefix: str = "") -> list[Column]:
    return [column.alias(f"{prefix}{name}") for name, column in columns.items()]


def _rest(name: str, block: WindowSpec, ahead: WindowSpec) -> Column:
    """The total of the block without what comes before; a sum of no values at all is NULL."""
    before = ahead.rowsBetween(W.unboundedPreceding, -1)
    left = F.count(name).over(block) - F.count(name).over(before)
    return F.when(left > 0, F.sum(name).over(block) - F.coalesce(F.sum(name).over(before), F.lit(0)))


def _windows(
    ends: DataFrame, group: Sequence[str], additive: Additive, spec: WindowType, stretch: int | None
) -> DataFrame:
    """For each window the prefix and the suffix that make it up, as (group, _hg_wid, parts)."""
    size = f"{spec.per_window}L"
    # The pane that a window begins with, first and last. A window that is a whole block is a prefix only.
    spans = {
        "": (f"{PANE} - {size} + 1", f"coalesce({_AFTER}, ({_BLOCK} + 1) * {size}) - {size}"),
        _SUFFIX: (f"coalesce({_BEFORE}, {_BLOCK} * {size}) + 1", PANE),
    }
    structs = []
    for prefix, (first, last) in spans.items():
        if stretch:
            first = f"greatest({first}, {_STRETCH} * {stretch}L)"
            last = f"least({last}, ({_STRETCH} + 1) * {stretch}L - 1)"
        parts = ", ".join(f"{prefix}{name} AS {name}" for name, _ in additive.parts)
        from_id = floor_div(f"{first} + {spec.per_slide - 1}L", spec.per_slide)
        to_id = floor_div(last, spec.per_slide)
        structs.append(f"struct({from_id} AS _from, {to_id} AS _to, {parts})")
    return (
        ends.select(*group, *additive.centres, F.inline(F.expr(f"array({', '.join(structs)})")))
        .where("_from <= _to")
        .withColumn(WINDOW_ID, F.explode(F.expr("sequence(_from, _to)")))
    )
