"""The tuples that joins and windows by tuple keep on disk, side by side in folders, each as long as it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from headgate.incremental.hold import Held, HeldByPartition
from headgate.incremental.match import Side
from headgate.protocol.manifest import Manifest, StateFiles
from headgate.protocol.names import merged_tuples_folder, tuples_folder
from headgate.shed.join.room import Room
from headgate.sql.text import position, quoted, stacked
from headgate.store.faults import reach
from headgate.store.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.progress import Punctuation

#: Folders that are merged into one once there are this many.
_FOLDERS = 8
_PLACE = "_hg_place"
#: What is known of the inputs of each stage: the punctuation on their attributes.
Told = Mapping[str, Mapping[str, "Punctuation"]]


@dataclass(frozen=True)
class Keeper:
    """One side of a join of a flow, or the input of an aggregate that holds its tuples, with their columns."""

    stage: str
    side: Side | Held
    schema: StructType

    @property
    def column(self) -> str:
        """The struct column that holds its tuples."""
        return f"{self.stage}:{self.side.which}"


class Tuples:
    """Reads and writes the tuples that joins keep. What there is, the manifest knows."""

    def __init__(self, rows: Rows, mark: str, keepers: Sequence[Keeper]) -> None:
        self._rows, self._mark, self.keepers = rows, mark, keepers
        self._last_read: tuple[tuple[str, ...], DataFrame] | None = None

    def of(self, stage: str) -> list[Keeper]:
        """What a stage keeps: both sides of a join, or the tuples of an aggregate."""
        return [keeper for keeper in self.keepers if keeper.stage == stage]

    def kept(self, manifest: Manifest, keeper: Keeper, told: Mapping[str, Punctuation]) -> DataFrame | None:
        """The tuples of a side that are still needed; None if there is no file with any."""
        files = [f for f in manifest.state.tuples if keeper.column in f.spans]
        paths = [self._rows.path(path) for f in files for path in f.paths]
        if not paths:
            return None
        column = quoted(keeper.column)
        rows = self._read(tuple(paths)).where(f"{column} IS NOT NULL").selectExpr(f"{column}.*")
        return keeper.side.live(rows, told)

    def _read(self, paths: tuple[str, ...]) -> DataFrame:
        """Files of tuples. Both sides of a join are mostly in the same ones, which are looked for once."""
        if self._last_read is None or self._last_read[0] != paths:
            schema = StructType([StructField(keeper.column, keeper.schema) for keeper in self.keepers])
            self._last_read = paths, self._rows.spark.read.schema(schema).parquet(*paths)
        return self._last_read[1]

    def add(self, manifest: Manifest, batch: int, depth: int, new: Mapping[str, DataFrame], told: Told) -> Manifest:
        """The manifest with those of the new tuples of each side that are needed from now on."""
        live = {}
        for keeper in self.keepers:
            if keeper.column in new:
                df, by_partition = new[keeper.column], isinstance(keeper.side, HeldByPartition)
                # What a partition needs depends on all of its rows, and is found out with the next compaction.
                live[keeper.column] = df if by_partition else keeper.side.live(df, told[keeper.stage])
        folder = tuples_folder(batch, depth, self._mark)
        return self._written(manifest, folder, live) if live else manifest

    def purged(self, manifest: Manifest, told: Told) -> Manifest:
        """The manifest without files of which no tuple is needed any more."""

        def needed(spans: Mapping[str, tuple[float, float]]) -> bool:
            return any(
                not keeper.side.is_spent(spans[keeper.column][1], told.get(keeper.stage, {}))
                for keeper in self.keepers
                if keeper.column in spans
            )

        return _with(manifest, tuple(f for f in manifest.state.tuples if needed(f.spans)))

    def compacted(self, manifest: Manifest, batch: int, told: Told, rooms: Sequence[Room] = ()) -> Manifest:
        """The manifest with all files as one, without the tuples that are not needed any more, where they are many.

        Of joins that have no room for all that are needed, the least useful ones are let go.
        """
        full = [room for room in rooms if self.count(manifest, room.stage) > room.tuples]
        if len(manifest.state.tuples) < _FOLDERS and not full:
            return manifest
        live = {}
        for keeper in self.keepers:
            rows = self.kept(manifest, keeper, told.get(keeper.stage, {}))
            if rows is not None:
                live[keeper.column] = rows
        folder = merged_tuples_folder(batch, self._mark)
        merged = self._written(_with(manifest, ()), folder, live, full)
        reach("compacted")
        return merged

    def count(self, manifest: Manifest, stage: str) -> int:
        """How many tuples of a stage are kept, with those that nobody needs any more."""
        return sum(f.counts.get(keeper.column, 0) for keeper in self.of(stage) for f in manifest.state.tuples)

    def _written(
        self, manifest: Manifest, folder: str, live: Mapping[str, DataFrame], full: Sequence[Room] = ()
    ) -> Manifest:
        parts: dict[str, DataFrame] = {}
        figures, rooms = [], {room.stage: room for room in full}
        for i, (column, df) in enumerate(live.items()):
            keeper = next(k for k in self.keepers if k.column == column)
            place = f"CAST({position(df, keeper.side.attributes[0])} AS DOUBLE) AS {_PLACE}"
            ranks = rooms[keeper.stage].ranks(df, keeper.side.which) if keeper.stage in rooms else []
            parts[column] = df.selectExpr(f"struct(*) AS {quoted(column)}", place, *ranks)
            own = f"CASE WHEN {quoted(column)} IS NOT NULL THEN {_PLACE} END"
            figures += [f"min({own}) AS first_{i}", f"max({own}) AS last_{i}", f"count({quoted(column)}) AS count_{i}"]
        observed = Observation()
        for room in full:
            both = [parts.pop(keeper.column) for keeper in self.of(room.stage) if keeper.column in parts]
            parts |= {room.stage: room.most_useful(stacked(both))} if both else {}
        everything = stacked(parts.values())
        figures.append("count(*) AS rows")
        counted = everything.observe(observed, F.expr(f"struct({', '.join(figures)})").alias("kept"))
        # They are many, and read a few times only before they are gone.
        self._rows.write(counted.drop(_PLACE), folder, compression="snappy")
        found = observed.get["kept"].asDict()
        ends = {column: (found[f"first_{i}"], found[f"last_{i}"]) for i, column in enumerate(live)}
        spans = {column: (first, last) for column, (first, last) in ends.items() if first is not None}
        if not spans:
            return manifest
        files = self._rows.written(folder, spans, found["rows"])
        files = replace(files, counts={column: found[f"count_{i}"] for i, column in enumerate(live)})
        return _with(manifest, (*manifest.state.tuples, files))


def _with(manifest: Manifest, tuples: tuple[StateFiles, ...]) -> Manifest:
    return replace(manifest, state=replace(manifest.state, tuples=tuples))
