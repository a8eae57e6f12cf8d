"""Clean: what the batch needed, and nobody will, is deleted; so is what a crash kept an earlier batch from deleting."""

from __future__ import annotations

from headgate.batch.context import Context


def clean(context: Context) -> Context:
    """Deletes what the manifest does not name."""
    running, program, given = context.running, context.program, context.tally.given
    kept = [query for query in program.queries if program.keeps(query)]
    if kept:
        if context.offer.last is None:
            running.checkpoint.clean_answers(context.manifest)
        running.stored.answers.keep(context.number, [query for query in kept if given.get(query)])
    else:
        running.stored.answers.clear()
    running.checkpoint.clean(context.manifest)
    return context
