"""Tuples with the rows of a table that they match."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.plan.logical.nodes import Lookup
from headgate.sql.text import text


def lookup(node: Lookup, df: DataFrame, table: DataFrame) -> DataFrame:
    """Each tuple with every row that it matches; Spark sends a small table to where the tuples are."""
    on = F.lit(True) if node.predicate is None else F.expr(text(node.predicate))
    return df.join(table, on, "left" if node.outer else "inner")
