"""Window joins in Spark: the window condition as an equality of buckets of time, so that no join is a nested loop."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.operators.sql import floor_div, literal, position, text
from headgate.plan.nodes import Band, Join, SameWindow


def join(node: Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """The pairs of tuples that meet all window conditions and the predicate."""
    conditions = ["_hg_left_bucket = _hg_right_bucket"]
    first = node.conditions[0]
    match first:
        case Band():
            # A right tuple is in one bucket; a left tuple is tried in every bucket that its band touches.
            size = first.before + first.after
            place = position(left, first.left)
            lowest = floor_div(f"{place} - {literal(first.before)}", size)
            highest = floor_div(f"{place} + {literal(first.after)}", size)
            left_bucket = F.explode(F.expr(f"sequence({lowest}, {highest})"))
        case SameWindow():
            size = first.size
            left_bucket = F.expr(floor_div(position(left, first.left), size))
    bands = [c for c in node.conditions if isinstance(c, Band)]
    sides = (
        left.withColumn("_hg_left_bucket", left_bucket),
        right.withColumn("_hg_right_bucket", F.expr(floor_div(position(right, first.right), size))),
    )
    for band in bands:
        here, there = position(left, band.left), position(right, band.right)
        conditions.append(f"{there} >= {here} - {literal(band.before)} AND {there} < {here} + {literal(band.after)}")
    if node.predicate is not None:
        conditions.append(text(node.predicate))
    on = F.expr(" AND ".join(f"({c})" for c in conditions))
    return sides[0].join(sides[1], on).drop("_hg_left_bucket", "_hg_right_bucket")
