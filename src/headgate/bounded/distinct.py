"""Duplicate elimination in Spark: each tuple against the one before it with the same keys."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.plan.logical.nodes import Distinct
from headgate.sql.text import THESE, literal, own, position, queried, quoted

_PLACE, _BEFORE = own("place"), own("before")


def distinct(node: Distinct, df: DataFrame) -> DataFrame:
    """The tuples without one of the same keys less than the range before them."""
    placed = df.withColumn(_PLACE.plain, F.expr(position(df, node.attribute))).where(f"{_PLACE} IS NOT NULL")
    # Maps have no order: of two tuples that differ in nothing else, either may stand for both.
    ordered = [quoted(f.name) for f in df.schema if "map<" not in f.dataType.simpleString()]
    keys = ", ".join(quoted(key) for key in node.keys)
    before = f"lag({_PLACE}) OVER (PARTITION BY {keys} ORDER BY {', '.join([str(_PLACE), *ordered])})"
    compared = queried(placed, f"SELECT *, {before} AS {_BEFORE} FROM {THESE}")
    first = compared.where(f"{_BEFORE} IS NULL OR {_PLACE} - {_BEFORE} >= {literal(node.range)}")
    return first.drop(_PLACE.plain, _BEFORE.plain)
