"""Trial: a batch is ingested once more, at rates that are to be tried, to see how long that takes.

So the price of what can be shed is known before anything is. Nothing comes of it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from headgate.batch.context import Context
from headgate.batch.exclusion import LeftOut
from headgate.batch.ingest import coined, rows_of, watched
from headgate.batch.look_up import look_up
from headgate.batch.sample import samples_of
from headgate.protocol.figures import Figures
from headgate.shed.estimate.sql import Sampling


def trial(context: Context) -> Context:
    """Ingests the tuples at the rates that shedding asks for, if it asks for any."""
    shedding, clock = context.running.shedding, context.running.clock
    otherwise = context.watch.total - context.watch.laps.get("ingest", 0.0)
    rates = shedding.to_try(context.number, otherwise) if context.offer.found else {}
    if not rates:
        return context
    begun = clock.elapsed()
    with ExitStack() as until:
        if _ingested(context, Sampling(rates, context.number), until):
            with context.running.lock:
                shedding.tried(rates, otherwise + clock.elapsed() - begun)
    return context


def _ingested(context: Context, sampling: Sampling, until: ExitStack) -> bool:
    found = context.input.found
    left_out = LeftOut(context.program.levels[0], sampling, context.offer.found, found)
    taken_in = replace(context.input, streams=found, left_out=left_out)
    work = replace(context.work, level=context.program.levels[0], sampling=sampling, until=until)
    tried = replace(context, taken_in=taken_in, at=work, figures=Figures())
    tried = look_up(tried.with_work(samples=samples_of(tried)))
    watches = watched(tried)
    if watches:
        rows_of(tried, coined(tried), watches, {}).write.format("noop").mode("overwrite").save()
    return bool(watches)
