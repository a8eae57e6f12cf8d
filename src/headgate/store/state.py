"""The state of a flow on disk: folders of partial rows, which are read, merged and deleted by what they span."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from headgate.incremental.compact import compacted
from headgate.protocol.manifest import Manifest, StateFiles
from headgate.protocol.names import state_folder
from headgate.store.faults import reach
from headgate.store.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.incremental.levels import Level
    from headgate.progress.closing import Closing

#: Folders of state that are merged into one once there are this many.
_FOLDERS = 8
#: Up to so many rows of state are merged by one task: with two of them a shuffle would cost more than it saves.
_ROWS_A_TASK = 100_000


class State:
    """Reads and writes the partial rows of a flow. The manifest knows what there is."""

    def __init__(self, rows: Rows, mark: str, levels: Sequence[Level]) -> None:
        self._rows, self._mark, self._levels = rows, mark, levels

    def folder(self, batch: int, depth: int, merges: int = 0) -> str:
        """Where the rows of a batch go."""
        return state_folder(batch, depth, self._mark, merges)

    def write(self, rows: DataFrame, batch: int, depth: int) -> None:
        """Writes the partial rows of a batch."""
        self._rows.write(rows, self.folder(batch, depth))

    def written(self, batch: int, depth: int, spans: dict[str, tuple[float, float]], rows: int) -> StateFiles:
        """What the manifest says of the partial rows of a batch."""
        return self._rows.written(self.folder(batch, depth), spans, rows, depth)

    def of_batch(self, batch: int, depth: int) -> DataFrame:
        """The partial rows that a batch has written, all columns that they have."""
        return self._rows.spark.read.parquet(self._rows.path(self.folder(batch, depth)))

    def read(self, level: Level, files: Sequence[StateFiles]) -> DataFrame:
        """The rows of some files of a level."""
        paths = [self._rows.path(path) for f in files for path in f.paths]
        rows = self._rows.spark.read.schema(level.state_schema).parquet(*paths)
        return rows.coalesce(1) if sum(f.rows for f in files) <= _ROWS_A_TASK else rows

    def needed(self, manifest: Manifest, level: Level, closings: Mapping[str, Closing]) -> list[StateFiles]:
        """The files with panes of closing windows."""
        spans: dict[str, tuple[float, float]] = {}
        for name, closing in closings.items():
            window, axis = level.stages[name].window, level.axis(name)
            start, end = window.bounds(closing.first)[0], float(window.bounds(closing.last)[1])
            first = -math.inf if start is None else float(start)
            known = spans.get(axis, (first, end))
            spans[axis] = min(known[0], first), max(known[1], end)
        return [
            f
            for f in manifest.state.files
            if f.depth == level.depth
            and any(
                last >= spans[axis][0] - level.longest_pane[axis] and first < spans[axis][1]
                for axis, (first, last) in f.spans.items()
                if axis in spans
            )
        ]

    def purged(self, manifest: Manifest) -> Manifest:
        """The manifest without files that no window to come can need."""
        kept: list[StateFiles] = []
        for level in self._levels:
            starts = {axis: self._first_needed(manifest, level, axis) for axis in level.axes}
            own = (f for f in manifest.state.files if f.depth == level.depth)
            # An axis that no stage has any more holds nothing back.
            kept += [f for f in own if any(last >= starts.get(axis, math.inf) for axis, (_, last) in f.spans.items())]
        return replace(manifest, state=replace(manifest.state, files=tuple(kept)))

    def _first_needed(self, manifest: Manifest, level: Level, axis: str) -> float:
        """Where on an axis the first window that is not closed yet begins, and a pane before it."""
        needed = math.inf
        for name, stage in level.aggregating.items():
            if level.axis(name) == axis:
                last = manifest.windows.closed.get(name)
                start = None if last is None else stage.window.bounds(last + 1)[0]
                needed = min(needed, -math.inf if start is None else float(start))
        return needed - level.longest_pane[axis]

    def compacted(self, manifest: Manifest, batch: int, closes: bool) -> Manifest:
        """The manifest with folders that were merged equally often merged into one, where they have become many.

        A batch that `closes` windows leaves that to the next one, as far as it can: both take long.
        """
        for level in self._levels:
            own = [f for f in manifest.state.files if f.depth == level.depth]
            for merges in range(1 + max((f.merges for f in own), default=0)):
                many = [f for f in manifest.state.files if f.depth == level.depth and f.merges == merges]
                if len(many) >= _many(closes):
                    merged = self._merged(manifest, level, many, self.folder(batch, level.depth, merges + 1))
                    kept = tuple(f for f in manifest.state.files if f not in many)
                    manifest = replace(manifest, state=replace(manifest.state, files=(*merged, *kept)))
                    reach("compacted")
        return manifest

    def due(self, manifest: Manifest, closes: bool) -> int:
        """How many rows the next batch will merge, of those that there are, if it adds to each level."""
        rows = 0
        for level in self._levels:
            own = [f for f in manifest.state.files if f.depth == level.depth]
            for merges in range(1 + max((f.merges for f in own), default=0)):
                many = [f for f in own if f.merges == merges]
                if len(many) + 1 < _many(closes):
                    break
                rows += sum(f.rows for f in many)
        return rows

    def _merged(self, manifest: Manifest, level: Level, many: Sequence[StateFiles], folder: str) -> list[StateFiles]:
        observed = Observation()
        rows = compacted(self.read(level, many), level.tables, _first_panes(manifest, level))
        counted = rows.observe(observed, F.count("*").alias("rows"))
        self._rows.write(counted, folder, expected=sum(f.rows for f in many))
        found = observed.get["rows"]
        spans: dict[str, tuple[float, float]] = {}
        for axis in level.axes:
            own = [f.spans[axis] for f in many if axis in f.spans]
            if own:
                spans[axis] = min(first for first, _ in own), max(last for _, last in own)
        return [self._rows.written(folder, spans, found, level.depth, many[0].merges + 1)] if found else []


def _first_panes(manifest: Manifest, level: Level) -> dict[int, int]:
    """The first pane of each table that a window still to be closed may hold."""
    first = {}
    for table in level.tables:
        windows = [(m.stage.window, manifest.windows.closed.get(m.stage.name)) for m in table.members]
        if all(last is not None for _, last in windows):
            first[table.number] = min((last + 1) * table.panes(w).per_slide for w, last in windows if last is not None)
    return first


def _many(closes: bool) -> int:
    """How many folders are merged by a batch that closes windows, or by another one."""
    return _FOLDERS + 1 if closes else _FOLDERS
