"""What breaks under a flow stops it with one clear error; mended, it goes on, and each answer is delivered once."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.crash_flow import QUERIES, Row, batches, check, flow, write_files
from tests.support import assert_same, collected

import headgate as hg
from headgate.errors import Error, FlowError, SourceError, StateError
from headgate.spark.folder import Folder
from headgate.store.layout import sealed, whole
from headgate.testing import Driver, drive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")
BATCHES = batches(5)


class Place:
    """A checkpoint and the sinks of a flow, which is begun anew for each use, as after a crash."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.checkpoint, self.sinks = spark, folder / "checkpoint", folder / "sinks"
        self.source = folder / "source"

    def driver(self) -> Driver:
        return drive(flow(self.spark, self.source, self.checkpoint, self.sinks))

    def run(self, number: int) -> Driver:
        """Runs so many of the batches that are next."""
        return run(self.driver(), number, BATCHES)

    def finish(self) -> None:
        """Runs the batches that are left, and looks at all answers."""
        self.run(len(BATCHES))
        check(self.spark, self.sinks, BATCHES)

    def delivered(self) -> list[str]:
        return sorted(file.name for file in self.sinks.rglob("*.parquet"))


def run(driver: Driver, number: int, rows: Sequence[Sequence[Row]]) -> Driver:
    for batch in rows[driver.batches :][:number]:
        driver.batch(S=batch)
    return driver


def crash(place: Place, step: str) -> None:
    """Runs a batch that a crash cuts off at a step."""
    driver = place.driver()
    with driver.killed_at(step) as hit:
        run(driver, 1, BATCHES)
    assert hit


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path)


@pytest.mark.parametrize("damage", ["deleted", "cut short"])
def test_a_state_file_that_cannot_be_read_is_named(place: Place, damage: str) -> None:
    driver = place.run(3)
    file = place.checkpoint / driver.state_files[0].paths[0]
    content, delivered = file.read_bytes(), place.delivered()
    file.unlink()
    if damage == "cut short":
        file.write_bytes(content[:-20])
    with pytest.raises((StateError, SourceError), match=file.name) as caught:
        place.run(1)
    assert "\n" not in str(caught.value)
    assert place.delivered() == delivered
    file.write_bytes(content)
    place.finish()


def test_a_manifest_that_a_crash_cut_short_is_none(place: Place) -> None:
    place.run(3)
    crash(place, "committed")
    newest = max((place.checkpoint / "commits").glob("[0-9]*"))
    newest.write_bytes(newest.read_bytes()[:-20])
    assert place.driver().batches == 3
    place.finish()


def test_a_decision_that_a_crash_cut_short_is_none(place: Place) -> None:
    place.run(2)
    crash(place, "decided")
    (decision,) = (place.checkpoint / "decisions").glob("[0-9]*")
    decision.write_bytes(decision.read_bytes()[:-5])
    place.finish()


def test_a_manifest_that_cannot_be_read_is_not_passed_over(place: Place) -> None:
    place.run(2)
    newest = max((place.checkpoint / "commits").glob("[0-9]*"))
    content = newest.read_bytes()
    newest.unlink()
    newest.symlink_to("/proc/self/mem")  # What every process may open, and nobody read at its beginning.
    with pytest.raises(StateError, match=newest.name):
        place.driver()
    newest.unlink()
    newest.write_bytes(content)
    place.finish()


def test_another_layout_is_told(place: Place) -> None:
    place.run(2)
    commits = Folder(place.spark, f"{place.checkpoint}/commits")
    name = commits.files()[-1].name
    known = whole(commits.read(name))
    assert known is not None
    commits.write(name, sealed({**known, "version": 99}))
    with pytest.raises(StateError, match=f"{name} has the layout 99.*run the version that wrote it"):
        place.driver()
    commits.write(name, sealed(known))
    place.finish()


