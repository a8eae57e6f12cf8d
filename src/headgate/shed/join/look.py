"""A look at the new tuples of a join: how many, of which keys, how far they reach, and what is left out of them.

They are looked at on the way to where they are kept, as a job of its own would read them all once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from headgate.shed.estimate.sql import taken
from headgate.shed.join.plan import JoinPlan, PairSubset
from headgate.shed.join.sql import CLASS, SampledSide, ShedSide
from headgate.shed.join.statistics import KEYS, SideSeen
from headgate.sql.text import own, position

#: So many keys are followed by the sketch of frequent ones: it is exact for streams with fewer.
_TRACKED = 32_768
#: One in so many keys is enough to know how many there are.
_DISTINCT = 16
_PLACE, _KEY, _CELL, _ONE_IN_MANY, _COUNTED = map(own, ("place", "key", "cell", "one", "counted"))
_SEEN = "seen"
#: The classes of keys that are told apart where tuples are counted.
CLASSES = ("frequent keys", "other keys", "no key")
#: What a tuple does: it is kept, or looks for others without being kept, or nothing.
_DOES = _KEPT, _LOOKING, _NOTHING = range(3)


class Look:
    """A look at the new tuples of a side, before any is left out.

    Where it matters which keys are frequent, it is told in which `part` of the tuples they are counted.
    """

    def __init__(self, side: ShedSide, plan: JoinPlan, part: float | None) -> None:
        self._side, self._plan, self._observed = side, plan, Observation()
        self._part = part if side.key is not None else None

    def over(self, df: DataFrame) -> DataFrame:
        """The tuples, looked at on their way."""
        side, plan = self._side, self._plan
        if isinstance(plan, PairSubset):
            df = side.classed(df, plan)
            kept, looking = side.inserted(plan), side.probes(plan)
        else:
            assert isinstance(side, SampledSide)
            kept, looking = side.succeeds, side.looks
        known = f"{CLASS} > 0" if CLASS.plain in df.columns else "false"
        row = f"CASE WHEN {_KEY} IS NULL THEN 2 WHEN {known} THEN 0 ELSE 1 END"
        does = f"CASE WHEN {kept} THEN {_KEPT} WHEN {looking} THEN {_LOOKING} ELSE {_NOTHING} END"
        wanted = {
            _CELL: f"{len(_DOES)} * ({row}) + ({does})",
            _PLACE: f"CAST({position(df, side.place)} AS DOUBLE)",
        }
        figures = [f"min({_PLACE}) AS lowest", f"max({_PLACE}) AS highest"]
        figures += [f"count_if({_CELL} = {cell}) AS cell_{cell}" for cell in range(len(CLASSES) * len(_DOES))]
        if self._part is not None:
            wanted[_ONE_IN_MANY] = f"CASE WHEN {_KEY} % {_DISTINCT} = 0 THEN {_KEY} END"
            wanted[_COUNTED] = f"CASE WHEN {taken(self._part)} THEN {_KEY} END"
            figures += [
                f"approx_count_distinct({_ONE_IN_MANY}) AS keys",
                f"approx_top_k({_COUNTED}, {KEYS[type(plan)]}, {_TRACKED}) AS frequent",
            ]
        # What is observed is worked out before: Spark compiles no code for what sketches take in.
        looked_at = df.withColumn(_KEY.plain, F.expr(side.key or "0L"))
        looked_at = looked_at.withColumns({name.plain: F.expr(sql) for name, sql in wanted.items()})
        observed = looked_at.observe(self._observed, F.expr(f"struct({', '.join(figures)})").alias(_SEEN))
        return observed.drop(*(name.plain for name in (_KEY, *wanted)))

    @cached_property
    def _figures(self) -> dict[str, Any]:
        return dict(self._observed.get[_SEEN].asDict())

    def _count(self, does: int, rows: Iterable[int] = range(len(CLASSES))) -> int:
        """How many tuples of some classes of keys do so."""
        return sum(int(self._figures[f"cell_{len(_DOES) * row + does}"]) for row in rows)

    @property
    def tuples(self) -> int:
        """How many came."""
        return sum(map(self._count, _DOES))

    @property
    def kept(self) -> int:
        """How many are kept."""
        return self._count(_KEPT)

    @property
    def looking(self) -> int:
        """How many looked for others without being kept."""
        return self._count(_LOOKING)

    def seen(self) -> SideSeen:
        """What they tell about later ones."""
        figures, frequent = self._figures, dict[int, float]()
        if self._part is not None:
            counted = {f["item"]: f["count"] / self._part for f in figures["frequent"] or []}
            frequent = {item: count for item, count in counted.items() if item is not None}
        keyed = sum(self._count(does, range(len(CLASSES) - 1)) for does in _DOES)
        keys = max(1, _DISTINCT * (figures.get("keys") or 0))
        return SideSeen(self.tuples, keyed, keys, frequent, figures["lowest"], figures["highest"])

    def left_out(self) -> dict[str, dict[str, int]]:
        """By class of keys, how many tuples came, were not kept but looked for others, and were dropped."""
        found = {}
        for row, name in enumerate(CLASSES):
            kept, looking, nothing = (self._count(does, [row]) for does in _DOES)
            if tuples := kept + looking + nothing:
                found[name] = {"tuples": tuples, "not kept": looking, "dropped": nothing}
        return found
