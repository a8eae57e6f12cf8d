"""What stands in for Spark in the simulator: rows as JSON in files, reduced and closed in plain Python."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any

from headgate.batch.context import Context
from headgate.progress.closing import Closing
from headgate.protocol import transitions
from headgate.protocol.decision import Drops
from headgate.protocol.figures import Figures, StreamFigures
from headgate.protocol.manifest import Manifest, StateFiles
from headgate.protocol.names import ANSWERS, answers_folder, merged_tuples_folder, state_folder, tuples_folder
from headgate.store.answers import Written
from headgate.testing.disk import Disk

#: A tuple: its time, a number that no other has, and its coin.
Tuple = tuple[int, int, float]
STREAM, SUMS, PAIRS = "S", "sums", "pairs"
#: The panes are windows, and two tuples meet if their times are the same.
LENGTH, AXIS = 10, "S.ts"
#: So many folders are merged into one.
_FOLDERS = 3


@dataclass(frozen=True)
class StandInRows:
    """Folders of rows, one file each, in the place of Parquet."""

    disk: Disk
    mark: str
    rng: Random

    def write(self, folder: str, rows: Sequence[Any]) -> None:
        """Writes rows to a folder; what a crash has left there goes first."""
        kind = folder.partition("/")[0]
        self.disk.remove(f"delete {kind}", f"c/{folder}")
        self.disk.put(f"write {kind}", f"c/{folder}/part", json.dumps(rows) + "\n")

    def read(self, paths: Iterable[str]) -> list[Any]:
        """The rows of files; one that is gone, or cut short, fails the test."""
        return [row for path in paths for row in json.loads(self.disk.contents[f"c/{path}"])]

    def written(self, folder: str, spans: Mapping[str, tuple[float, float]], rows: int, merges: int = 0) -> StateFiles:
        """What the manifest says of a folder."""
        return StateFiles(folder, ("part",), spans, rows, 1, 0, merges)


@dataclass(frozen=True)
class StandInState:
    """Partial rows: (window, count, sum)."""

    rows: StandInRows

    def due(self, manifest: Manifest, closes: bool) -> int:
        """How many rows the next batch will merge."""
        del manifest, closes
        return 0

    def purged(self, manifest: Manifest) -> Manifest:
        """The manifest without files that no window to come can need."""
        last = manifest.windows.closed.get(SUMS)
        if last is None:
            return manifest
        files = tuple(f for f in manifest.state.files if f.spans[AXIS][1] > last * LENGTH)
        return replace(manifest, state=replace(manifest.state, files=files))

    def compacted(self, manifest: Manifest, batch: int, closes: bool) -> Manifest:
        """The manifest with all files as one, where they have become many."""
        del closes
        files = manifest.state.files
        if len(files) < _FOLDERS:
            return manifest
        merges = 1 + max(f.merges for f in files)
        folder = state_folder(batch, 0, self.rows.mark, merges)
        rows = self.rows.read(path for f in files for path in f.paths)
        self.rows.write(folder, rows)
        spans = {AXIS: (min(f.spans[AXIS][0] for f in files), max(f.spans[AXIS][1] for f in files))}
        merged = self.rows.written(folder, spans, len(rows), merges)
        return replace(manifest, state=replace(manifest.state, files=(merged,)))


@dataclass(frozen=True)
class StandInTuples:
    """Kept tuples."""

    rows: StandInRows

    def count(self, manifest: Manifest, stage: str) -> int:
        """How many tuples of a stage are kept."""
        del stage
        return sum(f.rows for f in manifest.state.tuples)

    def purged(self, manifest: Manifest, told: object) -> Manifest:
        """The manifest without files of which no tuple is needed."""
        del told
        return manifest

    def compacted(self, manifest: Manifest, batch: int, *_: object) -> Manifest:
        """The manifest with all kept tuples in one file, where they have become many."""
        files = manifest.state.tuples
        if len(files) < _FOLDERS:
            return manifest
        rows, folder = self.kept(manifest), merged_tuples_folder(batch, self.rows.mark)
        self.rows.write(folder, rows)
        merged = self.rows.written(folder, {}, len(rows))
        return replace(manifest, state=replace(manifest.state, tuples=(merged,)))

    def kept(self, manifest: Manifest) -> list[Any]:
        """The kept tuples."""
        return self.rows.read(path for f in manifest.state.tuples for path in f.paths)


@dataclass(frozen=True)
class StandInAnswers:
    """Answers, by stage."""

    rows: StandInRows

    def folder(self, stage: str, batch: int, mark: str) -> str:
        """Where a run puts the answers of a stage."""
        return answers_folder(batch, 0, mark, joins=stage == PAIRS)

    def write(self, stage: str, batch: int, rows: Sequence[Any]) -> Written:
        """Writes the answers of a stage."""
        if not rows:
            return Written()
        self.rows.write(self.folder(stage, batch, self.rows.mark), rows)
        return Written({stage: len(rows)})

    def given(self, stage: str, batch: int) -> list[Any]:
        """The answers of a stage from the batch that is run."""
        return self.rows.read([f"{self.folder(stage, batch, self.rows.mark)}/part"])

    def kept(self, stage: str, manifest: Manifest) -> list[Any]:
        """The answers of a stage that the flow has kept."""
        folders = [self.folder(stage, b, manifest.mark(b)) for b in range(manifest.batch + 1)]
        paths = [f"{folder}/part" for folder in folders]
        return self.rows.read(path for path in paths if f"c/{path}" in self.rows.disk.contents)

    def keep(self, batch: int, queries: Sequence[str]) -> None:
        """Deletes what a batch gave but for the answers of some queries."""
        kept = {self.folder(query, batch, self.rows.mark) for query in queries}
        for folder in sorted({self.folder(stage, batch, self.rows.mark) for stage in (SUMS, PAIRS)} - kept):
            self.rows.disk.remove("delete answers", f"c/{folder}")

    def clear(self) -> None:
        """Deletes all answers."""
        self.rows.disk.remove("delete answers", f"c/{ANSWERS}")


@dataclass
class StandInShedding:
    """Draws a rate for each batch, another one each time it is asked: a replay has to keep to the first."""

    rng: Random
    rates: dict[str, float]
    """By batch of the source, the rate at which its tuples were taken."""
    subsets: Any = field(default_factory=lambda: SimpleNamespace(restore=lambda _: None, policies={}))
    joins: Any = field(
        default_factory=lambda: SimpleNamespace(
            completed=lambda decided: decided, stages=(), rooms=list, observe=lambda *_: None, estimated={}
        )
    )
    overload: None = None

    def decide(self, *_: object) -> Drops:
        """What is left out of the next batch."""
        return Drops(rates={SUMS: self.rng.choice((0.3, 0.6, 1.0))})

    def state(self) -> dict[str, Any]:
        """What the next run needs to know."""
        return {"rates": dict(self.rates)}

    def status(self, dropped: Drops | None) -> dict[str, Any]:
        """What users are told: nothing."""
        del dropped
        return {"joins": {}, "shedding": {}}

    def lost(self, *_: object) -> dict[str, int]:
        """The windows that are not answered: none."""
        return {}

    def to_try(self, *_: object) -> dict[str, float]:
        """The rates to try: none."""
        return {}

    def nothing(self, *_: object) -> None:
        """Takes in what it makes nothing of."""

    sampled = pairs_sampled = observe = closed = tried = happened = nothing


# The steps that work on tuples


def read(context: Context) -> Context:
    """Takes in the tuples of the source."""
    return replace(context, taken_in=_input(context))


def set_out(context: Context) -> Context:
    """Finds pairs before all else, or leaves that for later: the real step does it meanwhile."""
    early = context.running.stored.state.rows.rng.random() < 0.5  # type: ignore[attr-defined]
    return context.with_work(matching=_pairs(context) if early else None)


def ingest(context: Context) -> Context:
    """Reduces the tuples that are taken to partial rows."""
    rows: StandInRows = context.running.stored.state.rows  # type: ignore[attr-defined]
    tuples, rate = _tuples(context), context.decision.drops.rates[SUMS]
    taken = [t for t in tuples if t[2] < rate]
    shedding: Any = context.running.shedding
    if context.offer.found:
        shedding.rates[str(context.decision.source_batch)] = rate
    windows = sorted({t[0] // LENGTH for t in taken})
    partials = [[w, *reduced(t for t in taken if t[0] // LENGTH == w)] for w in windows]
    times = [t[0] for t in tuples]
    own = StreamFigures(len(tuples), 0, min(times, default=None), max(times, default=None), kept={SUMS: len(taken)})
    figures = Figures({STREAM: own} if context.offer.found else {}, len(partials))
    context = replace(context.with_work(figured=frozenset(figures.streams)), figures=figures)
    context = context.counted(shed={SUMS: len(tuples) - len(taken)})
    if not partials:
        return context
    folder = state_folder(context.number, 0, rows.mark)
    rows.write(folder, partials)
    spans = {AXIS: (float(windows[0] * LENGTH), float(windows[-1] * LENGTH))}
    return replace(context, manifest=transitions.ingested(context.manifest, rows.written(folder, spans, len(partials))))


def set_aside(context: Context) -> Context:
    """Looks whether another run is at work, as the real step does."""
    context.running.checkpoint.check_alone(context.before)
    return context


def close(context: Context) -> Context:
    """Answers the windows that close."""
    stored, closing = context.running.stored, context.work.closings.get(SUMS)
    answers: Any = stored.answers
    found = _closed(context, closing) if closing is not None else []
    return _given(context, answers.write(SUMS, context.number, found))


def keep(context: Context) -> Context:
    """Keeps all tuples."""
    rows: StandInRows = context.running.stored.state.rows  # type: ignore[attr-defined]
    tuples = _tuples(context)
    if not tuples:
        return context
    folder, state = tuples_folder(context.number, 0, rows.mark), context.manifest.state
    rows.write(folder, tuples)
    files = (*state.tuples, rows.written(folder, {}, len(tuples)))
    return replace(context, manifest=replace(context.manifest, state=replace(state, tuples=files)))


def match(context: Context) -> Context:
    """Gives the pairs."""
    found: Any = context.work.matching
    return _given(context, found if found is not None else _pairs(context))


def same(context: Context) -> Context:
    """Stands in for a step that has nothing to do here."""
    return context


def _input(context: Context) -> Any:
    drops = SimpleNamespace(plans={})
    left_out = SimpleNamespace(sampling=SimpleNamespace(rates=context.decision.drops.rates))
    return SimpleNamespace(left_out=left_out, retained=SimpleNamespace(drops=drops))


def _tuples(context: Context) -> list[Tuple]:
    found: Any = context.offer.found.get(STREAM)
    return [] if found is None else list(found.tuples)


def _pairs(context: Context) -> Written:
    stored: Any = context.running.stored
    new, before = _tuples(context), [*map(tuple, stored.tuples.kept(context.before))]
    found = sorted((a[1], b[1]) for a in [*before, *new] for b in new if a[0] == b[0] and a[1] < b[1])
    found += sorted((b[1], a[1]) for a in before for b in new if a[0] == b[0] and b[1] < a[1])
    written: Written = stored.answers.write(PAIRS, context.number, found)
    return written


def _closed(context: Context, closing: Closing) -> list[list[Any]]:
    manifest, state = context.manifest, context.running.stored.state
    rows: Any = state.rows  # type: ignore[attr-defined]
    partials = rows.read(path for f in manifest.state.files for path in f.paths)
    windows = sorted({p[0] for p in partials if closing.first <= p[0] <= closing.last})
    return [[w, sum(p[1] for p in partials if p[0] == w), sum(p[2] for p in partials if p[0] == w)] for w in windows]


def reduced(tuples: Iterable[Tuple]) -> tuple[int, int]:
    """How many tuples there are, and their sum."""
    own = list(tuples)
    return len(own), sum(t[1] for t in own)


def _given(context: Context, written: Written) -> Context:
    return context.counted(given=written.counts)
