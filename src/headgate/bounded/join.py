"""Window joins in Spark: always by an equality, of keys or of buckets of time, so that no join is a nested loop."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.plan.logical.nodes import Band, Join, SameWindow
from headgate.sql.text import floor_div, literal, own, position, text

_LEFT, _RIGHT = own("left bucket"), own("right bucket")


def join(node: Join, left: DataFrame, right: DataFrame, near: bool = False) -> DataFrame:
    """The pairs of tuples that meet all window conditions and the predicate.

    Where all tuples are `near` each other in time anyway, as those that a flow keeps, keys that have to be equal are
    enough to bring pairs together. Else a key may have tuples all over the stream, and buckets of time keep them apart.
    """
    conditions = [] if node.predicate is None else [text(node.predicate)]
    for c in node.conditions:
        here, there = position(left, c.left), position(right, c.right)
        match c:
            case Band(before=before, after=after):
                conditions.append(f"{there} >= {here} - {literal(before)} AND {there} < {here} + {literal(after)}")
            case SameWindow(size=size):
                conditions.append(f"{floor_div(here, size)} = {floor_div(there, size)}")
    first = node.conditions[0]
    if not isinstance(first, Band) or (near and node.keys):
        return left.join(right, _all_of(conditions))
    # A right tuple is in one bucket; a left tuple is tried in every bucket that its band touches.
    here, there, size = position(left, first.left), position(right, first.right), first.before + first.after
    lowest = floor_div(f"{here} - {literal(first.before)}", size)
    highest = floor_div(f"{here} + {literal(first.after)}", size)
    tried = left.withColumn(_LEFT.plain, F.explode(F.expr(f"sequence({lowest}, {highest})")))
    found = right.withColumn(_RIGHT.plain, F.expr(floor_div(there, size)))
    return tried.join(found, _all_of([f"{_LEFT} = {_RIGHT}", *conditions])).drop(_LEFT.plain, _RIGHT.plain)


def _all_of(conditions: list[str]) -> Column:
    return F.expr(" AND ".join(f"({c})" for c in conditions))


def hashed(df: DataFrame) -> DataFrame:
    """One side of a join, of which each task makes a table that the tuples of the other side are looked up in.

    Else Spark has every task look up all tuples of a side if they are few, and sorts both sides if they are many.
    """
    return df.hint("shuffle_hash")
