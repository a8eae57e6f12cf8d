"""Match: the pairs of joins leave, whichever of their tuples came last."""

from __future__ import annotations

from headgate.batch.context import Context
from headgate.batch.pairs import given, is_anew, pairs_of, write_pairs


def match(context: Context) -> Context:
    """Waits for the pairs; finds them anew if there were late tuples among the new ones."""
    assert context.work.matching is not None
    written = context.work.matching.result()
    if is_anew(context):
        written = write_pairs(context, pairs_of(context, context.work.new))
    return given(context, written)
