"""Reading bounded files: which format, which types, and what is said when it cannot be done."""

from __future__ import annotations

import gzip
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from headgate.connect.files.bounded import format_of, read_files
from headgate.errors import Error, SourceError
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CSV = "ts,k,v\n2026-01-01 00:00:01,a,1\n2026-01-01T00:00:02.5Z,b,2.5\n"
JSON = '{"ts": "2026-01-01T00:00:01Z", "k": "a", "v": 1.0}\n{"ts": "2026-01-01T00:00:02.5", "k": "b", "v": 2.5}\n'
ROWS = {(datetime(2026, 1, 1, 0, 0, 1), "a", 1.0), (datetime(2026, 1, 1, 0, 0, 2, 500_000), "b", 2.5)}


def rows(spark: SparkSession, path: Path | str) -> set[tuple[object, ...]]:
    return {tuple(row) for row in read_files(spark, str(path)).select("ts", "k", "v").collect()}


@pytest.mark.parametrize("name", ["a.csv", "a.CSV", "a.json", "a.jsonl", "a.ndjson", "odd [1] {x}*.csv"])
def test_text_formats_by_suffix(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CSV if name.lower().endswith("csv") else JSON)
    (tmp_path / "another.csv").write_text("nothing,like,it\n")
    df = read_files(spark, str(tmp_path / name))
    assert dict(df.dtypes) == {"ts": "timestamp", "k": "string", "v": "double"}
    assert {tuple(row) for row in df.select("ts", "k", "v").collect()} == ROWS


def test_packed_csv(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    assert rows(spark, tmp_path / "a.csv.gz") == ROWS


def test_directories_and_patterns(spark: SparkSession, tmp_path: Path) -> None:
    header, first, second = CSV.splitlines()
    (tmp_path / "in").mkdir()
    for name, row in (("a.csv", first), ("b.csv", second)):
        (tmp_path / "in" / name).write_text(f"{header}\n{row}\n")
    (tmp_path / "in" / "_SUCCESS").write_text("")
    assert rows(spark, tmp_path / "in") == rows(spark, f"{tmp_path}/in/*.csv") == ROWS


def test_parquet_times_without_a_zone_are_wall_clock_times(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "out.parquet")
    made = spark.sql("SELECT TIMESTAMP_NTZ'2026-01-01 00:00:01' AS ts, 'a' AS k, 1.0D AS v")
    made.write.parquet(path)
    df = read_files(spark, path)
    assert df.dtypes[0] == ("ts", "timestamp_ntz") == spark.read.parquet(path).dtypes[0]
    assert tuple(df.collect()[0]) == (datetime(2026, 1, 1, 0, 0, 1), "a", 1.0)


def test_a_given_schema_and_format(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data").write_text(CSV)
    df = read_files(spark, str(tmp_path / "data"), format="csv", schema="ts STRING, k STRING, v DECIMAL(5,2)")
    assert [type_ for _, type_ in df.dtypes] == ["string", "string", "decimal(5,2)"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.csv", None, "nowhere.csv does not exist"),
        ("no*.csv", None, r"no\*.csv does not exist"),
        ("a.txt", CSV, "a.txt: unknown format; Parquet"),
        ("a", CSV, "a: unknown format"),
        ("a.csv", "", "a.csv is empty"),
        ("a.json", '{"ts":\n1}\n', "cannot read .*a.json as JSON lines"),
        ("a.parquet", "no such thing", "cannot read .*a.parquet as parquet"),
    ],
)
def test_what_cannot_be_read_is_named(
    spark: SparkSession, tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=message) as raised:
        read_files(spark, str(tmp_path / name))
    assert "\n" not in str(raised.value)


def test_an_unknown_format_is_named(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match=r"a\.csv: unknown format avro"):
        read_files(spark, "a.csv", format="avro")


@pytest.mark.parametrize("record", ["2026-01-01 00:00:03,c", "2026-01-01 00:00:03,c,3,4"])
def test_a_record_that_does_not_fit_is_an_error(spark: SparkSession, tmp_path: Path, record: str) -> None:
    (tmp_path / "a.csv").write_text(f"{CSV}{record}\n")
    df = read_files(spark, str(tmp_path / "a.csv"))
    # Also when the query needs only columns that the record has.
    with pytest.raises(Error, match=r"a\.csv"), plain_errors():
        df.select("k").collect()


def test_a_directory_of_one_format_only(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no files"):
        format_of(str(tmp_path))
    (tmp_path / "a.csv").write_text(CSV)
    assert format_of(str(tmp_path)) == "csv"
    (tmp_path / "b.json").write_text(JSON)
    with pytest.raises(SourceError, match="several formats, csv and json"):
        format_of(str(tmp_path))


def test_a_path_elsewhere_is_judged_by_its_name() -> None:
    assert format_of("s3://bucket/results.parquet") == "parquet"
    with pytest.raises(SourceError, match="s3://bucket/results: unknown format"):
        format_of("s3://bucket/results")
