"""The answers of a flow on disk: what each stage gave in each batch, for sinks, for later stages, for `run.results`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from headgate.bounded.answer import answer
from headgate.plan.logical.nodes import SAMPLING_RATE
from headgate.protocol.names import ANSWERS, answers_folder
from headgate.shed.estimate.sql import (
    TAKEN_AT,
    high,
    is_outlook,
    low,
    observed_outlook,
    outlook,
    outlook_figure,
    plain_calls,
)
from headgate.sql.text import Name, empty, quoted, stacked
from headgate.store.rows import Rows

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.protocol.manifest import Manifest


@dataclass(frozen=True)
class Written:
    """What was written of the answers of some stages."""

    counts: dict[str, int] = field(default_factory=dict)
    """By stage, how many there are."""
    outlooks: dict[str, list[Any]] = field(default_factory=dict)
    """By stage, what they say about its errors, if it was looked at."""


class Answers:
    """Reads and writes the answers of a flow below its folder."""

    def __init__(
        self,
        rows: Rows,
        mark: str,
        queries: Mapping[str, Continuous],
        stages: Mapping[str, Stage],
        levels: Sequence[Level],
        frames: Mapping[str, DataFrame],
    ) -> None:
        self._rows, self._mark, self._queries = rows, mark, queries
        self._stages, self._levels, self._frames = stages, levels, frames
        self._schemas: dict[str, StructType] = {}

    def write(self, parts: Sequence[DataFrame], batch: int, expected: int | None, looked_at: bool) -> Written:
        """Writes the answers of stages, each in a column of its own, and counts them."""
        if not parts:
            return Written()
        everything = stacked(parts)
        observed = Observation()
        outlooks = [c for c in everything.columns if is_outlook(c)]
        names = [c for c in everything.columns if not is_outlook(c)]
        figures = [f"count({quoted(c)}) AS {quoted(c)}" for c in names]
        if looked_at:
            figures += [sql for column in outlooks for sql in observed_outlook(Name(column))]
        counted = everything.observe(observed, F.expr(f"struct({', '.join(figures)})").alias(ANSWERS))
        self._rows.write(counted.drop(*outlooks), self._folder(names[0], batch, self._mark), expected)
        found = observed.get[ANSWERS].asDict()
        asked = ("squared", "tuples", "missed")
        told = {n: [found.get(outlook_figure(outlook(n), what).plain) for what in asked] for n in names}
        return Written(
            {name: int(found[name]) for name in names if found[name]},
            {name: own for name, own in told.items() if own[1] is not None},
        )

    def given(self, stage: str, batch: int) -> DataFrame:
        """The answers of a query, or of one of its stages, from the batch that is run."""
        return self._read(stage, [self._folder(stage, batch, self._mark)])

    def as_stream(self, stage: str, batch: int, weighed: bool) -> DataFrame:
        """The answers of a stage from the batch that is run, as the next stage reads them.

        Those that are `weighed` say at which rate they were sampled.
        """
        rows = self.given(stage, batch)
        return rows.withColumnRenamed(SAMPLING_RATE, TAKEN_AT.plain) if weighed else rows.drop(SAMPLING_RATE)

    def kept(self, stage: str, batches: range, manifest: Manifest) -> DataFrame:
        """The answers of a query from some batches that are committed."""
        there = set((self._rows.root / ANSWERS).folders())
        folders = [self._folder(stage, batch, manifest.mark(batch)) for batch in batches]
        return self._read(stage, [f for f in folders if f.rpartition("/")[2] in there])

    def _read(self, stage: str, folders: Iterable[str]) -> DataFrame:
        # The columns are known: Spark would run a job to find them out.
        if stage not in self._schemas:
            plan = self._queries[stage].plan if stage in self._queries else self._stages[stage].plan
            self._schemas[stage] = StructType([*answer(plan, self._frames).schema, *self._limits(stage)])
        paths = [self._rows.path(folder) for folder in folders]
        of_one = StructType([StructField(stage, self._schemas[stage])])
        rows = self._rows.spark.read.schema(of_one).parquet(*paths) if paths else empty(self._rows.spark, of_one)
        return rows.where(f"{quoted(stage)} IS NOT NULL").select(f"{quoted(stage)}.*")

    def _folder(self, stage: str, batch: int, mark: str) -> str:
        """Where a run puts the answers of a stage, and of all others of its depth and kind, in a batch."""
        own = self._stages[stage]
        return answers_folder(batch, own.depth, mark, own.join is not None)

    def keep(self, batch: int, queries: Iterable[str]) -> None:
        """Deletes what a batch gave but for the answers of some queries."""
        kept = {self._folder(query, batch, self._mark) for query in queries}
        for folder in {self._folder(stage, batch, self._mark) for stage in self._stages} - kept:
            (self._rows.root / folder).delete()

    def clear(self) -> None:
        """Deletes all answers."""
        (self._rows.root / ANSWERS).delete()

    def _limits(self, stage: str) -> list[StructField]:
        """The columns of the limits of a query that is estimated."""
        members = [m for level in self._levels for table in level.tables for m in table.members]
        found = []
        for member in members:
            if member.stage.name == stage and member.estimates is not None and member.stage.above is not None:
                for call, column in plain_calls(member.stage.above).items():
                    if call in member.estimates.types:
                        type_ = member.estimates.limit_type(call)
                        found += [StructField(low(column), type_), StructField(high(column), type_)]
        return found
