"""A window type from outside: calendar months, which are not of one length, written with public names only."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import reference

DAY, FIRST = 86_400_000_000, datetime(2023, 11, 20)
ROWS = [{"ts": FIRST + timedelta(hours=17 * i - i % 5), "k": "abc"[i % 3], "v": i * i % 11} for i in range(300)]
LATE = {"ts": FIRST, "k": "a", "v": 100}  # Its month is closed when it comes.
SUMS, COUNTS = "SELECT k, sum(v) AS s FROM S GROUP BY months(ts), k", "SELECT count(*) AS n FROM S GROUP BY months(ts)"
QUARTERS = "SELECT k, count(*) AS n, sum(v) AS s FROM S GROUP BY months(ts, 3, 1), k"
SPARK = "SELECT k, sum(v) AS s, date_trunc('MONTH', ts) AS window_start FROM {S} GROUP BY ALL"


class Months(hg.Cut):  # In UTC, numbered from January 1970.
    def pane(self, place: Any) -> int:
        return int(np.datetime64(int(place), "us").astype("datetime64[M]").astype(int))

    def start(self, pane: int) -> int:
        return int(np.datetime64(pane, "M").astype("datetime64[us]").astype(int))

    def pane_sql(self, place: str) -> str:
        date = f"date_from_unix_date(CAST(({place} - pmod({place}, {DAY}L)) div {DAY}L AS INT))"
        return f"(year({date}) - 1970) * 12 + month({date}) - 1"

    def start_sql(self, pane: str) -> str:
        return f"unix_date(add_months(DATE'1970-01-01', CAST({pane} AS INT))) * {DAY}L"


hg.register_window("months", lambda length=1, slide=0: hg.WindowType(Months(), length, slide))


def answers(rows: Any) -> list[str]:
    return sorted(str([row[c] for c in ("window_start", *"kns") if c in row]) for row in rows)


@pytest.mark.parametrize(("sql", "strategy"), [(SUMS, None), (QUARTERS, "eager"), (QUARTERS, "paned")])
def test_evaluated_and_in_flows_that_start_again(spark: SparkSession, tmp_path: Path, sql: str, strategy: Any) -> None:
    df, expected = spark.createDataFrame(ROWS), reference.evaluate(sql, S=ROWS)
    assert answers(hg.evaluate(sql, strategy=strategy, S=df).collect()) == answers(expected)
    assert sql != SUMS or answers(spark.sql(SPARK, S=df).collect()) == answers(expected)
    for rows in (ROWS[:120], [*ROWS[120:200], LATE], ROWS[200:]):
        spark.createDataFrame(rows).coalesce(1).write.mode("append").parquet(f"{tmp_path}/in")
        flow = hg.Flow(spark, "months", f"{tmp_path}/checkpoint")
        flow.stream("S", hg.sources.files(f"{tmp_path}/in"), progress=hg.progress("ts", within="3 days"))
        for name, text in {"q": sql, "e": sql, "n": COUNTS}.items():
            flow.query(name, text, policy=hg.estimate(rate=1.0) if name == "e" else hg.exact(), strategy=strategy)
        run = flow.run_available()
    assert run.status()["late"]["q"] == 1
    closed = [row for row in expected if row["window_end"] < datetime(2024, 6, 2)]
    assert answers(run.results("q").collect()) == answers(run.results("e").collect()) == answers(closed)
