"""Compaction: the partial rows of several batches as one, without the panes that no window needs any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headgate.incremental.reduce import PANE, STATE, TABLE
from headgate.sql.partials import Additive, merge
from headgate.sql.text import moving, stacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.sharing.table import Table


def compacted(state: DataFrame, tables: Sequence[Table], first: Mapping[int, int]) -> DataFrame:
    """The rows of some files, merged by group and pane; `first` gives the first pane of a table that is needed.

    In a table whose windows grow, all panes before it have become one.
    """
    return stacked(_table(state, table, first) for table in tables)


def _table(state: DataFrame, table: Table, first: Mapping[int, int]) -> DataFrame:
    rows = state.where(f"{TABLE} = {table.number}")
    if table.number in first:
        needed = moving(first[table.number], PANE)
        if table.growing:
            rows = rows.withColumn(PANE, F.expr(f"greatest({PANE}, {needed} - 1)"))
        else:
            rows = rows.where(f"{PANE} >= {needed}")
    group = [TABLE, *table.keys, PANE]
    if table.state is not None:
        return rows.select(*group, STATE)  # States merge in Python, where windows close.
    columns = table.partials
    additive = Additive.of(columns)
    spread = additive.spread(rows.select(*group, *(c.name for c in columns)), group)
    return additive.gather(merge(spread, group, additive))
