"""Windows of a registered type, in every shape and with every kind of aggregate: evaluated, and in one flow."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.support import Row, assert_same, collected, frame

import headgate as hg
from headgate import reference

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.plan import Strategy

DAY = 86_400_000_000
SCHEMA = {"ts": "timestamp", "k": "string", "v": "int", "d": "double"}
ROWS: list[Row] = [
    {
        "ts": datetime(1969, 11, 20) + timedelta(hours=17 * i - i % 5),
        "k": "abc"[i % 3],
        "v": i * i % 11,
        "d": float(i % 3),
    }
    for i in range(300)
]
QUERIES = {
    "growing": "SELECT k, sum(v) AS s, median(v) AS m FROM S WHERE v > 2 GROUP BY until(ts), k",
    "gaps": "SELECT k, sum(v) AS s FROM S WHERE v > 2 GROUP BY calendar(ts, 1, 3), k",
    "quarters": "SELECT sum(v) AS s FROM S GROUP BY calendar(ts, 3)",
    "months": "SELECT sum(v) AS s, max(d) AS m FROM S GROUP BY calendar(ts)",
    "values": "SELECT k, median(v) AS s, count(DISTINCT v) AS n FROM S GROUP BY calendar(ts, 2, 1), k",
    "states": "SELECT k, product(d) AS p FROM S GROUP BY calendar(ts, 2, 1), k",
    "nested": "SELECT max(s) AS most [RANGE 100 days, SLIDE 50 days] FROM"
    " (SELECT k, sum(v) AS s FROM S GROUP BY calendar(ts), k)",
}


class Calendar(hg.Cut):
    """Calendar months in UTC."""

    needs_time = True

    def pane(self, place: Any) -> int:
        return int(np.datetime64(int(place), "us").astype("datetime64[M]").astype(int))

    def start(self, pane: int) -> int:
        return int(np.datetime64(pane, "M").astype("datetime64[us]").astype(int))

    def pane_sql(self, place: str) -> str:
        date = f"date_from_unix_date(CAST(({place} - pmod({place}, {DAY}L)) div {DAY}L AS INT))"
        return f"(year({date}) - 1970) * 12 + month({date}) - 1"

    def start_sql(self, pane: str) -> str:
        return f"unix_date(add_months(DATE'1970-01-01', CAST({pane} AS INT))) * {DAY}L"


hg.register_window("calendar", lambda length=1, slide=0: hg.WindowType(Calendar(), length, slide))
hg.register_window("until", lambda: hg.WindowType(Calendar(), growing=True))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("strategy", ["eager", "paned"])
def test_spark_agrees_with_the_reference(spark: SparkSession, tmp_path: Path, strategy: Strategy) -> None:
    df = frame(spark, ROWS, SCHEMA)
    flow = hg.Flow(spark, "months", str(tmp_path))
    flow.stream("S", df, progress=hg.progress("ts", within="300 days"))
    expected = {name: reference.evaluate(sql, {"S": SCHEMA}, S=ROWS) for name, sql in QUERIES.items()}
    for name, sql in QUERIES.items():
        assert_same(collected(hg.evaluate(sql, strategy=strategy, S=df)), expected[name])
        flow.query(name, sql, strategy=strategy)
    run = flow.run_available()
    for name in QUERIES:
        assert_same(collected(run.results(name)), expected[name])
    with pytest.raises(hg.WindowError, match=r"no window of calendar\(ts\) can be dropped: shed by 'estimate'"):
        flow.query("subset", QUERIES["months"], policy=hg.subset(gap=2))
