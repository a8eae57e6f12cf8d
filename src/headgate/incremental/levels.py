"""A level: the stages of a flow that can run once those before them have given their answers of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headgate.incremental.reduce import Watch, ingested, kept_columns, partial_rows
from headgate.plan.stream.stages import origins
from headgate.sharing.seating import shared_tables
from headgate.sharing.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.plan.stream.stages import Stage


@dataclass
class Level:
    """Stages of one depth, the tables that they share, and what is looked for in the streams that they read."""

    depth: int
    stages: dict[str, Stage]
    tables: list[Table]
    watches: list[Watch]
    _frames: Mapping[str, DataFrame]
    _all: Mapping[str, Stage]
    _columns: dict[frozenset[str], list[str]] = field(default_factory=dict)

    @property
    def aggregating(self) -> dict[str, Stage]:
        """The stages that keep partials."""
        return {n: stage for n, stage in self.stages.items() if stage.aggregate is not None and not stage.holds}

    @property
    def passing_on(self) -> dict[str, Stage]:
        """The stages whose tuples leave at once."""
        return {name: stage for name, stage in self.stages.items() if stage.own is None}

    @property
    def looking_up(self) -> dict[str, Stage]:
        """The stages whose tuples are looked up in a table, in the order in which one may read the other."""
        return {name: stage for name, stage in self.stages.items() if stage.looks_up}

    @property
    def holding(self) -> dict[str, Stage]:
        """The stages that need the tuples themselves."""
        return {name: stage for name, stage in self.stages.items() if stage.holds}

    @property
    def joining(self) -> dict[str, Stage]:
        """The stages that keep tuples for others to meet."""
        return {name: stage for name, stage in self.stages.items() if stage.join is not None}

    @property
    def read_by_joins(self) -> frozenset[str]:
        """The streams that joins read."""
        return frozenset(s for stage in self.joining.values() for s in stage.streams)

    def origins(self, stage: Stage) -> frozenset[str]:
        """The streams that the tuples of a stage come from, by way of tables or directly."""
        return frozenset[str]().union(*(origins(s, self._all) for s in stage.streams))

    @cached_property
    def axes(self) -> dict[str, list[int]]:
        """The tables with panes on each axis."""
        found: dict[str, list[int]] = {}
        for table in self.tables:
            found.setdefault(table.axis, []).append(table.number)
        return found

    @cached_property
    def longest_pane(self) -> dict[str, float]:
        """The length of the longest pane on each axis."""
        lengths = [(t.axis, float(t.cut.start(1) - t.cut.start(0))) for t in self.tables]
        return {axis: max(length for a, length in lengths if a == axis) for axis in self.axes}

    def reduces(self, stream: str) -> bool:
        """Whether tuples of a stream go into a table."""
        return any(table.reads(stream) for table in self.tables)

    def axis(self, stage: str) -> str:
        """The axis that the windows of a stage are on."""
        return next(t.axis for t in self.tables if any(m.stage.name == stage for m in t.members))

    def columns(self, rows: DataFrame, streams: frozenset[str]) -> list[str]:
        """The columns that are kept of what was ingested of some streams; Spark is asked once, as it takes long."""
        if streams not in self._columns:
            self._columns[streams] = kept_columns(rows.columns)
        return self._columns[streams]

    @cached_property
    def state_schema(self) -> StructType:
        """The columns of the state."""
        frames = {watch.stream: [self._frames[watch.stream]] for watch in self.watches}
        watches = [_judged(watch) for watch in self.watches]
        rows = ingested(frames, self.tables, watches, {})
        kept = partial_rows(rows, kept_columns(rows.columns))
        assert kept is not None
        return kept.schema


def levels(
    stages: Sequence[Stage],
    watches: Sequence[Watch],
    frames: Mapping[str, DataFrame],
    layouts: Sequence[Mapping[str, Any]],
    shed: Mapping[str, float | None],
) -> list[Level]:
    """The stages by depth, with the tables that they have on disk by their layouts.

    Of queries in `shed`, tuples may be left out; those with a confidence are estimated from samples. What is to be
    known of the flow's own streams is looked for at the first level.
    """
    found: list[Level] = []
    known = {watch.stream: watch for watch in watches}
    for depth in range(1 + max(stage.depth for stage in stages)):
        own = {stage.name: stage for stage in stages if stage.depth == depth}
        numbers = [layout["number"] for layout in layouts] + [t.number for level in found for t in level.tables]
        aggregating = [s for s in own.values() if s.aggregate is not None and not s.holds]
        tables = shared_tables(aggregating, frames, 1 + max(numbers, default=-1), layouts, shed)
        read = dict.fromkeys(s for stage in own.values() for s in stage.streams)
        looked_for = list(watches) if depth == 0 else []
        others = [name for name in read if depth > 0 or name not in known]
        looked_for += [_judged(known[name]) if name in known else Watch(name, None, figures=False) for name in others]
        found.append(Level(depth, own, tables, looked_for, frames, {stage.name: stage for stage in stages}))
    return found


def _judged(watch: Watch) -> Watch:
    """What tells which tuples of a stream are bad, of which no more is to be known."""
    return Watch(watch.stream, watch.attribute, marked=watch.marked, figures=False)
