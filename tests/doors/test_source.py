"""A source from outside the package, by public names alone: a stop in the middle loses and repeats nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headgate as hg


class Journal(hg.Source):
    """The lines of a file as they are appended, "second user", at most eight in a batch."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def schema(self, spark: SparkSession) -> str:  # noqa: ARG002
        return "ts INT, user STRING"

    def begin(self) -> int:
        return 0

    def latest(self, start: int) -> int:
        return max(start, len(self.path.read_text().splitlines()))

    def batch_end(self, start: int, end: int) -> int:
        return min(start + 8, end)

    def read(self, spark: SparkSession, start: int, end: int, columns: Sequence[str]) -> DataFrame:
        lines = [line.split() for line in self.path.read_text().splitlines()[start:end]]
        return spark.createDataFrame([(int(ts), user) for ts, user in lines], self.schema(spark)).select(*columns)


@pytest.mark.usefixtures("interpreted")
def test_every_tuple_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    answers: dict[int, list[tuple[int, str, int]]] = {}
    visits = [f"{second} {'ab'[second % 2]}\n" for second in range(31)]

    def run(failing_at: int) -> None:
        def deliver(rows: DataFrame, batch: int) -> None:
            answers[batch] = sorted(map(tuple, rows.select("window_start", "user", "n").collect()))
            if len(answers) == failing_at:
                raise OSError("the disk is full")

        flow = hg.Flow(spark, "visits", tmp_path / "checkpoint")
        flow.stream("Visits", Journal(tmp_path / "journal"), progress=hg.progress("ts", ordered=True))
        flow.query("visitors", "SELECT user, count(*) AS n [RANGE 5, SLIDE 5] FROM Visits GROUP BY user")
        flow.sink("visitors", deliver)
        flow.run_available()

    (tmp_path / "journal").write_text("".join(visits[:20]))
    with pytest.raises(hg.FlowError, match="the disk is full"):
        run(failing_at=2)
    (tmp_path / "journal").write_text("".join(visits))
    run(failing_at=-1)
    found = [row for rows in answers.values() for row in rows]
    assert found == [(w, u, 2 + (w % 2 == (u == "b"))) for w in range(0, 30, 5) for u in "ab"]
