"""Learn: what the batch did is counted, and taken in by what decides about the next ones."""

from __future__ import annotations

from dataclasses import replace

from headgate.batch.context import Context
from headgate.protocol import transitions
from headgate.shed.live.shedding import Shedding


def learn(context: Context) -> Context:
    """Adds the counts of the batch to the manifest, and what shedding knows by now."""
    running, manifest, shedding = context.running, context.manifest, context.running.shedding
    manifest = transitions.happened(manifest, context.decision, running.streams.state())
    with running.lock:
        dropped = shedding.lost(context.decision.drops, context.before, manifest)
    context = context.counted(dropped=dropped)
    for what, counted in context.counts.items():
        manifest = transitions.counted(manifest, what, counted)
    context = replace(context, manifest=manifest)
    with running.lock:
        _joins(context, shedding)
        shedding.closed(manifest)
        if context.offer.found:
            _load(context, shedding)
        shedding.happened(context.number, context.decision.drops)
        manifest = replace(manifest, shedding=shedding.state())
    return replace(context, manifest=manifest)


def _joins(context: Context, shedding: Shedding) -> None:
    tuples = context.running.stored.tuples
    before = {stage: tuples.count(context.before, stage) for stage in shedding.joins.stages}
    shedding.joins.observe(context.input.retained.drops, context.rows, context.tally.given, before)


def _load(context: Context, shedding: Shedding) -> None:
    answers = context.tally.of(context.program.queries)
    shedding.observe(
        context.decision.drops,
        {name: own.amount for name, own in context.offer.found.items()},
        context.figures,
        context.tally.outlooks,
        (context.before, context.manifest),
        sum(count for name, count in answers.items() if name not in shedding.joins.stages),
        context.watch.total,
        context.offer.interval,
    )
