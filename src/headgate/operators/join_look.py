"""A look at the new tuples of a join: how many, of which keys, how far they reach, and what is left out of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from headgate.operators.estimates import taken
from headgate.operators.join_dropping import CLASS, SampledSide, ShedSide
from headgate.operators.sql import moving, position
from headgate.shedding.join_plan import JoinPlan, PairSubset
from headgate.shedding.join_statistics import KEYS, Seen

#: So many keys are followed by the sketch of frequent ones: it is exact for streams with fewer.
_TRACKED = 8192
#: So many tuples of a side are enough to know which keys are frequent, and one in so many keys to know how many.
_COUNTED, _DISTINCT = 100_000, 16
_KEY, _TAKEN = "_hg_key", "_hg_taken"
#: The classes of keys that are told apart where tuples are counted.
CLASSES = ("frequent keys", "other keys", "no key")


def look(side: ShedSide, df: DataFrame, plan: JoinPlan, tuples: int | None) -> list[DataFrame]:
    """Rows about the new tuples of a side, of which none has been left out yet, each with a part of the figures.

    Where it matters which keys are frequent, it is told how many tuples there are, more or less.
    """
    counted = [] if tuples is None or side.key is None else [_keys(side.key, df, tuples)]
    return [_counts(side, df, plan), *counted]


def _counts(side: ShedSide, df: DataFrame, plan: JoinPlan) -> DataFrame:
    place = f"CAST({position(df, side.place)} AS DOUBLE)"
    if isinstance(plan, PairSubset):
        df = side.classed(df, plan)
        kept, looking = side.inserted(plan), side.probes(plan)
    else:
        assert isinstance(side, SampledSide)
        kept, looking = side.succeeds, "true"
    key = side.key or "0L"
    known = f"coalesce({CLASS} > 0, false)" if CLASS in df.columns else "false"
    figures = [
        "count(*) AS tuples",
        f"count({key}) AS keyed",
        f"min({place}) AS lowest",
        f"max({place}) AS highest",
    ]
    conditions = (known, f"({key}) IS NOT NULL AND NOT ({known})", f"({key}) IS NULL")
    for number, condition in enumerate(conditions):
        figures += [
            f"count_if({condition}) AS tuples_{number}",
            f"count_if(({condition}) AND ({kept})) AS kept_{number}",
            f"count_if(({condition}) AND ({looking}) AND NOT ({kept})) AS looking_{number}",
        ]
    return df.selectExpr(*figures)


def _keys(key: str, df: DataFrame, tuples: int) -> DataFrame:
    """How many keys there are, and which are frequent. A part of the tuples is enough to know.

    Sketches take several times as long as counting, and so would counting beside them.
    """
    part = min(_COUNTED / max(tuples, 1), 1.0)
    keyed = df.selectExpr(f"{key} AS {_KEY}", f"{taken(part)} AS {_TAKEN}").where(
        f"{_TAKEN} OR {_KEY} % {_DISTINCT} = 0"
    )
    return keyed.selectExpr(
        f"{_DISTINCT} * approx_count_distinct({_KEY}) FILTER (WHERE {_KEY} % {_DISTINCT} = 0) AS keys",
        f"approx_top_k(CASE WHEN {_TAKEN} THEN {_KEY} END, {KEYS}, {_TRACKED}) AS frequent",
        f"any_value({moving(f'{part!r}D', _KEY)}) AS part",
    )


def seen(row: Mapping[str, Any]) -> Seen:
    """What such rows say of the tuples, taken together."""
    counts = row.get("frequent") or []
    frequent = {f["item"]: f["count"] / row["part"] for f in counts if f["item"] is not None}
    return Seen(row["tuples"], row["keyed"], max(1, row.get("keys") or 1), frequent, row["lowest"], row["highest"])


def took_part(row: Mapping[str, Any], how: str) -> int:
    """How many tuples were kept, or were "looking" for others without being kept."""
    return sum(row[f"{how}_{number}"] for number in range(len(CLASSES)))


def left_out(row: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """By class of keys, how many tuples came, were not kept but looked for others, and were dropped."""
    found = {}
    for number, name in enumerate(CLASSES):
        tuples, kept, looking = (row[f"{what}_{number}"] for what in ("tuples", "kept", "looking"))
        if tuples:
            found[name] = {"tuples": tuples, "not kept": looking, "dropped": tuples - kept - looking}
    return found
