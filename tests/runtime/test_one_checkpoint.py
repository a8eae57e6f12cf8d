"""Two runs on one checkpoint: one goes on, the other is told what happened, and nothing that is whole is lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.runtime.crash_flow import batches, check, flow, write_files
from tests.runtime.test_recovery import Place, run

import headgate as hg
from headgate.errors import FlowError, StateError
from headgate.testing import Driver, at, drive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")
BATCHES = batches(5)


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    """All that is in a checkpoint and counts; nobody needs the decision of a batch that is committed."""
    files = [f for f in folder.rglob("*") if f.is_file() and f.parent.name != "decisions"]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


@pytest.mark.parametrize("ahead", [1, 4])
def test_the_one_that_comes_later_says_who_was_there(place: Place, ahead: int) -> None:
    place.run(1)
    first, second = place.driver(), place.driver()
    run(first, ahead, BATCHES)
    before, delivered = contents(place.checkpoint), place.delivered()
    with pytest.raises(StateError, match=rf"another run \(process \d+ on .*\) has committed batch {ahead}") as caught:
        run(second, 1, BATCHES)
    assert "new checkpoint" not in str(caught.value)
    assert (contents(place.checkpoint), place.delivered()) == (before, delivered)
    run(first, len(BATCHES), BATCHES)
    check(place.spark, place.sinks, BATCHES)


@pytest.mark.parametrize("step", ["decided", "ingested", "closed", "kept", "delivered"])
def test_one_that_commits_while_the_other_is_in_the_same_batch(place: Place, step: str) -> None:
    place.run(1)
    first, second = place.driver(), place.driver()
    after: dict[str, bytes] = {}

    def meanwhile() -> None:
        run(first, 1, BATCHES)
        after.update(contents(place.checkpoint))

    with at(step, meanwhile), pytest.raises(StateError, match="has committed batch 1 of the checkpoint"):
        run(second, 1, BATCHES)
    assert after
    now = contents(place.checkpoint)
    assert {name: now.get(name) for name in after} == after
    place.finish()


def test_kept_answers_are_those_of_the_run_that_committed_them(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", BATCHES[:2])

    def driver() -> Driver:
        made = hg.Flow(spark, "kept", tmp_path / "checkpoint")
        made.stream("S", hg.sources.files(str(tmp_path / "in")), progress=hg.progress("ts", within=5))
        made.query("tally", "SELECT count(*) AS n [RANGE 10, SLIDE 10] FROM S")
        return drive(made)

    first, second = driver(), driver()
    run(first, 1, BATCHES)
    with pytest.raises(StateError, match="has committed batch 0"):
        run(second, 1, [BATCHES[1]])
    third = driver()
    assert third.answers("tally") == first.answers("tally") != []
    run(third, 1, BATCHES)
    assert len(third.runs) == 2
    assert len(third.answers("tally")) > len(first.answers("tally"))


def test_a_second_run_of_one_process_is_refused(place: Place, tmp_path: Path) -> None:
    write_files(place.source, BATCHES)
    running = flow(place.spark, place.source, place.checkpoint, place.sinks).start(trigger="1 hour")
    (tmp_path / "link").symlink_to(place.checkpoint)
    for path in (place.checkpoint, f"file:{place.checkpoint}/", tmp_path / "link"):
        other = flow(place.spark, place.source, path, place.sinks)
        for begin in (other.start, other.run_available):
            with pytest.raises(FlowError, match=r"flow crash runs on the checkpoint .* in this process already: stop"):
                begin()
    running.stop()
    flow(place.spark, place.source, place.checkpoint, place.sinks).run_available()
    check(place.spark, place.sinks, BATCHES)


class TestNotOfOnePiece:
    @pytest.fixture
    def ran(self, place: Place) -> Place:
        write_files(place.source, BATCHES)
        flow(place.spark, place.source, place.checkpoint, place.sinks).run_available()
        return place

    def refused(self, place: Place, *words: str) -> None:
        before = contents(place.checkpoint)
        with pytest.raises(StateError) as caught:
            flow(place.spark, place.source, place.checkpoint, place.sinks).start()
        assert [word for word in words if word not in str(caught.value)] == []
        assert "new checkpoint" not in str(caught.value)
        assert contents(place.checkpoint) == before

    def test_each_is_told_from_the_others(self, ran: Place, tmp_path: Path) -> None:
        newest = max((ran.checkpoint / "commits").glob("[0-9]*"))
        content = newest.read_bytes()
        newest.write_bytes(content[:-20])
        self.refused(ran, f"the commit {newest} is damaged", "all before it is whole", "put the file back as it was")
        newest.unlink()
        self.refused(
            ran, "has come to batch 4, and its commits to batch 3", "commits are missing", "commits back as it was"
        )
        newest.write_bytes(content)

        log, aside = ran.checkpoint / "source", tmp_path / "aside"
        metadata = (log / "metadata").read_text()
        (log / "metadata").unlink()
        self.refused(ran, f"{log}/metadata is missing")
        (log / "metadata").write_text("{}")
        self.refused(ran, f"{log}/metadata is damaged")
        (log / "metadata").write_text(metadata)
        shutil.move(log, aside)
        self.refused(ran, "has come to batch -1, and its commits to batch 4", f"put {log} back as it was")
        shutil.move(aside, log)

        flow(ran.spark, ran.source, ran.checkpoint, ran.sinks).run_available()
        check(ran.spark, ran.sinks, BATCHES)
