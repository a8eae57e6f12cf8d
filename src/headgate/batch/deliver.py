"""Deliver: the answers of the batch go to their sinks, under the name of the query and the number of the batch."""

from __future__ import annotations

from headgate.batch.context import Context
from headgate.batch.outlet import failing
from headgate.store.faults import reach


def deliver(context: Context) -> Context:
    """Gives each sink the answers of its query, if there are any."""
    running, number = context.running, context.number
    running.checkpoint.check_alone(context.before)
    for outlet in context.program.outlets:
        if outlet.output == "answers" and context.tally.given.get(outlet.of):
            with failing(outlet):
                outlet.sink.deliver(running.stored.answers.given(outlet.of, number), outlet.of, number)
    reach("delivered")
    return context
