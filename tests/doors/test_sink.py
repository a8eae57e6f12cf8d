"""A sink from outside the package, by public names alone: what comes again replaces what came before."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headgate as hg

VISITS = [(second, "ab"[second % 2]) for second in range(20)]


class Notes(hg.Sink):
    """A text file for every batch, with a line for every answer."""

    def __init__(self, folder: Path, fails: bool = False) -> None:
        self.folder, self.fails = folder, fails

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        lines = [f"{row.window_start} {row.user} {row.n}\n" for row in answers.collect()]
        (self.folder / f"{name}-{batch}").write_text("".join(lines))
        if self.fails:
            raise OSError("the disk is full")

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        return spark.read.text(f"{self.folder}/{name}-*") if any(self.folder.iterdir()) else None

    def check(self, spark: SparkSession, name: str) -> None:  # noqa: ARG002
        if not self.folder.is_dir():
            raise hg.FlowError(f"the notes of {name} need the folder {self.folder}")

    def describe(self) -> str:
        return f"notes '{self.folder.name}'"


@pytest.mark.usefixtures("interpreted")
def test_answers_are_there_once(spark: SparkSession, tmp_path: Path) -> None:
    def flow_into(sink: Notes) -> hg.Flow:
        flow = hg.Flow(spark, "visits", tmp_path / "checkpoint")
        rows = spark.createDataFrame(VISITS, "ts INT, user STRING")
        flow.stream("Visits", rows, progress=hg.progress("ts", ordered=True))
        flow.query("visitors", "SELECT user, count(*) AS n [RANGE 5, SLIDE 5] FROM Visits GROUP BY user")
        flow.sink("visitors", sink)
        return flow

    with pytest.raises(hg.FlowError, match="the notes of visitors need the folder"):
        flow_into(Notes(tmp_path / "notes"))
    (tmp_path / "notes").mkdir()
    with pytest.raises(hg.FlowError, match="the sink of query visitors failed: OSError: the disk is full"):
        flow_into(Notes(tmp_path / "notes", fails=True)).run_available()
    flow = flow_into(Notes(tmp_path / "notes"))
    lines = sorted(row.value for row in flow.run_available().results("visitors").collect())
    expected = [f"{w} {user} {2 + (w % 2 == (user == 'b'))}" for w in range(0, 20, 5) for user in "ab"]
    assert lines == sorted(expected)
    assert "  into notes 'notes'" in flow.explain()
