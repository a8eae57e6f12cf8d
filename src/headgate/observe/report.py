"""From what a batch did to the events that tell of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headgate.observe.events import (
    BatchCommitted,
    BatchDecided,
    BatchReport,
    Event,
    PlanChanged,
    QueryResumed,
    QuerySuspended,
    Standing,
    TuplesBad,
    TuplesLate,
    TuplesShed,
)
from headgate.observe.plain import plain
from headgate.observe.times import iso
from headgate.plan.logical.types import is_time
from headgate.progress.place import read

if TYPE_CHECKING:
    from headgate.plan.stream.stages import Stage
    from headgate.progress import Punctuation
    from headgate.protocol.decision import Drops
    from headgate.protocol.manifest import Manifest

#: What is counted, and per what.
COUNTERS = {"rows": "stream", "bad": "stream"} | dict.fromkeys(("answers", "late", "shed", "dropped"), "query")
_END = "end"


def standing(
    manifest: Manifest,
    numeric: Mapping[str, bool | None],
    queries: Collection[str],
    stages: Mapping[str, Stage],
    closing: Collection[str],
    shed: Mapping[str, Any],
) -> Standing:
    """How a flow stands after a batch.

    `numeric` says for each stream whether it progresses on a number; None if it has no progress. `closing` names the
    stages that close windows. `shed` is what shedding says of itself.
    """
    known = manifest.counters
    names = {"stream": numeric, "query": queries}
    return Standing(
        batch=manifest.batch,
        progress={name: _progress(manifest, name, own) for name, own in numeric.items()},
        closed={name: _closed(manifest, name, stages) for name in closing},
        state={
            "files": sum(len(f.names) for f in manifest.state.files),
            "rows": manifest.state.rows,
            "bytes": manifest.state.bytes,
        },
        totals={what: {n: known.get(what, {}).get(n, 0) for n in names[per]} for what, per in COUNTERS.items()},
        shed=plain(shed),
    )


def batch_report(
    after: Standing, seconds: Mapping[str, float], counted: Mapping[str, Mapping[str, int]], drops: Drops
) -> BatchReport:
    """What a batch did: how long its steps took, what it counted, and what its decision left out."""
    return BatchReport(
        batch=after.batch,
        rows=sum(counted["rows"].values()),
        rows_by_stream=dict(counted["rows"]),
        seconds=dict(seconds),
        **{what: dict(counted[what]) for what in COUNTERS if what != "rows"},
        state_rows=after.state["rows"],
        state_bytes=after.state["bytes"],
        progress=after.progress,
        rates=_sampled(drops),
        suspended=dict(drops.suspended),
    )


def decision_events(batch: int, drops: Drops, streams: Collection[str], suspended: Collection[str]) -> Iterator[Event]:
    """The events of a decision about a batch with tuples of some streams; `suspended` are the queries that were."""
    yield BatchDecided(
        batch=batch,
        streams=tuple(streams),
        shedding=drops.shedding,
        rates=_sampled(drops),
        predicted=drops.predicted or None,
    )
    if drops.event:
        yield PlanChanged(batch=batch, reason=drops.event, shedding=drops.shedding)
    if not streams:
        return  # Nothing is suspended or resumed for a batch without tuples.
    for query, reason in drops.suspended.items():
        if query not in suspended:
            yield QuerySuspended(batch=batch, query=query, reason=reason)
    for query in suspended:
        if query not in drops.suspended:
            yield QueryResumed(batch=batch, query=query)


def batch_events(report: BatchReport, after: Standing) -> Iterator[Event]:
    """The events of a batch that was committed."""
    batch = report.batch
    yield from (TuplesLate(batch=batch, query=name, count=n) for name, n in report.late.items() if n)
    yield from (TuplesBad(batch=batch, stream=name, count=n) for name, n in report.bad.items() if n)
    yield from (TuplesShed(batch=batch, query=name, count=n) for name, n in report.shed.items() if n)
    yield BatchCommitted(report=report, standing=after)


def _sampled(drops: Drops) -> dict[str, float]:
    """The rates of the queries that do not take all tuples."""
    return {name: rate for name, rate in drops.rates.items() if rate < 1}


def _progress(manifest: Manifest, stream: str, numeric: bool | None) -> Any:
    """How far a stream has come: a time as text, a number, "end", or None while nothing is known."""
    if stream in manifest.progress.ended:
        return _END
    if numeric is None or stream not in manifest.progress.trackers:
        return None
    return _place(read(manifest.progress.trackers[stream]["told"]), not numeric)


def _closed(manifest: Manifest, name: str, stages: Mapping[str, Stage]) -> Any:
    """Where the last closed window of a stage ends; "end" if everything it reads has ended."""
    if _is_over(name, manifest, stages):
        return _END
    last, stage = manifest.windows.closed.get(name), stages[name]
    if last is None:
        return None
    assert stage.aggregate is not None
    return _place(stage.window.bounds(last)[1], is_time(stage.aggregate.input.types.get(stage.window.attr, "")))


def _is_over(stream: str, manifest: Manifest, stages: Mapping[str, Stage]) -> bool:
    stage = stages.get(stream)
    if stage is None:
        return stream in manifest.progress.ended
    return all(_is_over(s, manifest, stages) for s in stage.streams)


def _place(place: Punctuation, time: bool) -> Any:
    if place is None or place == math.inf:
        return None if place is None else _END
    if time:
        return iso(place)  # type: ignore[arg-type]  # The only float is infinite.
    return int(place) if place == int(place) else plain(place)
