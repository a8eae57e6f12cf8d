"""What a manifest becomes, step by step, in a batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from headgate.progress import furthest
from headgate.progress.place import read, written
from headgate.protocol.decision import Decision
from headgate.protocol.figures import Figures
from headgate.protocol.manifest import Manifest, StateFiles


def ingested(manifest: Manifest, files: StateFiles) -> Manifest:
    """The manifest with the partial rows of a batch."""
    return replace(manifest, state=replace(manifest.state, files=(*manifest.state.files, files)))


def advanced(manifest: Manifest, decision: Decision, figures: Figures, numbered: Collection[str]) -> Manifest:
    """The manifest with how far the streams have come; `numbered` are those whose tuples have arrival numbers."""
    own = manifest.progress
    highest = {
        stream: written(furthest((read(own.highest.get(stream)), found.highest)))
        for stream, found in figures.streams.items()
        if found.highest is not None
    }
    counts = {s: own.numbered.get(s, 0) + f.numbered for s, f in figures.streams.items() if s in numbered}
    progress = replace(
        own,
        ended=sorted({*own.ended, *decision.ended}),
        highest={**own.highest, **highest},
        numbered={**own.numbered, **counts},
    )
    return replace(manifest, progress=progress)


def counted(manifest: Manifest, what: str, more: Mapping[str, int]) -> Manifest:
    """The manifest with totals raised by what was counted in a batch."""
    known = manifest.counters.get(what, {})
    total = {name: known.get(name, 0) + more.get(name, 0) for name in {**known, **more}}
    return replace(manifest, counters={**manifest.counters, what: total})


def happened(manifest: Manifest, decision: Decision, trackers: Mapping[str, Any]) -> Manifest:
    """The manifest of the batch that a decision is about."""
    source = manifest.source
    if decision.source_batch is not None:
        source = replace(source, batch=decision.source_batch)
    progress = replace(manifest.progress, trackers=trackers)
    return replace(manifest, batch=decision.batch, source=source, progress=progress)


def committed_by(manifest: Manifest, mark: str, who: str) -> Manifest:
    """The manifest as a run commits it."""
    runs = manifest.runs
    known = runs.marks if runs.mark(manifest.batch) == mark else [*runs.marks, [manifest.batch, mark]]
    return replace(manifest, runs=replace(runs, marks=known, by=who))
