"""What footers tell of a stream is what its tuples would tell; where they do not tell it, the tuples are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headgate as hg
from headgate.batch import narrow
from headgate.connect.files.footers import Looked, looked_at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TIMES = [3_000_000, None, 1_000_000, 2_500_001, None, 7_000_000]


def written(folder: Path, name: str, column: pa.Array, **options: Any) -> str:
    path = folder / name
    pq.write_table(pa.table({"ts": column, "v": pa.array(range(len(column)))}), path, row_group_size=2, **options)
    return f"file:{path}"


def test_all_row_groups_of_all_files_are_told(tmp_path: Path) -> None:
    times = written(tmp_path, "one%20day #1.parquet", pa.array(TIMES, pa.timestamp("us", tz="UTC")))
    assert looked_at([times], "ts") == Looked(6, 2, 1_000_000, 7_000_000)
    more = written(tmp_path, "more.parquet", pa.array([8_000_000, None], pa.timestamp("us", tz="UTC")))
    assert looked_at([times, more], "ts") == Looked(8, 3, 1_000_000, 8_000_000)
    assert looked_at([times], "v") == Looked(6, 0, 0, 5)


def test_wall_clock_times_are_told_too(tmp_path: Path) -> None:
    assert looked_at([written(tmp_path, "a", pa.array(TIMES, pa.timestamp("us")))], "ts") == Looked(
        6, 2, 1_000_000, 7_000_000
    )


def test_a_file_of_nothing_but_bad_tuples(tmp_path: Path) -> None:
    path = written(tmp_path, "bad.parquet", pa.array([None, None, None], pa.timestamp("us", tz="UTC")))
    assert looked_at([path], "ts") == Looked(3, 3, None, None)


@pytest.mark.parametrize(
    ("type_", "options"),
    [
        (pa.timestamp("us", tz="UTC"), {"write_statistics": False}),
        (pa.timestamp("ms", tz="UTC"), {}),  # Spark makes microseconds of them.
        (pa.uint64(), {}),
        (pa.float64(), {}),
        (pa.date32(), {}),  # In the time zone of the session.
        (pa.timestamp("us", tz="UTC"), {"use_deprecated_int96_timestamps": True}),
    ],
)
def test_files_that_do_not_tell(tmp_path: Path, type_: pa.DataType, options: dict[str, Any]) -> None:
    told = written(tmp_path, "told.parquet", pa.array(TIMES, pa.timestamp("us", tz="UTC")))
    numbers = pa.array(TIMES, pa.int32() if type_ == pa.date32() else pa.int64())
    other = written(tmp_path, "other.parquet", numbers.cast(type_), **options)
    assert looked_at([told, other], "ts") is None


def test_files_that_are_out_of_reach(tmp_path: Path) -> None:
    assert looked_at([f"file:{tmp_path}/none.parquet"], "ts") is None
    assert looked_at(["s3a://bucket/some.parquet"], "ts") is None
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but not really")
    assert looked_at([f"file:{tmp_path}/broken.parquet"], "ts") is None


@pytest.mark.usefixtures("interpreted")
def test_a_flow_that_asks_footers_says_what_one_says_that_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Bad and late tuples among them, and a query whose WHERE asks for fewer."""
    columns = (
        "CASE WHEN id % 97 = 0 THEN NULL WHEN id % 101 = 0 THEN 5L ELSE id DIV 10 END AS ts",
        "id % 7 AS k",
        "id % 50 AS v",
    )
    folder = str(tmp_path / "tuples")
    spark.range(40_000, numPartitions=4).selectExpr(*columns).write.parquet(folder)
    asked: list[Looked | None] = []

    def run(name: str, footers: bool) -> dict[str, Any]:
        def look(paths: Any, attribute: str) -> Looked | None:
            asked.append(looked_at(paths, attribute) if footers else None)
            return asked[-1]

        flow = hg.Flow(spark, "test", str(tmp_path / name))
        flow.stream("S", hg.sources.files(folder, max_files_per_batch=1), progress=hg.progress("ts", within=100))
        sql = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 400, SLIDE 100, WA ts] FROM S {} GROUP BY k"
        flow.query("all", sql.format(""), policy=hg.estimate(rate=0.06))
        flow.query("some", sql.format("WHERE v < 10").replace("k", "v"), policy=hg.estimate(rate=0.04))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(narrow, "looked_at", look)
            done = flow.run_available()
        answers = {q: sorted(map(tuple, done.results(q).collect())) for q in ("all", "some")}
        counters = {what: done.status()[what] for what in ("rows", "late", "bad", "shed")}
        return {**answers, **counters}

    read = run("read", footers=False)
    assert asked == [None] * 4
    told = run("told", footers=True)
    assert [looked.rows for looked in asked[4:] if looked] == [10_000] * 4
    assert told == read
    assert told["bad"]["S"] > 400
    assert told["late"]["all"] > 0
    assert told["shed"]["some"] > told["shed"]["all"] > 20_000
