"""The kinds of window by what must be known to give a tuple its window ids (thesis section 6.1.2)."""

from __future__ import annotations

from enum import Enum


class Category(Enum):
    """How much of the stream, besides the tuple itself, `wids` has to look at.

    >>> Category.FORWARD_CONTEXT_AWARE.value
    'forward-context aware'
    """

    CONTEXT_FREE = "context free"
    """The tuple alone decides: nothing is kept."""

    FORWARD_CONTEXT_FREE = "forward-context free"
    """Tuples that came before count too: a little state, and the ids are still known at once."""

    FORWARD_CONTEXT_AWARE = "forward-context aware"
    """Tuples yet to come count too: the tuple has to wait in a buffer."""
