"""Compact: files that nobody needs any more leave the manifest, and many small ones become one."""

from __future__ import annotations

from dataclasses import replace

from headgate.batch.context import Context
from headgate.batch.propagate import read_places


def compact(context: Context) -> Context:
    """Purges and merges partial rows and kept tuples."""
    stored, manifest = context.running.stored, context.manifest
    closes = manifest.windows.closed != context.before.windows.closed
    manifest = stored.state.compacted(stored.state.purged(manifest), context.number, closes)
    told = read_places(manifest.windows.told)
    rooms = context.running.shedding.joins.rooms()
    manifest = stored.tuples.compacted(stored.tuples.purged(manifest, told), context.number, told, rooms)
    return replace(context, manifest=manifest)
