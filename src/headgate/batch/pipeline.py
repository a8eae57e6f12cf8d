"""The road of a batch: its steps, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

from headgate.batch.advance import advance
from headgate.batch.clean import clean
from headgate.batch.close import close
from headgate.batch.commit import commit
from headgate.batch.compact import compact
from headgate.batch.context import Context, Step, Work
from headgate.batch.decide import decide
from headgate.batch.deliver import deliver
from headgate.batch.ingest import ingest
from headgate.batch.keep import keep
from headgate.batch.learn import learn
from headgate.batch.look_up import look_up
from headgate.batch.match import match
from headgate.batch.propagate import Punctuated
from headgate.batch.read import read
from headgate.batch.sample import sample
from headgate.batch.set_aside import set_aside
from headgate.batch.set_out import set_out
from headgate.batch.trial import trial
from headgate.incremental.levels import Level
from headgate.shed.estimate.sql import Sampling


def levels(context: Context) -> Context:
    """Takes a batch through all levels: the answers of one are the tuples that the next ingests."""
    with ThreadPoolExecutor(1) as aside, ExitStack() as until:
        punctuated = Punctuated({}, set())
        for level in context.program.levels:
            context = replace(context, at=Work(level, _sampling(context, level), aside, until, punctuated))
            context = passed_through(LEVEL_STEPS, context)
    return context


def _sampling(context: Context, level: Level) -> Sampling:
    """What is left out of the tuples of a level: of answers nothing, but pairs of joins may have been sampled."""
    if level.depth == 0:
        return context.input.left_out.sampling
    return Sampling({}, context.number, weighed=frozenset(context.running.shedding.joins.estimated))


#: What each level does.
LEVEL_STEPS: tuple[Step, ...] = (look_up, set_out, sample, ingest, advance, set_aside, close, keep, match)
#: What a batch does.
STEPS: tuple[Step, ...] = (decide, read, levels, deliver, compact, learn, commit, clean, trial)


def passed_through(steps: Sequence[Step], context: Context) -> Context:
    """The context after some steps, each timed by its name."""
    for step in steps:
        since = context.watch.clock.elapsed()
        context = step(context)
        if step is not levels:
            context.watch.lap(step.__name__, since)
    return context
