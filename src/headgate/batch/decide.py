"""Decide: what the batch is about, written down before anything is done."""

from __future__ import annotations

from dataclasses import replace

from headgate.batch.context import Context
from headgate.observe.report import decision_events
from headgate.protocol.decision import Decision, Drops
from headgate.shed.live.ahead import Ahead
from headgate.spark.failures import plain_errors
from headgate.spark.splitting import splitting


def decide(context: Context) -> Context:
    """Decides, or keeps to what was decided before a crash cut the batch off."""
    running, before = context.running, context.before
    running.checkpoint.check_alone(before)
    decision = running.checkpoint.pending(before)
    if decision is None:
        decision = _decided(context)
        running.checkpoint.begin(decision)
    _tell(context, decision.drops)
    with running.lock:
        running.shedding.subsets.restore(decision.drops.subsets)
    return replace(context, decided=decision)


def _tell(context: Context, drops: Drops) -> None:
    running = context.running
    known = context.before.shedding.get("suspended", {}) if running.shedding.overload is not None else {}
    suspended = [name for name in known if name in context.program.queries]
    for event in decision_events(context.number, drops, list(context.offer.found), suspended):
        running.tell(event)


def _decided(context: Context) -> Decision:
    running, offer = context.running, context.offer
    now = running.clock.now()
    return Decision(
        batch=context.number,
        source_batch=offer.source_batch,
        now=now,
        ended=tuple(offer.ended),
        held=offer.held,
        splitting=splitting(context.program.spark),
        drops=_drops(context, now),
    )


def _drops(context: Context, now: int) -> Drops:
    running, offer, before = context.running, context.offer, context.before
    amounts = {name: own.amount for name, own in offer.found.items()}
    with plain_errors():
        spans = running.span.spans(offer.found, running.shedding.subsets, before, offer.live)
    told = running.streams.asked(now)
    due = {closes: running.stored.state.due(before, closes) for closes in (False, True)}
    with running.lock:
        return running.shedding.decide(before, Ahead(amounts, spans, offer.interval, told, due, now))
