"""What Headgate makes of the offsets that a source tells, and of a source that goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headgate as hg
from headgate.connect.files.columns import columns_of
from headgate.connect.input import Need, Share
from headgate.connect.offsets import OffsetDataSource, OffsetReader, _packed

ALL = ReadAllAvailable()


@dataclass
class Counter(hg.Source):
    """Numbers up to an end, at most `most` in a batch."""

    end: Any = 0
    most: int = 100
    gives: str = "id BIGINT"
    lock: Any = field(default=None)

    def schema(self, spark: SparkSession) -> str:  # noqa: ARG002
        return "id BIGINT"

    def begin(self) -> int:
        return 0

    def latest(self, start: Any) -> Any:
        if self.end is None:
            raise OSError(f"nothing answers after {start}")
        return self.end

    def batch_end(self, start: int, end: int) -> int:
        return min(start + self.most, end)

    def read(self, spark: SparkSession, start: int, end: int, columns: Sequence[str]) -> DataFrame:
        assert list(columns) == ["id"]
        return spark.createDataFrame([(i,) for i in range(start, end)], self.gives)


def test_a_batch_takes_what_there_is_unless_the_source_says_less() -> None:
    reader = OffsetReader(Counter(end=250))
    assert reader.initialOffset() == 0
    offsets = [0]
    while (offset := reader.latestOffset(offsets[-1], ALL)) != offsets[-1]:
        offsets.append(offset)
    assert offsets == [0, 100, 200, 250]


def test_a_run_over_what_is_there_does_not_follow_the_stream() -> None:
    source = Counter(end=150)
    reader = OffsetReader(source)
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(0, ALL) == 100
    source.end = 900
    assert [reader.latestOffset(100, ALL), reader.latestOffset(150, ALL)] == [150, 150]


def test_an_offset_that_is_the_same_keeps_its_text() -> None:
    before = {"0": 5, "1": 7}
    assert list(OffsetReader(Counter(end={"1": 7, "0": 5})).latestOffset(before, ALL)) == ["0", "1"]


def test_a_packed_source_is_asked_as_it_was() -> None:
    reader = OffsetDataSource({"source": _packed(Counter(end=7))}).streamReader(None)  # type: ignore[arg-type]
    assert reader.latestOffset(0, ALL) == 7


def test_an_error_names_the_source_and_its_method() -> None:
    reader = OffsetDataSource({"source": _packed(Counter(end=None))}).streamReader(None)  # type: ignore[arg-type]
    with pytest.raises(hg.SourceError, match=r"the source Counter failed in latest\(\): OSError: nothing answers"):
        reader.latestOffset(0, ALL)


def test_a_source_that_cannot_be_pickled_is_told_what_to_do() -> None:
    with pytest.raises(hg.SourceError, match=r"the source Counter cannot be sent .*: keep plain values in it"):
        _packed(Counter(lock=threading.Lock()))


class Offset:
    """An offset as Spark's plan has it."""

    def __init__(self, json: str) -> None:
        self.json = lambda: json

    def get(self) -> Offset:
        return self


class Leaf:
    """The leaf of a plan that stands for a stream."""

    def __init__(self, start: int, end: int) -> None:
        self.startOffset, self.endOffset = lambda: Offset(str(start)), lambda: Offset(str(end))

    def getClass(self) -> Leaf:  # noqa: N802
        return self

    def getSimpleName(self) -> str:  # noqa: N802
        return "StreamingDataSourceV2Relation"


@pytest.mark.usefixtures("interpreted")
class TestRows:
    def taken(self, spark: SparkSession, source: Counter, start: int, end: int) -> list[list[int]]:
        need = Need(spark, columns_of(source.schema(spark)), ["id"])
        return [[row.id for row in p.df.collect()] for p in source.take(need, Share(leaf=Leaf(start, end))).pieces]

    def test_the_rows_between_two_offsets(self, spark: SparkSession) -> None:
        assert self.taken(spark, Counter(), 3, 6) == [[3, 4, 5]]
        assert self.taken(spark, Counter(gives="id BIGINT"), 3, 3) == []

    @pytest.mark.parametrize(("gives", "words"), [("id INT", "gives id as int"), ("ID BIGINT", "gives no column id")])
    def test_rows_that_are_not_as_declared(self, spark: SparkSession, gives: str, words: str) -> None:
        with pytest.raises(hg.SourceError, match=f"the source Counter {words}, and its schema says id bigint"):
            self.taken(spark, Counter(gives=gives), 0, 2)
