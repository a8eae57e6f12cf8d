"""How a flow is doing, as plain JSON: the same keys always, from before its first batch until after its end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from headgate.observe.times import iso
from headgate.plan.logical.types import is_time
from headgate.progress.place import read
from headgate.shed.live import status as telling

if TYPE_CHECKING:
    from headgate.batch.engine import Engine
    from headgate.batch.report import BatchReport
    from headgate.errors import Error
    from headgate.plan.stream.stages import Stage
    from headgate.progress import Punctuation
    from headgate.protocol.manifest import Manifest

#: What is counted, and whether by stream or by query.
_COUNTERS = {"rows": "stream", "bad": "stream"} | dict.fromkeys(("answers", "late", "shed", "dropped"), "query")
_END = "end"


def status(run: Mapping[str, Any], error: Error | None, engine: Engine) -> dict[str, Any]:
    """What `run.status` gives, of a run that is called and goes on as told."""
    # Only what is committed, which never changes: a batch may be running meanwhile.
    manifest, reports, stages = engine.manifest, engine.reports, engine.program.stages
    last = reports[-1] if reports else None
    with engine.running.lock:
        shed = telling.status(engine.shedding, engine.dropped)
    found = {
        **run,
        "error": _error(error) if error is not None else None,
        "batch": manifest.batch,
        "last_batch": _last(last) if last is not None else None,
        "progress": {name: _progress(engine, manifest, name) for name in engine.program.watches},
        "closed": {n: _closed(manifest, n, stage, stages) for n, stage in engine.program.closing.items()},
        "state": {
            "files": sum(len(f.names) for f in manifest.state.files),
            "rows": manifest.state.rows,
            "bytes": manifest.state.bytes,
        },
        **{what: _counts(engine, manifest, what) for what in _COUNTERS},
        **shed,
    }
    return {name: plain(value) for name, value in found.items()}


def plain(value: Any) -> Any:
    """A value as JSON has it: times as text, what is no number as NULL, and a number that is not whole as a float.

    >>> plain({"at": Fraction(1, 2), 5: (math.nan, Decimal("1.5"))})
    {'at': 0.5, '5': [None, 1.5]}
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float() | Fraction() | Decimal():
            return _finite(value)
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(name): plain(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(inner) for inner in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return plain(asdict(value))
        case _ if hasattr(value, "item"):  # A number of numpy's.
            return plain(value.item())
    return str(value)


def _finite(number: float | Fraction | Decimal) -> float | None:
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _last(report: BatchReport) -> dict[str, Any]:
    """The last batch that is over: it may be the one before that of the manifest, for a moment."""
    return {"batch": report.batch, "rows": report.rows, "seconds": report.seconds}


def _error(error: Error) -> dict[str, Any]:
    return {"type": type(error).__name__, "message": str(error), "query": error.query, "stream": error.stream}


def _counts(engine: Engine, manifest: Manifest, what: str) -> dict[str, int]:
    known = manifest.counters.get(what, {})
    names = engine.program.watches if _COUNTERS[what] == "stream" else engine.program.queries
    return {name: known.get(name, 0) for name in names}


def _progress(engine: Engine, manifest: Manifest, stream: str) -> Any:
    """How far a stream has come: a time as text, a number, the end, or NULL while nothing is known."""
    if stream in manifest.progress.ended:
        return _END
    if stream not in engine.running.streams.trackers or stream not in manifest.progress.trackers:
        return None
    return _place(
        read(manifest.progress.trackers[stream]["told"]), not engine.running.streams.trackers[stream].rule.numeric
    )


def _closed(manifest: Manifest, name: str, stage: Stage, stages: Mapping[str, Stage]) -> Any:
    """Where the last window of a stage that was closed ends; the end, if all that it reads has ended."""
    if _is_over(name, manifest, stages):
        return _END
    last = manifest.windows.closed.get(name)
    if last is None:
        return None
    assert stage.aggregate is not None
    return _place(stage.window.bounds(last)[1], is_time(stage.aggregate.input.types.get(stage.window.attr, "")))


def _is_over(stream: str, manifest: Manifest, stages: Mapping[str, Stage]) -> bool:
    stage = stages.get(stream)
    return (
        stream in manifest.progress.ended
        if stage is None
        else all(_is_over(s, manifest, stages) for s in stage.streams)
    )


def _place(place: Punctuation, time: bool) -> Any:
    if place is None or place == math.inf:
        return None if place is None else _END
    if time:
        return iso(place)  # type: ignore[arg-type]  # The only float is infinite.
    return int(place) if place == int(place) else place
