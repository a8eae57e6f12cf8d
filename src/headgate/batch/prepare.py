"""From what users have defined, and what a checkpoint holds, to a flow that can run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.batch.clock import Clock
from headgate.batch.context import Running, Stored
from headgate.batch.program import Definition, Program, program_of
from headgate.batch.propagate import kept_by
from headgate.batch.span import BatchSpan
from headgate.bounded.lower import lower
from headgate.progress.streams import Streams
from headgate.protocol.manifest import Manifest
from headgate.shed.fit import confidences
from headgate.shed.live.join_drops import shed_keeper
from headgate.shed.live.shedding import Shedding
from headgate.shed.policy import Policy
from headgate.spark.folder import Folder
from headgate.store.answers import Answers
from headgate.store.changes import check_columns, used_columns, with_added, without_dropped
from headgate.store.checkpoint import Checkpoint
from headgate.store.rows import Rows
from headgate.store.state import State
from headgate.store.tuples import Keeper, Tuples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.shed.controller import Overload


class Preparation:
    """A definition over a checkpoint, before the first batch or between two."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: Checkpoint,
        definition: Definition,
        policies: Mapping[str, Policy],
        overload: Overload | None,
        clock: Clock,
    ) -> None:
        self._spark, self._checkpoint, self._definition = spark, checkpoint, definition
        self._policies, self._overload, self._clock = policies, overload, clock
        self._columns = used_columns(definition.queries)

    def started(self, manifest: Manifest) -> tuple[Running, Manifest]:
        """What a flow is made of that goes on from a manifest, and the manifest with its queries."""
        known = self._without_dropped(manifest)
        check_columns(known, self._columns, self._definition.promised, self._checkpoint.path)
        shed = confidences(self._definition.queries, self._policies)
        program = program_of(self._spark, self._definition, known.state.tables, shed)
        manifest = self._with_added(known, program)
        running = Running(
            program=program,
            checkpoint=self._checkpoint,
            stored=self._stored(program),
            streams=Streams(self._definition.rules, manifest.progress.trackers, program.stages),
            shedding=self._shedding(program, manifest),
            span=BatchSpan(program.watches),
            clock=self._clock,
            lock=threading.Lock(),
        )
        return running, manifest

    def followed(self, new: Running, old: Running, manifest: Manifest) -> tuple[Running, Manifest]:
        """What was made anew, going on where another one is: both are of the same flow, with other queries."""
        manifest = self._with_added(self._without_dropped(manifest), new.program)
        streams = old.streams.over(new.program.stages)
        shedding = self._shedding(new.program, manifest)
        return replace(new, streams=streams, shedding=shedding, lock=old.lock, tell=old.tell), manifest

    def _without_dropped(self, manifest: Manifest) -> Manifest:
        own = self._definition
        return without_dropped(manifest, own.stages, own.texts, self._columns, own.anew, self._checkpoint.path)

    def _with_added(self, known: Manifest, program: Program) -> Manifest:
        own = self._definition
        manifest = with_added(known, own.stages, own.texts, program.levels)
        return replace(
            manifest,
            queries=replace(manifest.queries, columns=self._columns),
            progress=replace(manifest.progress, promised={**known.progress.promised, **own.promised}),
        )

    def _stored(self, program: Program) -> Stored:
        root = self._checkpoint.root
        assert isinstance(root, Folder)
        rows, mark = Rows(self._spark, root), self._checkpoint.mark
        keepers = [
            shed_keeper(Keeper(name, side, lower(side.plan, program.frames).schema), program.queries, self._policies)
            for name, stage in program.stages.items()
            for side in kept_by(stage)
        ]
        answers = Answers(rows, mark, program.queries, program.stages, program.levels, program.frames)
        return Stored(State(rows, mark, program.levels), Tuples(rows, mark, keepers), answers)

    def _shedding(self, program: Program, manifest: Manifest) -> Shedding:
        return Shedding(
            program.levels, program.stages, program.queries, self._policies, self._overload, manifest.shedding
        )
