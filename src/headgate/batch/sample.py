"""Sample: what of each stream is read for the tables that do not need all of it."""

from __future__ import annotations

from headgate.batch.context import Context
from headgate.batch.narrow import Sample, narrowed, only_figures, shared_sample


def sample(context: Context) -> Context:
    """Takes the samples of the streams that the level is the first to look at."""
    return context.with_work(samples=samples_of(context))


def samples_of(context: Context) -> dict[str, Sample]:
    """By stream, what its tables need of it; streams of which they need everything are left out."""
    program, level, sampling = context.program, context.work.level, context.work.sampling
    passed_on = {
        s for stage in program.stages.values() if stage.aggregate is None or stage.holds for s in stage.streams
    }
    found: dict[str, Sample] = {}
    new = context.offer.found.keys() - program.numbered - context.figures.streams.keys()
    for watch in (w for w in program.watches.values() if w.stream in new):
        own = context.offer.found[watch.stream]
        taken = shared_sample(level, watch, own, sampling, context.work.until)
        taken = taken or only_figures(level, watch, own, sampling)
        if taken is None and watch.stream not in passed_on:
            taken = narrowed(level, watch, program.frames[watch.stream], own, sampling)
        if taken is not None:
            found[watch.stream] = taken
    return found
