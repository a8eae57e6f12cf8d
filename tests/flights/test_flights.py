"""A year of flights as a live stream: what nine queries answer in one flow, DuckDB answers over the same tuples."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.flights.data import FLIGHTS, WEATHER, data, write_files
from tests.support import assert_same, collected

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb
    from pyspark.sql import SparkSession
    from tests.support import Row

#: The first so many months of the year; make flights takes all of them.
MONTHS = int(os.environ.get("HEADGATE_MONTHS", 1))
FILES, FILES_A_BATCH = 10 + 2 * MONTHS, 4
WITHIN = "21 hours 40 minutes"
QUERIES = {
    # How busy is each carrier, and how late?
    "carriers": "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay [RANGE 6 hours, SLIDE 1 hour]"
    " FROM Flights GROUP BY carrier HAVING count(*) > 20",
    # How bad was each day at each airport?
    "worst": "SELECT origin, max(dep_delay) AS worst, median(dep_delay) AS middle, percentile(dep_delay, 0.9) AS tenth"
    " [RANGE TUMBLING 1 day] FROM Flights GROUP BY origin",
    # How many flights have there been so far, and how many of them took place?
    "so_far": "SELECT origin, count(*) AS planned, count(dep_delay) AS flown [RANGE ALL, SLIDE 1 day]"
    " FROM Flights GROUP BY origin",
    # How late are the last thousand that we were told of?
    "trend": "SELECT avg(dep_delay) AS delay, count(*) FILTER (WHERE dep_delay IS NULL) AS cancelled"
    " [RANGE 1000 rows, SLIDE 100 rows] FROM Flights",
    # And the last hundred of each carrier?
    "own_trend": "SELECT carrier, avg(dep_delay) AS delay, max(distance) AS farthest"
    " [RANGE 100 rows, SLIDE 40 rows, PA carrier] FROM Flights GROUP BY carrier",
    # Spot checks: what was due in the hour before every 250th flight that we are told of?
    "checks": "SELECT count(*) AS flights, sum(distance) AS distance"
    " [RANGE 1 hour, RATTR ts, SLIDE 250 rows, SATTR row_num] FROM Flights",
    # And before every 250th in the order of the schedule?
    "ranked": "SELECT origin, count(*) AS flights [RANGE 1 hour, RATTR ts, SLIDE 250 rows, SATTR rank(ts)]"
    " FROM Flights GROUP BY origin",
    # Which flights were late around strong gusts?
    "gusts": "SELECT f.ts AS due, w.ts AS measured, f.carrier, f.flight, f.dep_delay, w.gust"
    " FROM Flights AS f [RANGE 1 hour, WA ts], Weather AS w [RANGE 2 hours, WA ts]"
    " WHERE f.origin = w.origin AND f.dep_delay > 30 AND w.gust > 25",
    # The busiest hour of each day, by planes that had not left from there in the twelve hours before.
    "busiest": "SELECT origin, max(planes) AS planes [RANGE 1 day, SLIDE 1 day] FROM ("
    " SELECT origin, count(*) AS planes [RANGE 1 hour, SLIDE 1 hour, WA ts] FROM"
    " (SELECT DISTINCT ON (tailnum, origin) ts, tailnum, origin FROM Flights [RANGE 12 hours, WA ts])"
    " GROUP BY origin) GROUP BY origin",
}

HOUR = 3_600_000_000
#: The windows of a flight by their ids: those that hold its place x begin at w * slide.
IDS = "SELECT *, unnest(range((floor(({x} - {range}) / {slide}))::BIGINT + 1, (floor({x} / {slide}))::BIGINT + 1)) AS w"
TIMES = "make_timestamp(w * {slide}) AS window_start, make_timestamp(w * {slide} + {range}) AS window_end"
ROWS = "w * {slide} AS window_start, w * {slide} + {range} AS window_end"
BY_TUPLE = """
    WITH ends AS (SELECT DISTINCT ts AS window_end FROM ({ordered}) WHERE place % 250 = 0 AND ts < $now)
    SELECT {columns}, window_end - INTERVAL 1 HOUR AS window_start, window_end
    FROM ends JOIN Flights ON ts > window_end - INTERVAL 1 HOUR AND ts <= window_end GROUP BY ALL"""
#: The same in DuckDB, each as plainly as it can be said; what is not closed yet is not there.
BY_DUCKDB = {
    "carriers": f"SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay, {TIMES}"
    f" FROM ({IDS} FROM Flights) GROUP BY carrier, w HAVING count(*) > 20 AND window_end <= $now".format(
        x="epoch_us(ts)", range=6 * HOUR, slide=HOUR
    ),
    "worst": "SELECT origin, max(dep_delay) AS worst, median(dep_delay) AS middle,"
    f" quantile_cont(dep_delay, 0.9) AS tenth, {TIMES} FROM ({IDS} FROM Flights)"
    " GROUP BY origin, w HAVING window_end <= $now".format(x="epoch_us(ts)", range=24 * HOUR, slide=24 * HOUR),
    "so_far": "SELECT origin, count(*) AS planned, count(dep_delay) AS flown, NULL AS window_start, window_end"
    " FROM (SELECT DISTINCT date_trunc('day', ts)::TIMESTAMP + INTERVAL 1 DAY AS window_end FROM Flights)"
    " JOIN Flights ON ts < window_end GROUP BY ALL HAVING window_end <= $now",
    "trend": f"SELECT avg(dep_delay) AS delay, count(*) FILTER (dep_delay IS NULL) AS cancelled, {ROWS}"
    f" FROM ({IDS} FROM Flights) GROUP BY w HAVING window_end <= (SELECT count(*) FROM Flights)".format(
        x="row_num", range=1000, slide=100
    ),
    "own_trend": (
        "WITH own AS (SELECT *, row_number() OVER (PARTITION BY carrier ORDER BY row_num) - 1 AS x FROM Flights),"
        f" totals AS (SELECT carrier, count(*) AS total FROM Flights GROUP BY carrier), placed AS ({IDS} FROM own)"
        f" SELECT carrier, avg(dep_delay) AS delay, max(distance) AS farthest, {ROWS}"
        " FROM placed JOIN totals USING (carrier) GROUP BY carrier, w, total HAVING window_end <= total"
    ).format(x="x", range=100, slide=40),
    "checks": BY_TUPLE.format(
        ordered="SELECT ts, row_num AS place FROM Flights",
        columns="count(*) AS flights, sum(distance)::BIGINT AS distance",
    ),
    "ranked": BY_TUPLE.format(
        ordered="SELECT ts, row_number() OVER (ORDER BY ts) - 1 AS place FROM Flights",
        columns="origin, count(*) AS flights",
    ),
    "gusts": "SELECT f.ts AS due, w.ts AS measured, f.carrier, f.flight, f.dep_delay, w.gust"
    " FROM Flights AS f JOIN Weather AS w ON f.origin = w.origin"
    " AND w.ts >= f.ts - INTERVAL 2 HOURS AND w.ts < f.ts + INTERVAL 1 HOUR WHERE f.dep_delay > 30 AND w.gust > 25",
    "busiest": """
        WITH planes AS (SELECT DISTINCT ts, tailnum, origin FROM Flights),
             first AS (SELECT * FROM planes
                       QUALIFY coalesce(ts - lag(ts) OVER (PARTITION BY tailnum, origin ORDER BY ts)
                                        >= INTERVAL 12 HOURS, true)),
             hours AS (SELECT origin, date_trunc('hour', ts) AS hour, count(*) AS planes FROM first
                       GROUP BY origin, hour),
             days AS (SELECT origin, max(planes) AS planes, date_trunc('day', hour) AS window_start FROM hours
                      GROUP BY origin, window_start)
        SELECT *, window_start + INTERVAL 1 DAY AS window_end FROM days WHERE window_end <= $now""",
}


@pytest.mark.usefixtures("interpreted")
def test_flights_are_answered_as_duckdb_does(spark: SparkSession, tmp_path: Path) -> None:
    with data(MONTHS) as connection:
        write_files(connection, tmp_path, FILES)
        expected = {name: rows(connection, sql) for name, sql in BY_DUCKDB.items()}
    flow = hg.Flow(spark, "flights", str(tmp_path / "checkpoint"))
    for name, schema, rule in (
        ("Flights", FLIGHTS, hg.progress("ts", within=WITHIN)),
        ("Weather", WEATHER, hg.progress("ts", ordered=True)),
    ):
        files = hg.sources.files(str(tmp_path / name), schema=schema, max_files_per_batch=FILES_A_BATCH)
        flow.stream(name, files, progress=rule)
    for name, sql in QUERIES.items():
        flow.query(name, sql)
    run = flow.run_available()
    assert sum(run.status()["late"].values()) == 0
    different = {}
    for name, own in expected.items():
        assert own, f"{name} has no answer, which shows nothing"
        try:
            assert_same(collected(run.results(name)), own)
        except AssertionError as error:
            different[name] = str(error)
    assert not different


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    """What DuckDB answers when the flow has come as far as its rule lets it."""
    [(now,)] = connection.execute(f"SELECT max(ts) - INTERVAL '{WITHIN}' FROM Flights").fetchall()
    found = connection.execute(sql, {"now": now} if "$now" in sql else None)
    names = [column[0] for column in found.description or []]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
