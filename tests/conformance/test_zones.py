"""Time in any zone: a session's zone, and its summer time, never move what a window over time holds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T
from tests.support import Row

import headgate as hg
from headgate import reference
from headgate.sql.text import bound, position, quoted, stacked

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


#: Zones with both days of the year on which their clocks change, or of others.
ZONES = {
    "UTC": ("2026-03-08", "2026-11-01"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "Asia/Kolkata": ("2026-03-08", "2026-11-01"),
}
#: A wall-clock time, a point in time, a day.
ATTRIBUTES = ("nt", "ts", "d")
EPOCH, MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)
#: Windows that plain Spark has, too, with the arguments of its window().
SPARKS = {
    "sliding": ("[RANGE 2 hours, SLIDE 30 minutes, WA {a}]", "'2 hours', '30 minutes'"),
    "tumbling": ("[RANGE 1 hour, WA {a}]", "'1 hour'"),
    "days": ("[RANGE 2 days, SLIDE 1 day, WA {a}]", "'2 days', '1 day'"),
}
SUMS = "k, count(*) AS n, sum(v) AS s, first(v) AS fv, max(v) AS hi"
QUERIES = {
    **{name: f"SELECT {SUMS} {clause} FROM S GROUP BY k" for name, (clause, _) in SPARKS.items()},
    "gaps": f"SELECT {SUMS} [RANGE 20 minutes, SLIDE 2 hours, WA {{a}}] FROM S GROUP BY k",
    "origin": "SELECT k, count(*) AS n, window.start AS b FROM S"
    " GROUP BY window({a}, '2 hours', '1 hour', '15 minutes'), k",
    "by partition": "SELECT k, sum(v) AS s [RANGE 3 hours, SLIDE 1 hour, WA {a}, PA k] FROM S",
    "landmark": "SELECT count(*) AS n, sum(v) AS s [RANGE ALL, SLIDE 1 day, WA {a}] FROM S",
    "every tuple": "SELECT count(*) AS n [RANGE 2 hours, RATTR {a}, SLIDE 3 rows, SATTR row_num] FROM S",
    "by rank": "SELECT k, max(v) AS hi [RANGE 2 hours, RATTR {a}, SLIDE 2 rows, SATTR rank({a})] FROM S GROUP BY k",
    "nested": "SELECT max(n) AS n [RANGE 4 hours, SLIDE 2 hours] FROM"
    " (SELECT k, count(*) AS n [RANGE 30 minutes, WA {a}] FROM S GROUP BY k)",
    "join": "SELECT a.{a} AS x, b.{a} AS y, a.v AS v, b.v AS w FROM S AS a [RANGE 40 minutes, WA {a}],"
    " S AS b [RANGE 1 hour, WA {a}] WHERE a.k = b.k",
    "tumbling join": "SELECT a.{a} AS x, b.v AS w FROM S AS a, S AS b [RANGE TUMBLING 1 hour, WA {a}] WHERE a.k = b.k",
    "distinct": "SELECT DISTINCT ON (k) k, {a} FROM S [RANGE 1 hour, WA {a}]",
}
#: Those that a strategy makes a difference to.
BOTH_WAYS = ("sliding", "landmark", "by rank")
#: Those that go by places alone are left to the flow: what holds in one zone holds in all, if places do.
EVALUATED = (*SPARKS, "origin", "gaps", "landmark", "by rank", "join", "distinct")


@contextmanager
def in_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def tuples(zone: str) -> list[tuple[str, str, int]]:
    """Times all around both changes of the clocks, in no order, with duplicates: the middle of the night above all."""
    random = Random(zone)
    times = []
    for day in map(datetime.fromisoformat, ZONES[zone]):
        times += [day + timedelta(minutes=30 * i) for i in range(-2, 12)]
        times += [
            day + timedelta(minutes=random.randrange(-600, 1800), microseconds=random.randrange(10**6))
            for _ in "12345678"
        ]
    times += random.choices(times, k=6)
    random.shuffle(times)
    return [(f"{at}", random.choice("ab"), random.randrange(9)) for at in times]


def stream(spark: SparkSession, zone: str) -> DataFrame:
    """The tuples, and one without any time."""
    rows = spark.createDataFrame([*tuples(zone), (None, "a", 1)], "at STRING, k STRING, v INT")
    instants = "timestamp_micros(unix_micros(CAST(at || ' UTC' AS TIMESTAMP_LTZ))) AS ts"
    return rows.selectExpr("CAST(at AS TIMESTAMP_NTZ) AS nt", instants, "CAST(at AS DATE) AS d", "k", "v").coalesce(1)


def told(answers: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """The rows of several answers, with times as places, in one job."""
    parts = []
    for name, df in answers.items():
        places = [
            f"{position(df, f.name) if isinstance(f.dataType, T.DatetimeType) else quoted(f.name)} AS {quoted(f.name)}"
            for f in df.schema
            if f.name != "sampling_rate"
        ]
        row = F.to_json(F.struct(*map(F.expr, places)), {"ignoreNullFields": "false"})
        parts.append(df.select(F.lit(name).alias("name"), row.alias("row")))
    found: dict[str, list[Row]] = {name: [] for name in answers}
    for name, row in stacked(parts).collect():
        found[name].append(json.loads(row))
    return {name: in_order(rows) for name, rows in found.items()}


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(({c: row[c] for c in sorted(row)} for row in rows), key=repr)


def referred(rows: Sequence[Row]) -> list[Row]:
    """An answer of the reference in the same form."""
    return in_order([{c: _placed(v) for c, v in row.items()} for row in rows])


def _placed(value: Any) -> Any:
    return (value - EPOCH) // MICROSECOND if isinstance(value, datetime) else value


def ours(df: DataFrame, queries: Mapping[str, str]) -> dict[str, list[Row]]:
    """What the reference says: it knows of no zones, and gets each time as the point in UTC that it stands for."""
    places = df.selectExpr(*(f"{position(df, a)} AS {a}" for a in ATTRIBUTES), "k", "v").collect()
    rows = [
        {c: EPOCH + v * MICROSECOND if c in ATTRIBUTES and v is not None else v for c, v in row.asDict().items()}
        for row in places
    ]
    schema = {**dict.fromkeys(ATTRIBUTES, "timestamp"), "k": "string", "v": "int"}
    found = {name: referred(reference.evaluate(sql, {"S": schema}, S=rows)) for name, sql in queries.items()}
    assert all(found.values()), "a case without an answer shows nothing"
    return found


def of_each(queries: Mapping[str, str]) -> dict[str, str]:
    """Queries by each of the attributes."""
    return {f"{name} {a}": sql.format(a=a) for a in ATTRIBUTES for name, sql in queries.items()}


def by_spark(df: DataFrame, windows: Mapping[str, tuple[str, str]]) -> dict[str, list[Row]]:
    """The windows that plain Spark has, by plain Spark."""
    df.createOrReplaceTempView("in_a_zone")
    found = {}
    for a in ATTRIBUTES:
        for name, (_, arguments) in windows.items():
            sums = f"count(*) AS n, sum(v) AS s, min_by(v, struct({a}, v)) AS fv, max(v) AS hi"
            grouped = f"SELECT window({a}, {arguments}) AS w, k, {sums} FROM in_a_zone GROUP BY 1, k"
            found[f"{name} {a}"] = df.sparkSession.sql(
                f"SELECT k, n, s, fv, hi, w.start AS window_start, w.end AS window_end FROM ({grouped})"
            )
    return told(found)


def by_duckdb(zone: str) -> list[Row]:
    """The tumbling windows of wall-clock times by DuckDB, whose timestamps have no zone either."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE S (nt TIMESTAMP, k VARCHAR, v INTEGER)")
        connection.executemany("INSERT INTO S VALUES (?, ?, ?)", tuples(zone))
        found = connection.execute(
            "SELECT k, count(*) AS n, CAST(sum(v) AS BIGINT) AS s, first(v ORDER BY nt, v) AS fv, max(v) AS hi,"
            " epoch_us(time_bucket(INTERVAL '1 hour', nt)) AS window_start, window_start + 3600000000 AS window_end"
            " FROM S GROUP BY ALL"
        )
        names = [column[0] for column in found.description or []]
        return in_order([dict(zip(names, row, strict=True)) for row in found.fetchall()])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("zone", ZONES)
