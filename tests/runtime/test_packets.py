"""The packet generator: the shape of its rows, and that they depend on the arguments alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from headgate.connect.packets.packets import packets
from headgate.errors import Error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 1)


def test_schema(spark: SparkSession) -> None:
    assert packets(spark, 1).dtypes == [
        ("ts", "timestamp"),
        ("srcIP", "string"),
        ("destIP", "string"),
        ("srcPort", "int"),
        ("destPort", "int"),
        ("len", "int"),
        ("proto", "string"),
        ("flags", "string"),
    ]


def test_the_same_rows_however_they_are_partitioned(spark: SparkSession) -> None:
    one = packets(spark, 2000, disorder=60, partitions=1).collect()
    assert packets(spark, 2000, disorder=60, partitions=7).collect() == one
    assert packets(spark, 2000, disorder=60, partitions=7, seed=1).collect() != one


def test_columns_fit_together(spark: SparkSession) -> None:
    rows = packets(spark, 5000).collect()
    assert {row.proto for row in rows} == {"tcp", "udp", "icmp"}
    assert {row.flags for row in rows if row.proto == "tcp"} == {"SYN", "SYN_ACK", "ACK", "FIN"}
    assert {row.flags for row in rows if row.proto != "tcp"} == {""}
    assert {(row.srcPort, row.destPort) for row in rows if row.proto == "icmp"} == {(0, 0)}
    assert all(0 < row.srcPort < 65536 and 0 < row.destPort < 65536 for row in rows if row.proto != "icmp")
    assert all(28 <= row.len <= 1500 for row in rows)


@pytest.mark.parametrize("zipf", [0.0, 0.8, 1.0, 1.1, 2.0])
def test_hosts_follow_the_power_law(spark: SparkSession, zipf: float) -> None:
    rows, hosts = 20_000, 300
    counts = {
        row.srcIP: row["count"]
        for row in packets(spark, rows, hosts=hosts, zipf=zipf).groupBy("srcIP").count().collect()
    }
    assert counts.keys() <= {f"10.0.{rank // 256}.{rank % 256}" for rank in range(1, hosts + 1)}
    # Five standard deviations of a binomial count around the share of the first rank.
    share = 1 / sum(rank**-zipf for rank in range(1, hosts + 1))
    margin = 5 * (rows * share * (1 - share)) ** 0.5
    assert abs(counts["10.0.0.1"] - rows * share) < margin


def test_sources_and_destinations_are_drawn_apart(spark: SparkSession) -> None:
    same = packets(spark, 5000, zipf=0.0).where("srcIP = destIP").count()
    assert same < 50


def test_times_are_in_order_and_inside_the_span(spark: SparkSession) -> None:
    times = [row.ts for row in packets(spark, 1000, seconds=50).collect()]
    assert times == sorted(times)
    for number, ts in enumerate(times):
        assert timedelta(seconds=number * 0.05) <= ts - START < timedelta(seconds=(number + 1) * 0.05)


def test_no_packet_is_later_than_the_disorder_allows(spark: SparkSession) -> None:
    disorder = 5
    rows = packets(spark, 2000, seconds=100, disorder=disorder).collect()
    delays = [START + timedelta(seconds=(number + 1) * 0.05) - row.ts for number, row in enumerate(rows)]
    assert all(timedelta(0) < delay <= timedelta(seconds=disorder + 0.05) for delay in delays)
    assert max(delays) > timedelta(seconds=0.9 * disorder)
    assert min(row.ts for row in rows) >= START
    times = [row.ts for row in rows]
    assert times != sorted(times)


def test_start_is_utc_whatever_the_session_thinks(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        first = packets(spark, 1, seconds=1, start="2026-03-01").select(F.unix_seconds("ts").alias("at")).first()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert first is not None
    assert first["at"] == datetime(2026, 3, 1).timestamp()


def test_no_rows_is_a_stream_too(spark: SparkSession) -> None:
    assert packets(spark, 0).collect() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", -1),
        ("seconds", 0),
        ("hosts", 0),
        ("hosts", 1 << 24),
        ("zipf", -0.1),
        ("disorder", -1),
        ("start", "noon"),
    ],
)
def test_an_impossible_argument_is_named(spark: SparkSession, name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"rows": 1, name: value}
    with pytest.raises(Error, match=f"packets: {name} must"):
        packets(spark, **arguments)
