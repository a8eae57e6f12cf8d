"""The order-agnostic window join: new tuples meet those that were kept, and are kept while others can still meet them.

A pair leaves as soon as its second tuple is there, whichever that is. Punctuation on one side tells how far the tuples
to come have to be, and so which tuples of the other side none of them can meet any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame

from headgate.bounded.join import hashed, join
from headgate.plan.logical.nodes import Band, Join, Node, SameWindow
from headgate.progress import Punctuation
from headgate.sql.text import moving, position, stacked

Which = Literal["left", "right"]


@dataclass(frozen=True)
class Side:
    """One side of a join: its tuples, and what those of the other side have to meet."""

    node: Join
    which: Which

    @property
    def plan(self) -> Node:
        """What gives its tuples."""
        return self.node.left if self.which == "left" else self.node.right

    @property
    def attributes(self) -> list[str]:
        """Its windowing attributes, by condition."""
        return [getattr(c, self.which) for c in self.node.conditions]

    def live(self, df: DataFrame, told: Mapping[str, Punctuation]) -> DataFrame:
        """The tuples that can still meet one to come, where the other side has come so far."""
        return df.where(self.can_match(df, told))

    def can_match(self, df: DataFrame, told: Mapping[str, Punctuation]) -> str:
        """Whether a tuple can still meet one to come, as SQL, where the other side has come so far."""
        conditions = []
        for condition, own, other in self._conditions:
            p = told.get(other)
            place = position(df, own)
            if p == math.inf:
                # Not as a literal: tuples may be looked at on the way to here, and Spark would not even read them.
                return moving("false", place)
            if p is not None:
                assert not isinstance(p, float)
                match condition:
                    case Band(after=after) if self.which == "left":
                        conditions.append(f"{place} > {moving(p - after, place)}")
                    case Band(before=before):
                        conditions.append(f"{place} >= {moving(p - before, place)}")
                    case SameWindow(size=size):
                        conditions.append(f"{place} >= {moving(p - p % size, place)}")
        return " AND ".join(f"({c})" for c in conditions) or "true"

    def is_spent(self, last: float, told: Mapping[str, Punctuation]) -> bool:
        """Whether no tuple up to this place of the first attribute can meet one to come."""
        condition, _, other = self._conditions[0]
        p = told.get(other)
        if p is None:
            return False
        match condition:
            case Band(after=after) if self.which == "left":
                return last + float(after) <= float(p)
            case Band(before=before):
                return last + float(before) < float(p)
            case SameWindow(size=size):
                return p == math.inf or math.floor(last / float(size)) < math.floor(float(p) / float(size))

    @property
    def _conditions(self) -> list[tuple[Band | SameWindow, str, str]]:
        return [(c, c.left, c.right) if self.which == "left" else (c, c.right, c.left) for c in self.node.conditions]


def sides(node: Join) -> tuple[Side, Side]:
    """Both sides of a join."""
    return Side(node, "left"), Side(node, "right")


def matched(
    node: Join, kept: Sequence[DataFrame | None], new: Sequence[DataFrame | None], by_hash: bool = False
) -> DataFrame | None:
    """The pairs with a tuple of this batch, given left and right; None where there can be none.

    `by_hash` has them brought together in the same way however many there are.
    """
    (kept_left, kept_right), (new_left, new_right) = kept, new
    pairs = []
    if new_left is not None:
        others = [df for df in (kept_right, new_right) if df is not None]
        found = hashed(new_left) if by_hash else new_left
        pairs += [join(node, found, stacked(others), near=True)] if others else []
    if new_right is not None and kept_left is not None:
        pairs.append(join(node, kept_left, hashed(new_right) if by_hash else new_right, near=True))
    return stacked(pairs) if pairs else None
