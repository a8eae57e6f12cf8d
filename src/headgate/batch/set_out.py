"""Set out: the new tuples of joins look for others, beside all that follows.

Pairs need no punctuation. Only if the ingest finds late tuples among the new ones, the pairs are found again without
them.
"""

from __future__ import annotations

from headgate.batch.context import Context
from headgate.batch.pairs import new_tuples, pairs_of, write_pairs


def set_out(context: Context) -> Context:
    """Lets the new tuples of the level's joins meet those that are kept, and one another."""
    # Their plan is made first: what else is planned would only hold up the longest of the batch's jobs.
    met = new_tuples(context, context.work.level.joining)
    pairs = pairs_of(context, met)
    return context.with_work(met=met, matching=context.work.aside.submit(write_pairs, context, pairs))
