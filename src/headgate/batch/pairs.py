"""The pairs of joins, and the new tuples that they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.batch.context import Context
from headgate.sql.text import quoted
from headgate.store.answers import Written
from headgate.store.faults import reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def is_anew(context: Context) -> bool:
    """Whether tuples set out to meet others that have turned out to be late since."""
    unknown = context.work.level.read_by_joins & context.work.figured
    return context.program.lateness.any_of(context.before, unknown, context.figures)


def new_tuples(context: Context, stages: Mapping[str, object]) -> dict[str, DataFrame]:
    """The new tuples of stages that keep some, without those that are known to be late."""
    retained, streams = context.input.retained, context.input.streams
    return retained.new(stages, streams, context.inputs, context.before, context.figures)


def given(context: Context, written: Written) -> Context:
    """The context with the answers of stages, as streams of the stages that read them."""
    answers, estimated = context.running.stored.answers, context.running.shedding.joins.estimated.values()
    inner = {name for name in written.counts if name not in context.program.queries}
    streams = {name: [answers.as_stream(name, context.number, weighed=name in estimated)] for name in inner}
    taken_in = replace(context.input, streams={**context.input.streams, **streams})
    return replace(context, taken_in=taken_in).counted(given=written.counts, outlooks=written.outlooks)


def pairs_of(context: Context, new: Mapping[str, DataFrame]) -> list[DataFrame]:
    """The pairs of the level's joins, each in a column of its own."""
    joins = context.work.level.joining
    pairs = {name: context.input.retained.pairs(stage, context.before, new) for name, stage in joins.items()}
    return [df.selectExpr(f"struct(*) AS {quoted(name)}") for name, df in pairs.items() if df is not None]


def write_pairs(context: Context, pairs: list[DataFrame]) -> Written:
    """Writes pairs as answers of their joins."""
    # The tasks that write pairs find them: all that may meet counts, however little comes of it.
    kept, last = sum(f.rows for f in context.before.state.tuples), context.offer.last
    running = context.running
    expected = None if last is None else kept + last.rows
    written = running.stored.answers.write(pairs, context.number, expected, running.shedding.overload is not None)
    reach("matched")
    return written
