"""Keep: the new tuples of joins, DISTINCT and windows by tuple that others may still need."""

from __future__ import annotations

from dataclasses import replace

from headgate.batch.context import Context


def keep(context: Context) -> Context:
    """Adds the level's new tuples to those that are kept."""
    work, retained = context.work, context.input.retained
    manifest = retained.kept(work.level, context.before, context.manifest, work.new, context.number)
    return replace(context, manifest=manifest)
