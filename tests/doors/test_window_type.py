"""A window type from outside: calendar months, which are not of one length, written with public names only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import reference

DAY = 86_400_000_000
FIRST = datetime(2023, 11, 20)
SUMS, COUNTS = "SELECT k, sum(v) AS s FROM S GROUP BY months(ts), k", "SELECT count(*) AS n FROM S GROUP BY months(ts)"
QUARTERS = "SELECT k, count(*) AS n, max(v) AS m, median(v) AS d FROM S GROUP BY months(ts, 3, 1), k"
SPARK = (
    "SELECT k, sum(v) AS s, date_trunc('MONTH', ts) AS window_start,"
    " date_trunc('MONTH', ts) + INTERVAL 1 MONTH AS window_end FROM {S} GROUP BY ALL"
)
ROWS = [{"ts": FIRST + timedelta(hours=17 * i - i % 5), "k": "abc"[i % 3], "v": i * i % 11} for i in range(300)]


class Months(hg.Cut):
    """Calendar months in UTC, numbered from January 1970."""

    needs_time = True

    def pane(self, place: Any) -> int:
        at = datetime.fromtimestamp(place // 1_000_000, UTC)
        return (at.year - 1970) * 12 + at.month - 1

    def start(self, pane: int) -> int:
        return int(datetime(1970 + pane // 12, pane % 12 + 1, 1, tzinfo=UTC).timestamp()) * 1_000_000

    def pane_sql(self, place: str) -> str:
        date = f"date_from_unix_date(CAST(({place} - pmod({place}, {DAY}L)) div {DAY}L AS INT))"
        return f"(year({date}) - 1970) * 12 + month({date}) - 1"

    def start_sql(self, pane: str) -> str:
        return f"unix_date(add_months(DATE'1970-01-01', CAST({pane} AS INT))) * {DAY}L"


hg.register_window("months", lambda length=1, slide=0: hg.WindowType(Months(), length, slide))


def answers(rows: list[Any], columns: Any, until: datetime = datetime.max) -> list[str]:
    found = [{c: row[c] for c in columns} for row in rows if row["window_end"] <= until]
    return sorted(str(row | {n: float(v) for n, v in row.items() if n in "dnms"}) for row in found)


@pytest.mark.parametrize("strategy", ["eager", "paned"])
@pytest.mark.parametrize("sql", [SUMS, QUARTERS])
def test_evaluated(spark: SparkSession, sql: str, strategy: Any) -> None:
    rows, df = reference.evaluate(sql, S=ROWS), spark.createDataFrame(ROWS)  # type: ignore[type-var]
    assert answers(hg.evaluate(sql, strategy=strategy, S=df).collect(), rows[0]) == answers(rows, rows[0])
    assert sql != SUMS or answers(spark.sql(SPARK, S=df).collect(), rows[0]) == answers(rows, rows[0])


@pytest.mark.parametrize("policy", [hg.exact(), hg.estimate(rate=1.0)])
def test_in_a_flow_that_starts_again(spark: SparkSession, tmp_path: Path, policy: Any) -> None:
    queries = {"sums": SUMS, "counts": COUNTS} | ({"quarters": QUARTERS} if policy == hg.exact() else {})
    late = [{"ts": FIRST, "k": "a", "v": 100}]  # Its month is closed when it comes.
    for number, rows in enumerate((ROWS[:120], ROWS[120:200] + late, ROWS[200:])):
        (tmp_path / "in").mkdir(exist_ok=True)
        table = pa.Table.from_pylist(rows).cast(pa.schema({"ts": pa.timestamp("us", "UTC"), "k": "string", "v": "int64"}))
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
        flow = hg.Flow(spark, "months", str(tmp_path / "checkpoint"))
        source = hg.sources.files(str(tmp_path / "in"), schema="ts TIMESTAMP, k STRING, v BIGINT")
        flow.stream("S", source, progress=hg.progress("ts", within="3 days"))
        for name, sql in queries.items():
            flow.query(name, sql, policy=policy)
        run = flow.run_available()
    assert run.status()["late"]["sums"] == 1
    for name, sql in queries.items():
        expected = reference.evaluate(sql, S=ROWS)
        assert answers(run.results(name).collect(), expected[0]) == answers(expected, expected[0], datetime(2024, 6, 1))
