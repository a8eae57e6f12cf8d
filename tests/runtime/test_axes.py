"""Windows over numbers that are not whole, in one flow: partials by window and by pane."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from tests.support import Row, assert_same, collected

import headgate as hg
from headgate import reference
from headgate.testing import drive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.plan import Strategy

#: A tuple's place is a whole number made into a value of the type.
AXES: dict[str, tuple[str, Callable[[int], float | Decimal]]] = {
    "Single": ("float", lambda n: n / 4),
    "Double": ("double", lambda n: n / 4),
    "Exact": ("decimal(9,2)", lambda n: Decimal(n) / 4),
}
WINDOWS = ["RANGE 10, SLIDE 3", "RANGE 2.5, SLIDE 0.75"]
STRATEGIES: tuple[Strategy, ...] = ("eager", "paned")
AGGREGATES = "sum(v) AS s, count(*) AS n, min(x) AS lo, median(v) AS m"


@pytest.mark.usefixtures("interpreted")
def test_a_flow_has_windows_over_fractions(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(5)
    flow = hg.Flow(spark, "axes", str(tmp_path))
    schemas, queries = {}, {}
    rows: dict[str, list[Row]] = {}
    for stream, (type_, value) in AXES.items():
        schemas[stream] = {"x": type_, "k": "string", "v": "int"}
        places = sorted(rng.randint(-40, 80) for _ in range(30))
        rows[stream] = [{"x": value(place), "k": rng.choice("ab"), "v": rng.randint(0, 9)} for place in places]
        ddl = ", ".join(map(" ".join, schemas[stream].items()))
        flow.stream(stream, hg.sources.files(tmp_path / stream, schema=ddl), progress=hg.progress("x", ordered=True))
        for i, window in enumerate(WINDOWS):
            sql = f"SELECT k, {AGGREGATES} [{window}, WA x] FROM {stream} GROUP BY k"
            for strategy in STRATEGIES:
                queries[f"{stream}_{i}_{strategy}"] = stream, sql
                flow.query(f"{stream}_{i}_{strategy}", sql, strategy=strategy)
    driver = drive(flow)
    for batch, part in enumerate((slice(None, 17), slice(17, None))):
        driver.batch({stream: rows[stream][part] for stream in AXES}, ended=list(AXES) if batch else [])
    for name, (stream, sql) in queries.items():
        expected = reference.evaluate(sql, schemas, tables=[], **{stream: rows[stream]})
        assert expected, name
        assert_same(collected(driver.results(name)), expected)
