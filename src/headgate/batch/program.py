"""The program of a flow: its queries in stages and levels, and its streams, as they are for every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.batch.lateness import Lateness
from headgate.batch.outlet import Outlet
from headgate.bounded.lower import lower
from headgate.connect.scan import Batches, sound
from headgate.incremental.levels import Level, levels
from headgate.incremental.reduce import MALFORMED, Watch
from headgate.plan.logical.nodes import ROW_NUM
from headgate.plan.stream.stages import Continuous, Stage, tables_of
from headgate.progress import StreamProgress
from headgate.sql.text import empty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from headgate.connect.tables import Tables


@dataclass(frozen=True)
class Definition:
    """What users have defined: queries over streams and tables, and where the answers go."""

    schemas: Mapping[str, StructType]
    rules: Mapping[str, StreamProgress | None]
    queries: Mapping[str, Continuous]
    texts: Mapping[str, str]
    outlets: Sequence[Outlet]
    tables: Tables
    anew: Collection[str] = ()
    """The queries that begin anew."""

    @cached_property
    def stages(self) -> dict[str, Stage]:
        """The stages of all queries."""
        return {stage.name: stage for query in self.queries.values() for stage in query.stages}

    @cached_property
    def numbered(self) -> frozenset[str]:
        """The streams whose tuples have arrival numbers."""
        return frozenset[str]().union(*(query.numbered for query in self.queries.values()))

    @property
    def promised(self) -> dict[str, dict[str, str]]:
        """By stream, the attribute that progresses, with its type."""
        own = {name: rule for name, rule in self.rules.items() if rule is not None}
        return {
            name: {"attr": rule.attr, "type": self.schemas[name][rule.attr].dataType.simpleString()}
            for name, rule in own.items()
        }


@dataclass(frozen=True)
class Program:
    """A definition, prepared for batches."""

    spark: SparkSession
    definition: Definition
    frames: Mapping[str, DataFrame]
    """By stream, table and stage, a DataFrame with its columns and no rows."""
    watches: Mapping[str, Watch]
    """By stream, what is looked for in its tuples."""
    levels: Sequence[Level]

    @property
    def queries(self) -> Mapping[str, Continuous]:
        """The queries by name."""
        return self.definition.queries

    @property
    def stages(self) -> Mapping[str, Stage]:
        """The stages of all queries by name."""
        return self.definition.stages

    @property
    def numbered(self) -> frozenset[str]:
        """The streams whose tuples have arrival numbers."""
        return self.definition.numbered

    @property
    def outlets(self) -> Sequence[Outlet]:
        """Where answers and other tuples go."""
        return self.definition.outlets

    @cached_property
    def good(self) -> dict[str, str | None]:
        """By stream, which of its tuples can be used, as SQL; None where all can."""
        return {name: watch.is_good(self.frames[name]) for name, watch in self.watches.items()}

    @cached_property
    def lateness(self) -> Lateness:
        """Which tuples come too late."""
        return Lateness(self.stages)

    @cached_property
    def looked_into(self) -> set[str]:
        """The tables that tuples are looked up in."""
        return {name for query in self.queries.values() for name in tables_of(query.plan)}

    @cached_property
    def closing(self) -> dict[str, Stage]:
        """The stages whose windows close."""
        return {name: stage for level in self.levels for name, stage in level.aggregating.items()}

    def inputs(self, streams: Iterable[str], batches: Batches) -> dict[str, DataFrame]:
        """The usable tuples of streams in a batch; the columns alone of a stream that has brought none."""
        return {s: sound(batches.get(s, [self.frames[s]]), self.good.get(s)) for s in streams}

    def keeps(self, query: str) -> bool:
        """Whether the flow itself keeps the answers of a query."""
        taken = [o for o in self.outlets if o.of == query and o.output == "answers"]
        return not taken or any(outlet.keeps for outlet in taken)

    @cached_property
    def reads(self) -> dict[str, int]:
        """How often each stream is read in a batch: once for each set of keys, and for each query that passes it on."""
        tables = [table for level in self.levels for table in level.tables]
        reduced = Counter(feed.stream for table in tables for feed in table.feeds)
        passed_on = Counter(s for level in self.levels for stage in level.passing_on.values() for s in stage.streams)
        # A new tuple meets those that are kept and those that are new, and is kept.
        keeping = [stage for level in self.levels for stage in (*level.joining.values(), *level.holding.values())]
        passed_on.update(s for stage in keeping for s in stage.streams * 3)
        for name, stage in reversed([i for level in self.levels for i in level.looking_up.items()]):
            passed_on.update(dict.fromkeys(stage.streams, reduced[name] + passed_on[name]))
        by_group = Counter(name for name, watch in self.watches.items() if watch.by is not None)
        # How many tuples came, and how far they got, is told by a table, or else by a look of its own. Those that have
        # numbers are counted first.
        reads = {name: (reduced[name] or 1) + passed_on[name] + by_group[name] for name in self.frames}
        return {name: count + (name in self.numbered) for name, count in reads.items()}


def frames_of(spark: SparkSession, definition: Definition) -> dict[str, DataFrame]:
    """The columns of all streams, tables and stages, as DataFrames without rows."""
    schemas = {**definition.schemas, **definition.tables.schemas}
    frames = {name: empty(spark, schema) for name, schema in schemas.items()}
    for name in definition.numbered:
        frames[name] = frames[name].withColumn(ROW_NUM, F.lit(0).cast("bigint"))
    for query in definition.queries.values():
        for stage in query.stages[:-1]:
            frames[stage.name] = empty(spark, lower(stage.plan, frames).schema)
    return frames


def program_of(
    spark: SparkSession,
    definition: Definition,
    layouts: Sequence[Mapping[str, object]],
    shed: Mapping[str, float | None],
) -> Program:
    """The program of a definition, with the tables that are on disk by their layouts.

    Of queries in `shed`, tuples may be left out; those with a confidence are estimated from samples.
    """
    frames = frames_of(spark, definition)
    watches = {
        name: Watch(
            name,
            own.attr if own else None,
            own.rule.needs.marked_by if own else None,
            own.by if own else None,
            marked=MALFORMED in frames[name].columns,
            numbered=name in definition.numbered,
            ranked=own.rule.needs.ranks if own else (),
        )
        for name, own in definition.rules.items()
    }
    found = levels(list(definition.stages.values()), list(watches.values()), frames, layouts, shed)
    return Program(spark, definition, frames, watches, found)
