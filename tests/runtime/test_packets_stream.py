"""Packets as a stream: at its pace, by offsets, through real queries, and every row once after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable

from headgate.connect.packets.datasource import PacketStreamReader, RowRange
from headgate.connect.packets.pace import Pace
from headgate.connect.packets.packets import PacketSource
from headgate.connect.packets.rows import PacketRows
from headgate.errors import Error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LINKS = {"main1": 0.6, "main2": 0.4}
SOURCE = PacketSource(
    rate=[(10, 100), (10, 500)], disorder=2, block=3, links=LINKS, skews={"main2": 1}, rows=7000, rows_per_batch=1500
)


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def reader(clock: Clock, rows: int | None = None, rows_per_batch: int | None = None) -> PacketStreamReader:
    packets = PacketRows(rate=[(10, 100), (10, 1000)])
    return PacketStreamReader(Pace(packets, rows, rows_per_batch, clock), packets.columns, 2)


class TestPace:
    def test_live_follows_the_clock_at_the_rate(self) -> None:
        clock = Clock(1000.0)
        live = reader(clock)
        start = live.initialOffset()
        assert start == {"row": 0, "origin": 1000_000000}
        rows = []
        for clock.now in (1000.0, 1001.5, 1010.0, 1011.0):
            start = live.latestOffset(start, live.getDefaultReadLimit())
            rows.append(start["row"])
        assert rows == [0, 150, 1000, 2000]

    def test_live_goes_on_after_a_restart_as_if_it_had_never_stopped(self) -> None:
        clock = Clock(1000.0)
        first = reader(clock)
        offset = first.latestOffset(first.initialOffset(), ReadAllAvailable())
        clock.now = 1005.0
        assert reader(clock).latestOffset(offset, ReadAllAvailable()) == {"row": 500, "origin": 1000_000000}

    def test_live_waits_for_a_clock_that_was_set_back(self) -> None:
        offset = {"row": 300, "origin": 1000_000000}
        assert reader(Clock(1001.0)).latestOffset(offset, ReadAllAvailable()) == offset
        assert reader(Clock(900.0)).latestOffset(offset, ReadAllAvailable()) == offset

    def test_live_may_have_an_end(self) -> None:
        live = reader(Clock(2000.0), rows=700)
        assert live.latestOffset({"row": 0, "origin": 1000_000000}, ReadAllAvailable())["row"] == 700

    def test_what_is_available_now_does_not_grow(self) -> None:
        clock = Clock(1005.0)
        live = reader(clock)
        live.prepareForTriggerAvailableNow()
        start = {"row": 0, "origin": 1000_000000}
        assert live.latestOffset(start, ReadAllAvailable())["row"] == 500
        clock.now = 1006.0
        assert live.latestOffset(start, ReadAllAvailable())["row"] == 500

    def test_so_many_rows_a_batch_until_the_end(self) -> None:
        steady = reader(Clock(0), rows=1000, rows_per_batch=400)
        offset, limit = steady.initialOffset(), steady.getDefaultReadLimit()
        assert offset == {"row": 0}
        assert limit == ReadAllAvailable()
        rows = []
        for _ in range(4):
            offset = steady.latestOffset(offset, limit)
            rows.append(offset["row"])
        assert rows == [400, 800, 1000, 1000]

    @pytest.mark.parametrize(("start", "end", "sizes"), [(0, 10, [5, 5]), (7, 8, [1]), (3, 3, [])])
    def test_partitions_cover_the_rows_between_two_offsets(self, start: int, end: int, sizes: list[int]) -> None:
        ranges = reader(Clock(0)).partitions({"row": start}, {"row": end})
        assert [part.last - part.first for part in ranges] == sizes
        assert [row for part in ranges for row in range(part.first, part.last)] == [*range(start, end)]
        assert all(isinstance(part, RowRange) for part in ranges)


class TestRead:
    def test_a_range_of_offsets_is_a_slice_of_all_rows(self, spark: SparkSession) -> None:
        rows = SOURCE.read(spark, 0, 7000).collect()
        assert len(rows) == 7000
        assert SOURCE.read(spark, 1234, 5678).collect() == rows[1234:5678]
        assert SOURCE.read(spark, 5, 5).collect() == []

    def test_only_the_columns_asked_for_are_made(self, spark: SparkSession) -> None:
        some = SOURCE.read(spark, 0, 500, columns=["link", "ts"])
        assert some.columns == ["link", "ts"]
        assert some.collect() == SOURCE.read(spark, 0, 500).select("link", "ts").collect()
        assert SOURCE.read(spark, 0, 500, columns=[]).count() == 500

    def test_the_schema(self, spark: SparkSession) -> None:
        assert SOURCE.schema() == SOURCE.read(spark, 0, 1).schema == SOURCE.stream(spark).schema
        assert SOURCE.schema().names[-1] == "link"
        assert PacketSource().schema().names[-1] == "flags"

    def test_the_source_can_be_named_to_spark(self, spark: SparkSession) -> None:
        SOURCE.stream(spark)
        options: dict[str, Any] = {"packets": SOURCE.to_json(), "first": 10, "last": 20}
        again = spark.read.format("headgate_packets").options(**options).load()
        assert again.collect() == SOURCE.read(spark, 10, 20).collect()

    def test_a_wrong_range_or_column_is_named(self, spark: SparkSession) -> None:
        with pytest.raises(Error, match=r"packets: rows must be read from 0 on and forwards, not from 5 to 4"):
            SOURCE.read(spark, 5, 4)
        with pytest.raises(Error, match=r"packets: columns must be some of ts, .*, not port"):
            SOURCE.read(spark, 0, 4, columns=["ts", "port"])


def write(rows: DataFrame, folder: Path, **trigger: Any) -> StreamingQuery:
    writer = rows.writeStream.format("parquet").trigger(**trigger)
    return writer.start(str(folder / "rows"), checkpointLocation=str(folder / "checkpoint"))


def offsets(folder: Path) -> list[dict[str, int]]:
    """The end offset of each batch."""
    logs = sorted((folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda log: int(log.name))
    return [json.loads(log.read_text().splitlines()[-1]) for log in logs]


def assert_each_once(spark: SparkSession, found: DataFrame, source: PacketSource, rows: int) -> None:
    expected = source.read(spark, 0, rows)
    assert found.count() == rows
    assert found.select(expected.columns).exceptAll(expected).isEmpty()


class TestQueries:
    def test_a_query_over_all_there_is(self, spark: SparkSession, tmp_path: Path) -> None:
        write(SOURCE.stream(spark), tmp_path, availableNow=True).awaitTermination()
        assert [offset["row"] for offset in offsets(tmp_path)] == [1500, 3000, 4500, 6000, 7000]
        assert_each_once(spark, spark.read.parquet(str(tmp_path / "rows")), SOURCE, 7000)

    def test_a_query_that_is_stopped_and_started_again(self, spark: SparkSession, tmp_path: Path) -> None:
        short = PacketSource(rate=100, rows=4000, rows_per_batch=1500)
        query = write(short.stream(spark), tmp_path, processingTime="0 seconds")
        query.processAllAvailable()
        query.stop()
        long = PacketSource(rate=100, rows=9000, rows_per_batch=2000)
        write(long.stream(spark), tmp_path, availableNow=True).awaitTermination()
        assert [offset["row"] for offset in offsets(tmp_path)] == [1500, 3000, 4000, 6000, 8000, 9000]
        assert_each_once(spark, spark.read.parquet(str(tmp_path / "rows")), long, 9000)

    def test_a_batch_that_failed_comes_again_with_the_same_rows(self, spark: SparkSession, tmp_path: Path) -> None:
        def keep(attempt: str, failing: int | None) -> StreamingQuery:
            def sink(batch: DataFrame, number: int) -> None:
                batch.write.parquet(str(tmp_path / attempt / f"batch={number}"))
                if number == failing:
                    raise RuntimeError("no room")

            writer = SOURCE.stream(spark).writeStream.trigger(availableNow=True).foreachBatch(sink)
            return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

        with pytest.raises(StreamingQueryException, match="no room"):
            keep("first", failing=2).awaitTermination()
        keep("second", failing=None).awaitTermination()
        first, second = (spark.read.parquet(str(tmp_path / attempt)) for attempt in ("first", "second"))
        failed, again = (each.where("batch = 2").drop("batch") for each in (first, second))
        assert failed.count() == again.count() == 1500
        assert failed.exceptAll(again).isEmpty()
        assert_each_once(spark, first.where("batch < 2").unionByName(second), SOURCE, 7000)

    def test_a_live_stream_keeps_its_origin(self, spark: SparkSession, tmp_path: Path) -> None:
        # So fast that all rows have arrived when Spark asks for the first time.
        for rows in (2000, 5000):
            query = write(PacketSource(rate=1e9, rows=rows).stream(spark), tmp_path, processingTime="0 seconds")
            query.processAllAvailable()
            query.stop()
        first, second = offsets(tmp_path)
        assert (first["row"], second["row"]) == (2000, 5000)
        assert first["origin"] == second["origin"]
        assert_each_once(spark, spark.read.parquet(str(tmp_path / "rows")), PacketSource(rate=1e9), 5000)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rows": -1}, "rows=-1: give a whole number, 0 or more"),
        ({"rows": 10, "rows_per_batch": 0}, "rows_per_batch=0: give a whole number, 1 or more"),
        ({"rows_per_batch": 10}, "rows must be given with rows_per_batch"),
        ({"partitions": 0}, "partitions=0: give a whole number, 1 or more"),
        ({"rate": -1}, "rate must be above 0"),
    ],
)
def test_an_impossible_parameter_is_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(Error, match=f"^packets: {message}"):
        PacketSource(**parameters)