def test_windows_in_a_zone(spark: SparkSession, zone: str) -> None:
    with in_zone(spark, zone):
        df = stream(spark, zone).localCheckpoint()
        names = EVALUATED if zone == "America/New_York" else (*SPARKS, "origin")
        queries = of_each({name: QUERIES[name] for name in names})
        expected = ours(df, queries)
        assert by_spark(df, SPARKS).items() <= expected.items()
        assert by_duckdb(zone) == expected["tumbling nt"]
        answers = {name: hg.evaluate(sql, S=df, strategy="paned") for name, sql in queries.items()}
        types = {a: {type_ for _, type_ in answers[f"sliding {a}"].dtypes[-3:-1]} for a in ATTRIBUTES}
        assert types == {"nt": {"timestamp_ntz"}, "ts": {"timestamp"}, "d": {"timestamp"}}
        assert told(answers) == expected
        both = {name for name in queries if name.rpartition(" ")[0] in BOTH_WAYS}
        eager = {name: hg.evaluate(queries[name], S=df, strategy="eager") for name in both}
        assert told(eager) == {name: expected[name] for name in both}


@pytest.mark.usefixtures("interpreted")
def test_windows_of_a_flow_in_a_zone(spark: SparkSession, tmp_path: Path) -> None:
    """Half an hour goes missing, and one comes twice."""
    with in_zone(spark, zone := "Australia/Lord_Howe"):
        df = stream(spark, zone).localCheckpoint()
        queries = of_each({name: sql for name, sql in QUERIES.items() if name not in ("days", "gaps", "by partition")})
        flow = hg.Flow(spark, "zones", str(tmp_path / "checkpoint"))
        flow.stream("S", df)
        for name, sql in queries.items():
            flow.query(name.replace(" ", "_"), sql, strategy="eager" if name == "sliding nt" else None)
        run = flow.run_available()
        assert told({name: run.results(name.replace(" ", "_")) for name in queries}) == ours(df, queries)


