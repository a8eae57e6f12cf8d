"""An overload whatever is measured: no clock, no count and no value ends a flow."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headgate as hg
from headgate.protocol.decision import Drops
from headgate.protocol.figures import Figures, StreamFigures
from headgate.protocol.manifest import ProgressPart, WindowsPart
from headgate.shed.join.plan import restored
from headgate.shed.join.statistics import SideSeen
from headgate.shed.live.ahead import Ahead
from headgate.shed.live.shedding import Shedding
from headgate.testing import drive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from headgate.shed.policy import Policy
    from headgate.testing import Driver

AGGREGATE = "SELECT {k} count(*) AS n, sum(v) AS s [RANGE 10, SLIDE 5, WA ts] FROM S{g}"
JOIN = "SELECT a.ts AS x, b.ts AS y, a.v FROM S AS a [RANGE 10, WA ts], S AS b [RANGE 5, WA ts] WHERE a.k = b.k"
QUERIES: dict[str, tuple[str, Policy]] = {
    "estimated": (AGGREGATE.format(k="k,", g=" GROUP BY k"), hg.estimate()),
    "low": (AGGREGATE.format(k="v,", g=" WHERE v > 1 GROUP BY v"), hg.estimate(priority=-1)),
    "windows": (AGGREGATE.format(k="", g=""), hg.subset(gap=3)),
    "groups": (AGGREGATE.format(k="v + k AS g,", g=" GROUP BY v + k"), hg.subset(by="group")),
    "pairs": (JOIN, hg.subset(max_state=100)),
    "some_pairs": (JOIN, hg.sample()),
    "of_pairs": (f"SELECT count(*) AS n [RANGE 10, WA x] FROM ({JOIN})", hg.estimate()),
    "exact": (AGGREGATE.format(k="", g=" WHERE k > 1"), hg.exact()),
}


@pytest.fixture(scope="module")
def driver(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Driver:
    flow = hg.Flow(spark, "starved", str(tmp_path_factory.mktemp("starved")))
    source = spark.readStream.format("rate").load().selectExpr("value AS ts", "value AS k", "value AS v")
    flow.stream("S", source, progress=hg.progress("ts", within=5))
    for name, (sql, policy) in QUERIES.items():
        flow.query(name, sql, policy=policy)
    return drive(flow, overload=hg.overload(5.0))


counts = st.sampled_from([0, 1]) | st.integers(0, 10**15)
spans = st.floats(0, 1e9) | st.sampled_from([0.0, 1e-9])
wild = st.none() | st.floats() | st.integers(-(2**70), 2**70)


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """What was measured of a batch."""
    return {
        "amount": draw(st.none() | st.floats(0, 1e15)),
        "rows": draw(counts),
        "interval": draw(st.none() | spans),
        "seconds": draw(spans),
        "further": draw(st.integers(0, 10**9)),
        "closed": draw(st.integers(-5, 10**6)),
        "told": draw(st.none() | st.integers(-(10**9), 10**9)),
        "due": draw(counts),
        "answers": draw(counts),
        "partials": draw(counts),
        "sums": draw(wild),
        "outlook": [draw(st.none() | st.floats()), draw(counts), draw(st.none() | st.floats())],
        "pairs": draw(counts),
        "keys": draw(st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.floats(0, 1e15), max_size=4)),
    }


@given(st.lists(batches(), min_size=1, max_size=14))
@settings(max_examples=60)
def test_a_plan_is_made_whatever_is_measured(driver: Driver, measured: Sequence[dict[str, Any]]) -> None:
    promise = hg.overload(5.0)
    plan, policies = (driver.levels, driver.stages, driver.queries), {n: p for n, (_, p) in QUERIES.items()}
    shedding = Shedding(*plan, policies, promise, {})
    manifest = replace(driver.manifest, progress=ProgressPart(highest={"S": 0}))
    for number, seen in enumerate(measured):
        told, due = {"S": seen["told"]}, {False: seen["due"], True: 0}
        decided = shedding.decide(manifest, Ahead({"S": seen["amount"]}, {}, seen["interval"], told, due, now=0))
        assert math.isfinite(decided.predicted)
        assert all(0 <= rate <= 1 for rate in decided.rates.values())
        after = replace(
            manifest,
            batch=number,
            progress=ProgressPart(highest={"S": manifest.progress.highest["S"] + seen["further"]}),
            windows=WindowsPart(closed={"estimated": seen["closed"], "windows": seen["closed"]}),
        )
        sums = dict.fromkeys(shedding.sums(), seen["sums"] or 0.0)
        sums |= {name: abs(value) for name, value in sums.items() if name.startswith("_hg_rows")}
        figures = Figures({"S": StreamFigures(seen["rows"])}, seen["partials"], sums)
        joined(shedding, decided, seen)
        answers = {"estimated": seen["outlook"], "low": seen["outlook"]}
        shedding.observe(
            decided,
            {"S": seen["amount"]},
            figures,
            answers,
            (manifest, after),
            seen["answers"],
            seen["seconds"],
            seen["interval"],
        )
        manifest = after
        again = shedding.state()
        shedding = Shedding(*plan, shedding.policies, promise, again)


def joined(shedding: Shedding, decided: Drops, seen: dict[str, Any]) -> None:
    """Lets the joins see a batch."""
    place = float(seen["further"])
    side = SideSeen(seen["rows"], seen["rows"], max(1, len(seen["keys"])), seen["keys"], place, place)
    empty = dict[str, dict[str, int]]
    look = SimpleNamespace(seen=lambda: side, left_out=empty, looking=0, kept=seen["rows"], tuples=seen["rows"])
    plans = {stage: restored(plan) for stage, plan in decided.joins.items()}
    drops: Any = SimpleNamespace(looks={stage: {"left": look, "right": look} for stage in plans}, plans=plans)
    tuples, pairs = {"S": seen["rows"]}, dict.fromkeys(plans, seen["pairs"])
    shedding.joins.observe(drops, tuples, pairs, dict.fromkeys(plans, seen["rows"]))
