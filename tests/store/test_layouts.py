"""A checkpoint that an earlier version wrote opens and goes on: nothing is lost, and nothing comes twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.store.kept_flow import FILES, FLOWS, HERE, QUERIES, SCHEMAS, TO_FILES, arrived_in, run, unpack, write_files
from tests.support import assert_same, collected

import headgate as hg

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from tests.support import Row

#: The archives: the layout of the manifest, and the flow.
ARCHIVES = [(6, "exact"), (6, "watched"), (7, "exact")]
#: What `status()` says of a whole life of a flow. It does not depend on where a run begins.
LASTING = ("batch", "progress", "closed", "rows", "answers", "late", "bad", "shed", "dropped")
#: Which of all answers are there at the end, where `hg.evaluate` knows nothing of progress.
DUE = {
    "sliding": "window_end <= {progress}",
    "holistic": "window_end <= {progress}",
    "landmark": "window_end <= {progress}",
    "nested": "window_end <= {progress}",
    "unloaded": "window_end <= {progress}",
    "pairs": "true",
    "first": "ts < {progress}",
    "by_rows": "window_end <= {rows}",
}


@dataclass(frozen=True)
class Outcome:
    """What a flow has given by the end of its files."""

    status: dict[str, Any]
    answers: dict[str, list[Row]]
    late: list[Row]


@pytest.fixture(scope="module")
def uninterrupted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """The outcome of a flow over all of its files in one run, by the name of the flow."""
    known: dict[str, Outcome] = {}

    def of(name: str) -> Outcome:
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            write_files(folder, range(FILES))
            known[name] = outcome(spark, folder, name)
        return known[name]

    return of


def outcome(spark: SparkSession, folder: Path, name: str) -> Outcome:
    """Runs a flow over the files that are there, and takes what it has given since its first batch."""
    done = run(spark, folder, FLOWS[name])

    def given(query: str) -> DataFrame:
        return spark.read.parquet(f"{folder}/sinks/{query}") if query in TO_FILES else done.results(query)

    answers = {query: rows_of(given(query)) for query in FLOWS[name].queries}
    return Outcome(done.status(), answers, rows_of(done.results("late", output="late")))


def rows_of(df: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in df.collect()]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("layout", "name"), ARCHIVES)
def test_a_kept_checkpoint_goes_on(
    spark: SparkSession, tmp_path: Path, uninterrupted: Callable[[str], Outcome], layout: int, name: str
) -> None:
    unpack(HERE / f"checkpoint-{layout}-{name}.tar.xz", tmp_path)
    write_files(tmp_path, range(FLOWS[name].files, FILES))
    got, wanted = outcome(spark, tmp_path, name), uninterrupted(name)
    assert {part: got.status[part] for part in LASTING} == {part: wanted.status[part] for part in LASTING}
    for query in FLOWS[name].queries:
        assert_same(got.answers[query], wanted.answers[query])
    assert_same(got.late, wanted.late)


@pytest.mark.usefixtures("interpreted")
def test_what_is_wanted_is_right(spark: SparkSession, uninterrupted: Callable[[str], Outcome]) -> None:
    wanted = uninterrupted("exact")
    # In the order in which the files came: a folder is read in another one.
    arrived = [row for number in range(FILES) for row in arrived_in("S", number)]
    stream = spark.createDataFrame(arrived, SCHEMAS["S"])
    places = {"progress": wanted.status["progress"]["S"], "rows": wanted.status["rows"]["S"]}
    for query, due in DUE.items():
        expected = collected(hg.evaluate(QUERIES[query], S=stream).where(due.format(**places)))
        own = {*expected[0], "sampling_rate"}
        answers = [{c: v for c, v in row.items() if c in own} for row in wanted.answers[query]]
        assert all(row.pop("sampling_rate") == 1.0 for row in answers)
        assert_same(answers, expected)
