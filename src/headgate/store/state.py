"""The state of a flow on disk: folders of partial rows, which are read, merged and deleted by what they span."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from headgate.incremental.compact import compacted
from headgate.protocol.manifest import Manifest, StateFiles
from headgate.protocol.names import batch_name
from headgate.store.faults import reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.incremental.levels import Level
    from headgate.progress.closing import Closing
    from headgate.spark.folder import Folder

#: Folders of state that are merged into one once there are this many.
_FOLDERS = 8
#: A task, and so a file, more for each of so many rows: small files cost more to open than to read.
_ROWS_A_FILE = 50_000
#: Up to so many rows of state are merged by one task: with two of them a shuffle would cost more than it saves.
_ROWS_A_TASK = 100_000
_STATE = "state"


class State:
    """Reads and writes the state of a flow below its folder. What there is, the manifest knows."""

    def __init__(self, spark: SparkSession, root: Folder, levels: Sequence[Level]) -> None:
        self._spark, self._root, self._levels = spark, root, levels
        self.mark = uuid.uuid4().hex[:8]
        """What tells the folders of a run from those of another one that may be at the same batch."""

    def folder(self, batch: int, depth: int, merges: int = 0) -> str:
        """Where the rows of a batch go."""
        level = f"{f'-d{depth}' if depth else ''}{f'-m{merges}' if merges else ''}"
        return f"{_STATE}/{batch_name(batch)}{level}-{self.mark}"

    def write(self, rows: DataFrame, folder: str, expected: int | None = None, compression: str = "zstd") -> None:
        """Writes rows to a folder, with one task a core, or fewer where few rows are expected."""
        cores = self._spark.sparkContext.defaultParallelism
        tasks = cores if expected is None else min(cores, 1 + expected // _ROWS_A_FILE)
        # The manifest is the commit: what Spark's committer does beyond moving files in would be of no use.
        options = {
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
            "mapreduce.fileoutputcommitter.algorithm.version": "2",
            "compression": compression,
        }
        (self._root / folder).prepare()
        rows.coalesce(tasks).write.mode("append").options(**options).parquet(f"{self._root.path}/{folder}")

    def written(
        self, folder: str, spans: dict[str, tuple[float, float]], rows: int, depth: int, merges: int = 0
    ) -> StateFiles:
        """What the manifest says of a folder that was written."""
        files = (self._root / folder).files()
        size = sum(f.size for f in files)
        return StateFiles(folder, tuple(f.name for f in files), spans, rows, size, depth, merges)

    def read(self, level: Level, files: Sequence[StateFiles]) -> DataFrame:
        """The rows of some files of a level."""
        paths = [f"{self._root.path}/{path}" for f in files for path in f.paths]
        rows = self._spark.read.schema(level.state_schema).parquet(*paths)
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
            for f in manifest.files
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
            own = (f for f in manifest.files if f.depth == level.depth)
            # An axis that no stage has any more holds nothing back.
            kept += [f for f in own if any(last >= starts.get(axis, math.inf) for axis, (_, last) in f.spans.items())]
        return replace(manifest, files=tuple(kept))

    def _first_needed(self, manifest: Manifest, level: Level, axis: str) -> float:
        """Where on an axis the first window that is not closed yet begins, and a pane before it."""
        needed = math.inf
        for name, stage in level.aggregating.items():
            if level.axis(name) == axis:
                last = manifest.closed.get(name)
                start = None if last is None else stage.window.bounds(last + 1)[0]
                needed = min(needed, -math.inf if start is None else float(start))
        return needed - level.longest_pane[axis]

    def compacted(self, manifest: Manifest, batch: int, closes: bool) -> Manifest:
        """The manifest with folders that were merged equally often merged into one, where they have become many.

        A batch that `closes` windows leaves that to the next one, as far as it can: both take long.
        """
        for level in self._levels:
            own = [f for f in manifest.files if f.depth == level.depth]
            for merges in range(1 + max((f.merges for f in own), default=0)):
                many = [f for f in manifest.files if f.depth == level.depth and f.merges == merges]
                if len(many) >= _many(closes):
                    merged = self._merged(manifest, level, many, self.folder(batch, level.depth, merges + 1))
                    kept = tuple(f for f in manifest.files if f not in many)
                    manifest = replace(manifest, files=(*merged, *kept))
                    reach("compacted")
        return manifest

    def due(self, manifest: Manifest, closes: bool) -> int:
        """How many rows the next batch will merge, of those that there are, if it adds to each level."""
        rows = 0
        for level in self._levels:
            own = [f for f in manifest.files if f.depth == level.depth]
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
        self.write(counted, folder, expected=sum(f.rows for f in many))
        found = observed.get["rows"]
        spans: dict[str, tuple[float, float]] = {}
        for axis in level.axes:
            own = [f.spans[axis] for f in many if axis in f.spans]
            if own:
                spans[axis] = min(first for first, _ in own), max(last for _, last in own)
        return [self.written(folder, spans, found, level.depth, many[0].merges + 1)] if found else []

    def clean(self, manifest: Manifest) -> None:
        """Deletes what the manifest does not name, also what a crash kept an earlier batch from deleting."""
        named = {f.folder for f in manifest.files}
        for name in (self._root / _STATE).folders():
            if f"{_STATE}/{name}" not in named:
                (self._root / f"{_STATE}/{name}").delete()


def _first_panes(manifest: Manifest, level: Level) -> dict[int, int]:
    """The first pane of each table that a window still to be closed may hold."""
    first = {}
    for table in level.tables:
        windows = [(m.stage.window, manifest.closed.get(m.stage.name)) for m in table.members]
        if all(last is not None for _, last in windows):
            first[table.number] = min((last + 1) * table.panes(w).per_slide for w, last in windows if last is not None)
    return first


def _many(closes: bool) -> int:
    """How many folders are merged by a batch that closes windows, or by another one."""
    return _FOLDERS + 1 if closes else _FOLDERS
