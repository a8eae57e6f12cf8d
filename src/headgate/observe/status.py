"""How a flow is doing, as plain JSON: the same keys always, from before its first batch until after its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.observe import words
from headgate.observe.events import (
    BatchCommitted,
    Event,
    FlowStarted,
    FlowStopped,
    PlanChanged,
    Standing,
)
from headgate.observe.plain import plain

if TYPE_CHECKING:
    from headgate.errors import Error

#: How many of the last batches are remembered.
_REMEMBERED = 100


class Status(dict[str, Any]):
    """What `run.status()` gives: a dict of plain JSON that a shell shows as a short table."""

    def __repr__(self) -> str:
        return "\n".join(_lines(self))


class Picture:
    """The newest picture of a run. It hears each event as it happens, so it is never older than the run.

    Each event puts whole values in place of others. So any thread may ask for the status without a lock.
    """

    def __init__(self) -> None:
        self._standing: Standing | None = None
        self._last: tuple[BatchCommitted, ...] = ()

    def __call__(self, event: Event) -> None:
        match event:
            case FlowStarted(standing=standing):
                self._standing = standing
            case PlanChanged(standing=Standing() as standing):
                self._standing = standing
            case BatchCommitted(standing=standing):
                self._last = (*self._last[1 - _REMEMBERED :], event)
                self._standing = standing
            case FlowStopped(batch=batch) if self._standing is not None:
                self._standing = replace(self._standing, batch=batch)

    @property
    def last(self) -> tuple[BatchCommitted, ...]:
        """The last batches that were committed, the latest at the end."""
        return self._last

    def status(self, name: str, id_: str, active: bool, error: Error | None) -> Status:
        """The status of the run, with what the run alone knows."""
        standing, events = self._standing, self._last
        assert standing is not None, "a run has a status once it has started"
        last = events[-1].report if events else None
        found = {
            "name": name,
            "id": id_,
            "active": active,
            "error": error_words(error) if error is not None else None,
            "batch": standing.batch,
            "last_batch": {"batch": last.batch, "rows": last.rows, "seconds": last.seconds} if last else None,
            "progress": standing.progress,
            "closed": standing.closed,
            "state": standing.state,
            **standing.totals,
            **standing.shed,
        }
        return Status({key: plain(value) for key, value in found.items()})


def error_words(error: Error) -> dict[str, Any]:
    """An error as status and events have it."""
    return {"type": type(error).__name__, "message": str(error), "query": error.query, "stream": error.stream}


def _lines(status: Mapping[str, Any]) -> Iterator[str]:
    yield f"Flow {status['name']}, {'running' if status['active'] else 'not running'}, {_batches(status)}"
    if (error := status["error"]) is not None:
        yield f"Failed: {error['message']}"
    yield f"State: {words.size(status['state'])}"
    yield ""
    yield from words.columns([("stream", "rows", "bad", "progress"), *_streams(status)])
    yield ""
    yield from words.columns([("query", "answers", "late", "shed", "dropped", "closed up to"), *_queries(status)])
    yield from _shed(status["shedding"], status["joins"])


def _batches(status: Mapping[str, Any]) -> str:
    last = status["last_batch"]
    if last is None:
        return "no batch yet" if status["batch"] < 0 else f"no batch yet since batch {status['batch']}"
    seconds = sum(last["seconds"].values())
    return f"batch {last['batch']}: {words.took(last['rows'], seconds)}, {words.speed(last['rows'], seconds)}"


def _streams(status: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, rows in status["rows"].items():
        yield name, f"{rows:,}", f"{status['bad'][name]:,}", words.reached(status["progress"][name])


def _queries(status: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    counters = ("answers", "late", "shed", "dropped")
    for name in status["answers"]:
        closed = status["closed"].get(name)
        place = words.reached(closed) if closed not in (None, "end") else closed or ""
        yield name, *(f"{status[what][name]:,}" for what in counters), place


def _shed(shedding: Mapping[str, Any], joins: Mapping[str, Any]) -> Iterator[str]:
    """What is shed now; nothing if all answers are exact."""
    found = [f"{name} takes {rate:.3g} of its tuples" for name, rate in shedding["rates"].items()]
    found += list(shedding["subsets"].values())
    found += [f"{name}: {join['plan']}" for name, join in joins.items() if join["plan"]]
    found += [f"{name} is suspended: {why}" for name, why in shedding["suspended"].items()]
    found += [f"{name} misses groups: {why}" for name, why in shedding["missed"].items()]
    if found:
        yield from ("", "Shed now:", *(f"  {line}" for line in found))