def test_other_queries_are_told_by_their_names(place: Place) -> None:
    place.run(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(QUERIES, "tumbling", QUERIES["tumbling"].replace("v > 2", "v > 3"))
        with pytest.raises(StateError, match=r"another query of this name \(see tumbling\).*begin anew"):
            place.driver()
    place.finish()


def test_a_sink_that_fails_stops_the_flow_and_gets_its_batch_again(place: Place) -> None:
    write_files(place.source, BATCHES)
    taken: dict[int, list[Any]] = {}

    def broken(answers: DataFrame, batch: int) -> None:
        if len(taken) == 2:
            raise OSError("no room for answers")
        working(answers, batch)

    def working(answers: DataFrame, batch: int) -> None:
        assert batch not in taken
        taken[batch] = collected(answers)

    def flow_into(sink: Any) -> hg.Flow:
        made = flow(place.spark, place.source, place.checkpoint, place.sinks)
        made.sink("sliding", sink)
        return made

    with pytest.raises(FlowError, match="the sink of query sliding failed: OSError: no room for answers"):
        flow_into(broken).run_available()
    assert max(taken) < place.driver().batches
    flow_into(working).run_available()
    check(place.spark, place.sinks, BATCHES)
    everything = place.spark.read.parquet(f"{place.sinks}/sliding")
    assert_same(list(itertools.chain(*taken.values())), collected(everything))


def test_a_run_that_ended_while_it_wrote_the_first_entry_of_sparks_log(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(spark, tmp_path)
    write_files(place.source, BATCHES)
    offsets = place.checkpoint / "source" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.7a1c.tmp").write_text("v1\n{")
    flow(spark, place.source, place.checkpoint, place.sinks).run_available()
    check(spark, place.sinks, BATCHES)


def test_a_full_disk_leaves_the_last_commit(place: Place) -> None:
    driver = place.run(2)
    committed = driver.manifest
    full = place.checkpoint / "commits/0000000002"
    full.symlink_to("/dev/full")
    with pytest.raises(StateError, match=f"cannot write .*{full.name}: No space left on device"):
        run(driver, 1, BATCHES)
    full.unlink()
    full.write_bytes(b"")
    assert place.driver().manifest == committed
    place.finish()


@pytest.mark.parametrize("kind", ["decisions", "state", "answers"])
def test_a_folder_that_cannot_be_written_leaves_the_last_commit(place: Place, kind: str) -> None:
    committed = place.run(2).manifest
    folder, aside = place.checkpoint / kind, place.checkpoint / "aside"
    folder.mkdir(exist_ok=True)
    folder.rename(aside)
    folder.write_text("not a folder")
    with pytest.raises(Error, match=str(folder)) as caught:
        place.run(1)
    assert "\n" not in str(caught.value)
    folder.unlink()
    aside.rename(folder)
    assert place.driver().manifest == committed
    place.finish()


def test_state_stays_small_however_long_a_flow_runs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.store.state._FOLDERS", 3)  # So that what was merged is merged again, soon.
    monkeypatch.setitem(QUERIES, "tumbling", "SELECT count(*) AS n [RANGE 2, SLIDE 1, WA ts] FROM S")
    monkeypatch.setitem(QUERIES, "sliding", "SELECT k, sum(v) AS s [RANGE 480, SLIDE 40, WA ts] FROM S GROUP BY k")
    number, rows, step = 300 if "HEADGATE_SOAK" in os.environ else 20, 10, 40
    arriving = batches(number, rows, step)
    driver = place.driver()
    levels = set()
    for _ in range(number):
        run(driver, 1, arriving)
        levels |= {f.merges for f in driver.state_files}
        kept = 2 * (480 // step + 2)  # The batches that windows hold, and as many that wait to be merged with them.
        assert sum(f.rows for f in driver.state_files) <= 2 * rows * kept
        # Every batch closes windows, and so merges one file later than others would.
        assert len(driver.state_files) <= 3 * len(levels)
        folders = {kind: {f.name for f in (place.checkpoint / kind).glob("[0-9]*")} for kind in ("state", "answers")}
        assert folders["state"] == {Path(f.folder).name for f in driver.state_files}
        assert not folders["answers"]
        assert not list((place.checkpoint / "decisions").iterdir())
        assert len(list((place.checkpoint / "commits").glob("[0-9]*"))) <= 3
    assert levels == {0, 1, 2}
    assert driver.closed["tumbling"] > 0.9 * number * step
    check(place.spark, place.sinks, arriving)
