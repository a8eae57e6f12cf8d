"""The room for tuples of a join: which to let go when there are more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.shed.join.eviction import Worth
from headgate.shed.join.sql import ShedSide
from headgate.sql.text import literal, position

_WORTH, _UNTIL = "_hg_worth", "_hg_until"


@dataclass(frozen=True)
class Room:
    """The room for tuples of a join. The more partners come for a tuple in a batch, the more it is worth.

    How long it could stay decides only between equals: once it is gone, another takes its place.
    """

    stage: str
    tuples: int
    sides: Mapping[str, ShedSide]
    worth: Mapping[str, Worth]

    def ranks(self, df: DataFrame, which: str) -> list[str]:
        """What the tuples of a side are ranked by, as SQL."""
        side, worth = self.sides[which], self.worth[which]
        value = f"{worth.others!r}D"
        if side.key is not None and worth.known:
            cases = " ".join(
                f"WHEN {side.key} IN ({', '.join(f'{k}L' for k in keys)}) THEN {w!r}D" for w, keys in worth.known
            )
            value = f"CASE WHEN ({side.key}) IS NULL THEN 0D {cases} ELSE {value} END"
        until = f"CAST({position(df, side.place)} AS DOUBLE) + {literal(side.window)}"
        return [f"{value} AS {_WORTH}", f"{until} AS {_UNTIL}"]

    def most_useful(self, tuples: DataFrame) -> DataFrame:
        """As many as there is room for."""
        ranked = tuples.orderBy(F.col(_WORTH).desc(), F.col(_UNTIL).desc())
        return ranked.limit(self.tuples).drop(_WORTH, _UNTIL)
