"""A listener from outside: with public names only, it hears of a flow from its start to its end."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class Recorder(hg.Listener):
    """Counts what the flow counts."""

    def __init__(self) -> None:
        self.heard: list[hg.events.Event] = []
        self.counts: Counter[str] = Counter()

    def on_event(self, event: hg.events.Event) -> None:
        self.heard.append(event)

    def on_batch(self, event: hg.events.BatchCommitted) -> None:
        self.counts["rows"] += event.report.rows

    def on_late(self, event: hg.events.TuplesLate) -> None:
        self.counts[f"late for {event.query}"] += event.count

    def on_bad(self, event: hg.events.TuplesBad) -> None:
        self.counts[f"bad in {event.stream}"] += event.count


def test_a_listener_hears_of_a_flow(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, text in enumerate(["1,5\n22,6\n", "3,7\nsoon,8\n30,9\n"]):
        (tmp_path / "in" / f"{number}.csv").write_text(text)
        os.utime(tmp_path / "in" / f"{number}.csv", (1_700_000_000 + number,) * 2)
    flow = hg.Flow(spark, "heard", tmp_path / "checkpoint")
    source = hg.sources.files(tmp_path / "in", format="csv", schema="ts INT, v INT", max_files_per_batch=1)
    flow.stream("Main", source, progress=hg.progress("ts", ordered=True))
    flow.query("sums", "SELECT sum(v) AS s [RANGE 10, SLIDE 10, WA ts] FROM Main")
    recorder, lines = Recorder(), list[str]()
    flow.listen(recorder)
    flow.listen(lambda event: lines.append(json.dumps(event.as_dict(), allow_nan=False)))
    run = flow.run_available()

    names = [type(event).__name__ for event in recorder.heard]
    batch = ["BatchDecided", "BatchCommitted"]
    assert names == ["FlowStarted", *batch, "BatchDecided", "TuplesLate", "TuplesBad", "BatchCommitted", "FlowStopped"]
    assert [json.loads(line)["event"] for line in lines] == names
    assert recorder.counts == {"rows": 5, "late for sums": 1, "bad in Main": 1}
    assert {(event.flow, event.run_id) for event in recorder.heard} == {("heard", run.run_id)}
