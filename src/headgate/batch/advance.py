"""Advance: how far the streams of a level have come, and which windows that closes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.batch.context import Context
from headgate.batch.propagate import closed_windows, closings, heard, passed_on, written_places
from headgate.progress import Seen
from headgate.protocol import transitions


def advance(context: Context) -> Context:
    """Takes punctuation through the stages of the level."""
    if context.work.level.depth == 0:
        context = _streams(context)
    level, punctuated = context.work.level, context.work.punctuated
    passed_on(level, punctuated)
    now_closed = closed_windows(level, context.manifest, punctuated)
    closing = closings(level, context.manifest, now_closed, punctuated.boxes)
    windows = context.manifest.windows
    boxes = {name: written_places(box) for name, box in punctuated.boxes.items()}
    windows = replace(windows, closed={**windows.closed, **now_closed}, boxes={**windows.boxes, **boxes})
    manifest = heard(level, replace(context.manifest, windows=windows), punctuated)
    return replace(context.with_work(closings=closing), manifest=manifest)


def _streams(context: Context) -> Context:
    """Takes in how far the streams of the flow have come, and tells their punctuation."""
    running, decision, figures = context.running, context.decision, context.figures
    seen: dict[str, Mapping[str | None, Seen]] = {
        name: figures.of(name).groups if tracker.progress.by else {None: figures.of(name).seen}
        for name, tracker in running.streams.trackers.items()
        if name in context.offer.found
    }
    running.streams.observe(seen, decision.now, decision.ended, decision.held)
    manifest = transitions.advanced(context.manifest, decision, figures, context.program.numbered)
    with running.lock:
        running.span.advance(running.shedding.subsets, context.before, manifest)
        running.shedding.sampled(figures, context.work.sampling.rates, context.before, manifest)
        running.shedding.pairs_sampled(figures, context.input.retained.drops.plans)
    told = running.streams.tell(decision.now, manifest.progress.ended)
    idle = running.streams.idle(decision.now)
    numbered = {name: manifest.progress.numbered.get(name, 0) for name in context.program.numbered}
    context.work.punctuated.streams.update(running.streams.reached(told, numbered, idle))
    context.work.punctuated.idle.update(idle)
    return replace(context, manifest=manifest)
