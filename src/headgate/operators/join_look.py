"""A look at the new tuples of a join: how many, of which keys, how far they reach, and what is left out of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from headgate.operators.join_dropping import CLASS, SampledSide, ShedSide
from headgate.operators.sql import position
from headgate.shedding.join_plan import JoinPlan, PairSubset
from headgate.shedding.join_statistics import KEYS, Seen

#: So many keys are followed by the sketch of frequent ones: it is exact for streams with fewer.
_TRACKED = 8192
#: The classes of keys that are told apart where tuples are counted.
CLASSES = ("frequent keys", "other keys", "no key")


def look(side: ShedSide, df: DataFrame, plan: JoinPlan, counts_keys: bool) -> DataFrame:
    """One row about the new tuples of a side, of which none has been left out yet."""
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
    if counts_keys and side.key is not None:
        figures += [f"approx_count_distinct({key}) AS keys", f"approx_top_k({key}, {KEYS}, {_TRACKED}) AS frequent"]
    else:
        figures += ["1L AS keys", "CAST(array() AS ARRAY<STRUCT<item: BIGINT, count: BIGINT>>) AS frequent"]
    conditions = (known, f"({key}) IS NOT NULL AND NOT ({known})", f"({key}) IS NULL")
    for number, condition in enumerate(conditions):
        figures += [
            f"count_if({condition}) AS tuples_{number}",
            f"count_if(({condition}) AND ({kept})) AS kept_{number}",
            f"count_if(({condition}) AND ({looking}) AND NOT ({kept})) AS looking_{number}",
        ]
    return df.selectExpr(*figures)


def seen(row: Mapping[str, Any]) -> Seen:
    """What such a row says of the tuples."""
    frequent = {found["item"]: found["count"] for found in row["frequent"] if found["item"] is not None}
    return Seen(row["tuples"], row["keyed"], max(1, row["keys"]), frequent, row["lowest"], row["highest"])


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
