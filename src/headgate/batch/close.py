"""Close: windows that punctuation has completed are answered, and tuples without a window passed on, in one job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headgate.batch.context import Context
from headgate.batch.pairs import given, is_anew, new_tuples
from headgate.bounded.answer import answer
from headgate.incremental.close import answers
from headgate.plan.logical.nodes import SAMPLING_RATE
from headgate.store.faults import reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def close(context: Context) -> Context:
    """Writes the answers of the level, and gives them to the stages that read them."""
    level = context.work.level
    met = new_tuples(context, level.joining) if is_anew(context) else context.work.met
    context = context.with_work(new={**new_tuples(context, level.holding), **met})
    parts = [*_closed(context), *_passed_on(context), *_decided(context)]
    running, last = context.running, context.offer.last
    expected = None if last is None else sum(last.answers.values())
    written = running.stored.answers.write(parts, context.number, expected, running.shedding.overload is not None)
    reach("closed")
    return given(context, written)


def _closed(context: Context) -> Iterator[DataFrame]:
    """The answers of windows over partial rows."""
    level, closings, state = context.work.level, context.work.closings, context.running.stored.state
    files = state.needed(context.manifest, level, closings) if closings else []
    if files:
        fates = context.running.shedding.fates(level, closings)
        rows = answers(state.read(level, files), level.tables, closings, fates)
        if rows is not None:
            yield rows


def _passed_on(context: Context) -> Iterator[DataFrame]:
    """The tuples of stages that need no window."""
    left_out, streams = context.input.left_out, context.input.streams
    for name, stage in context.work.level.passing_on.items():
        if set(stage.streams) & set(streams):
            rate, tuples = left_out.sampling.rate(stage.query), left_out.of(stage.query, streams)
            rows = answer(stage.plan, context.program.inputs(stage.streams, tuples))
            rows = rows.withColumn(SAMPLING_RATE, F.col(SAMPLING_RATE) * F.lit(rate))
            yield rows.select(F.struct("*").alias(name))


def _decided(context: Context) -> Iterator[DataFrame]:
    """What is decided by now of stages that need the tuples themselves."""
    retained, new = context.input.retained, context.work.new
    for name, stage in context.work.level.holding.items():
        found = retained.decided(stage, context.before, context.manifest, new)
        if found is not None:
            yield found.select(F.struct("*").alias(name))