@pytest.mark.usefixtures("interpreted")
def test_progress_of_wall_clock_times_and_days(spark: SparkSession, tmp_path: Path) -> None:
    """In files whose footers tell how far they go, with nested queries, to files that are read again."""
    with in_zone(spark, zone := "America/New_York"):
        (tmp_path / "in").mkdir()
        known = [(datetime.fromisoformat(at), k, v) for at, k, v in sorted(tuples(zone))]
        for number, part in enumerate((known[:20], known[20:])):
            columns = zip(*((at, at.date(), k, v) for at, k, v in part), strict=True)
            types = (pa.timestamp("us"), pa.date32(), pa.string(), pa.int32())
            arrays = [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)]
            path = tmp_path / "in" / f"{number}.parquet"
            pq.write_table(pa.table(arrays, names=["nt", "d", "k", "v"]), path)
            os.utime(path, (number, number))
        flow = hg.Flow(spark, "progress", str(tmp_path / "checkpoint"))
        ddl = "nt TIMESTAMP_NTZ, d DATE, k STRING, v INT"
        source = hg.sources.files(str(tmp_path / "in"), schema=ddl, max_files_per_batch=1)
        flow.stream("Walls", source, progress=hg.progress("nt", within="20 minutes"))
        flow.stream("Days", source, progress=hg.progress("d", within="1 day"))
        hours = "SELECT k, count(*) AS n [RANGE 1 hour, WA {a}] FROM {s} GROUP BY k"
        nested = "SELECT sum(n) AS n [RANGE 4 hours, SLIDE 2 hours] FROM ({inner})"
        queries, streams = dict[str, str](), {"nt": "Walls", "d": "Days"}
        for a, stream_ in streams.items():
            queries[f"hours_{a}"] = hours.format(a=a, s=stream_)
            queries[f"nested_{a}"] = nested.format(inner=queries[f"hours_{a}"])
        for name, sql in queries.items():
            flow.query(name, sql, policy=hg.estimate(rate=1.0) if name == "hours_nt" else None)
            flow.sink(name, hg.sinks.parquet(str(tmp_path / name)))
        run = flow.run_available()
        assert not any(run.status()["late"].values())
        rows = spark.createDataFrame(known, "nt TIMESTAMP_NTZ, k STRING, v INT").selectExpr(
            "*", "CAST(nt AS DATE) AS d"
        )
        exact = told({n: hg.evaluate(sql, Walls=rows, Days=rows) for n, sql in queries.items()})
        for name in queries:
            delivered = spark.read.parquet(str(tmp_path / name))
            assert dict(delivered.dtypes)["window_start"] == ("timestamp_ntz" if name.endswith("nt") else "timestamp")
            (answers,) = told({name: delivered.drop("n_low", "n_high")}).values()
            last = max(row["window_end"] for row in answers)
            assert answers == [row for row in exact[name] if row["window_end"] <= last]
            # All but what reaches into the last day of either rule is there.
            assert last > max(row["window_end"] for row in exact[name]) - (2 * 24 + 8) * 3_600_000_000


def test_places_of_all_times(spark: SparkSession) -> None:
    """From the first year to the last one, to the microsecond; windows have their ends there, as those of Spark."""
    texts = [
        "0001-01-01 00:00:00",
        "0001-01-01 00:00:00.000001",
        "1582-10-10 05:06:07.123456",
        "1883-11-18 12:03:58",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00",
        "2026-03-08 02:30:00",
        "9999-12-31 23:59:59.999999",
    ]
    with in_zone(spark, "America/New_York"):
        times = "CAST(at AS TIMESTAMP_NTZ) AS nt, CAST(at AS TIMESTAMP_LTZ) AS ts, CAST(at AS DATE) AS d"
        df = spark.createDataFrame([(at,) for at in texts], "at STRING").selectExpr("*", *times.split(", "))
        placed = df.select("*", *(F.expr(position(df, a)).alias(f"p_{a}") for a in ATTRIBUTES))
        back = [f"{bound(df, a, f'p_{a}')} = {a} AS b_{a}" for a in ATTRIBUTES]
        found = placed.selectExpr("at", "p_nt", *back).collect()
        for at, place, *same in found:
            assert place == (datetime.fromisoformat(at) - EPOCH) // MICROSECOND
            assert same == [True] * 3, at
        for a in ATTRIBUTES:
            window = F.window(a, "90 minutes", "90 minutes", "7 minutes")
            theirs = df.where(f"{a} IS NOT NULL").select(F.expr(position(df, a)).alias("p"), window.alias("w"))
            starts = "p - pmod(p - 420000000L, 5400000000L)"
            start, end = bound(df, a, starts), bound(df, a, f"{starts} + 5400000000L")
            assert theirs.where(f"w.start <> {start} OR w.end <> {end}").count() == 0
