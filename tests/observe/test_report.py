"""From what a batch did to events, and from events to a status: without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headgate.errors import FlowError
from headgate.observe.events import (
    BatchCommitted,
    BatchReport,
    Event,
    FlowStarted,
    FlowStopped,
    PlanChanged,
    Standing,
)
from headgate.observe.report import batch_events, batch_report, decision_events
from headgate.observe.status import Picture, Status
from headgate.observe.words import Text
from headgate.protocol.decision import Drops

SHED: dict[str, Any] = {
    "joins": {},
    "shedding": {"rates": {}, "subsets": {}, "suspended": {}, "missed": {}},
}


def standing(batch: int, rows: int = 0, shed: Mapping[str, Any] = SHED) -> Standing:
    return Standing(
        batch=batch,
        progress={"Main": "2026-01-01T12:00:00+00:00"},
        closed={"talkers": None},
        state={"files": 2, "rows": 30, "bytes": 12_000},
        totals={"rows": {"Main": rows}, "bad": {"Main": 1}}
        | {what: {"talkers": 5} for what in ("answers", "late", "shed", "dropped")},
        shed=dict(shed),
    )


def report(batch: int, **counts: dict[str, int]) -> BatchReport:
    counted: dict[str, dict[str, int]] = {
        what: {} for what in ("rows", "answers", "late", "bad", "shed", "dropped")
    } | counts
    return batch_report(standing(batch), {"ingest": 0.5, "close": 0.25}, counted, Drops())


def started(resumed_after: int | None = None) -> FlowStarted:
    known = -1 if resumed_after is None else resumed_after
    return FlowStarted(
        id="an-id", resumed_after=resumed_after, streams=("Main",), queries=("talkers",), standing=standing(known)
    )


def told(drops: Drops, suspended: tuple[str, ...], streams: tuple[str, ...] = ("Main",)) -> list[Any]:
    """What a decision tells after `BatchDecided`: the kind of each event and what it is about."""
    first, *others = decision_events(7, drops, streams, suspended)
    assert type(first).__name__ == "BatchDecided"
    about = ("query", "reason")
    return [(type(e).__name__, *(getattr(e, name) for name in about if hasattr(e, name))) for e in others]


def test_a_decision_tells_what_changed() -> None:
    assert told(Drops(), ()) == []
    assert told(Drops(event="too much", shedding=True), ()) == [("PlanChanged", "too much")]
    suspended = Drops(suspended={"a": "no time", "b": "no time"})
    assert told(suspended, ("b", "c")) == [("QuerySuspended", "a", "no time"), ("QueryResumed", "c")]
    # A batch without tuples has no plan for queries, and so changes none.
    assert told(Drops(), ("b",), streams=()) == []


def test_a_decision_tells_rates_below_one_only() -> None:
    (event,) = decision_events(7, Drops(rates={"a": 1.0, "b": 0.5}, predicted=2.5), ["Main"], ())
    assert event.as_dict() == {
        "event": "BatchDecided",
        "flow": "",
        "run_id": "",
        "timestamp": "",
        "missed": 0,
        "batch": 7,
        "streams": ["Main"],
        "shedding": False,
        "rates": {"b": 0.5},
        "predicted": 2.5,
    }


def test_a_batch_tells_of_tuples_where_there_are_any() -> None:
    own = report(
        3,
        rows={"Main": 9, "Other": 1},
        late={"talkers": 0, "swings": 2},
        bad={"Main": 3, "Other": 0},
        shed={"talkers": 4},
    )
    assert (own.rows, own.rows_by_stream, own.total_seconds) == (10, {"Main": 9, "Other": 1}, 0.75)
    events = list(batch_events(own, standing(3)))
    assert [(type(e).__name__, getattr(e, "count", None)) for e in events] == [
        ("TuplesLate", 2),
        ("TuplesBad", 3),
        ("TuplesShed", 4),
        ("BatchCommitted", None),
    ]
    assert all(json.loads(json.dumps(e.as_dict(), allow_nan=False)) == e.as_dict() for e in events)


def picture(*events: Event) -> Picture:
    found = Picture()
    for event in events:
        found(event)
    return found


def status(*events: Event, active: bool = True, error: FlowError | None = None) -> Status:
    return picture(*events).status("netmon", "an-id", active, error)


class TestPicture:
    def test_it_has_the_last_batch(self) -> None:
        batches = [BatchCommitted(report=report(n, rows={"Main": n}), standing=standing(n, n)) for n in range(150)]
        found = status(started(), *batches)
        assert (found["batch"], found["rows"], found["last_batch"]["rows"]) == (149, {"Main": 149}, 149)
        assert [event.report.batch for event in picture(started(), *batches).last] == list(range(50, 150))

    def test_it_has_the_queries_there_are_now(self) -> None:
        change = PlanChanged(batch=1, reason="x was added", shedding=False, added=("x",), standing=standing(0, 8))
        assert status(started(), change)["rows"] == {"Main": 8}
        shedding = PlanChanged(batch=1, reason="too much", shedding=True)
        assert status(started(), change, shedding)["rows"] == {"Main": 8}

    def test_a_batch_that_was_committed_and_failed_afterwards_counts(self) -> None:
        assert status(started(), FlowStopped(batch=4, error=None))["batch"] == 4

    def test_what_is_asked_for_is_nobody_elses(self) -> None:
        own = picture(started())
        own.status("netmon", "an-id", True, None)["rows"]["Main"] = 1_000
        assert own.status("netmon", "an-id", True, None)["rows"] == {"Main": 0}


class TestReading:
    def test_a_status_is_a_short_table(self) -> None:
        committed = BatchCommitted(report=report(7, rows={"Main": 9_000}), standing=standing(7, 12_000))
        assert repr(status(started(), committed)) == (
            "Flow netmon, running, batch 7: 9,000 rows in 0.75 s, 12,000 rows/s\n"
            "State: 30 rows, 12.0 kB in 2 files\n"
            "\n"
            "stream  rows    bad  progress\n"
            "Main    12,000  1    2026-01-01 12:00:00\n"
            "\n"
            "query    answers  late  shed  dropped  closed up to\n"
            "talkers  5        5     5     5"
        )

    def test_it_says_what_is_shed_and_what_failed(self) -> None:
        shedding = SHED["shedding"] | {"rates": {"talkers": 0.25}, "suspended": {"swings": "no time"}}
        joins = {"pairs": {"plan": "half of all pairs"}}
        committed = BatchCommitted(
            report=report(0), standing=standing(0, shed=SHED | {"shedding": shedding, "joins": joins})
        )
        text = str(status(started(), committed, active=False, error=FlowError("no room")))
        assert text.startswith("Flow netmon, not running, batch 0: 0 rows in 0.75 s, 0 rows/s\nFailed: no room\n")
        assert text.endswith(
            "\n\nShed now:\n"
            "  talkers takes 0.25 of its tuples\n"
            "  pairs: half of all pairs\n"
            "  swings is suspended: no time"
        )

    def test_before_the_first_batch(self) -> None:
        assert repr(status(started())).startswith("Flow netmon, running, no batch yet\n")
        resumed = repr(status(started(resumed_after=6)))
        assert resumed.startswith("Flow netmon, running, no batch yet since batch 6\n")

    def test_it_stays_a_dict(self) -> None:
        found = status(started())
        assert json.loads(json.dumps(found, allow_nan=False)) == found == dict(found)

    def test_text_is_shown_without_quotes(self) -> None:
        text = Text("Stream Main\n\nQuery talkers")
        assert f"{text!r}" == text == "Stream Main\n\nQuery talkers"
        assert text.split("\n\n") == ["Stream Main", "Query talkers"]
