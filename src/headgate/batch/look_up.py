"""Look up: tuples with the rows of tables that they match, as streams of their own."""

from __future__ import annotations

from dataclasses import replace

from headgate.batch.context import Context
from headgate.bounded.lower import lower


def look_up(context: Context) -> Context:
    """Adds the streams of the level's stages that look tuples up in tables."""
    found = dict(context.input.streams)
    for name, stage in context.work.level.looking_up.items():
        if set(stage.streams) & found.keys():
            inputs = context.program.inputs(stage.streams, found)
            found[name] = [lower(stage.plan, {**inputs, **context.input.tables})]
    return replace(context, taken_in=replace(context.input, streams=found))
