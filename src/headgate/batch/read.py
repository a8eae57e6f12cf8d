"""Read: the tuples that came, with their arrival numbers, and what of them is left out for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.batch.context import Context, Input
from headgate.batch.exclusion import LeftOut
from headgate.batch.retained import Retained
from headgate.bounded.numbering import with_arrival_numbers
from headgate.connect.scan import together
from headgate.plan.logical.nodes import ROW_NUM
from headgate.shed.live.join_drops import JoinDrops
from headgate.sql.text import stacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.batch.program import Program
    from headgate.connect.scan import Read
    from headgate.protocol.manifest import Manifest


def read(context: Context) -> Context:
    """Takes in what was found of each stream."""
    running, program, drops = context.running, context.program, context.decision.drops
    found = {name: with_numbers(program, context.before, name, own) for name, own in context.offer.found.items()}
    sampling = running.shedding.sampling(context.number, drops.rates)
    joins = JoinDrops(running.shedding.joins.completed(drops.joins), context.number)
    taken_in = Input(
        streams=found,
        found=found,
        tables=program.definition.tables.now(program.looked_into),
        left_out=LeftOut(program.levels[0], sampling, context.offer.found, found),
        retained=Retained(running.stored.tuples, program.lateness, joins),
    )
    return replace(context, taken_in=taken_in)


def with_numbers(program: Program, before: Manifest, stream: str, own: Read) -> Sequence[DataFrame]:
    """The tuples of a stream with their arrival numbers, if any query needs them; bad ones have none.

    A batch that is run again reads the same files in the same order, and so gives the same numbers.
    """
    pieces = [piece.df for piece in own.pieces]
    if stream not in program.numbered:
        return pieces
    df, good, first = together(pieces), program.good[stream], before.progress.numbered.get(stream, 0)
    rows, others = with_arrival_numbers(df, ROW_NUM, first, good, own.place, own.order)
    return [stacked([rows, df.where(f"NOT coalesce({good}, false)").drop(*own.place)])] if others else [rows]
