"""Commit: one atomic write, after which the batch has happened."""

from __future__ import annotations

from dataclasses import replace

from headgate.batch.context import Context


def commit(context: Context) -> Context:
    """Writes the manifest."""
    return replace(context, manifest=context.running.checkpoint.commit(context.manifest))
