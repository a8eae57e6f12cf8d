"""Progress: punctuation says that no later tuple is below it. That closes windows and frees state."""

from headgate.progress.granularity import coarsened
from headgate.progress.place import Punctuation, furthest, least
from headgate.progress.propagation import Reached, closed, joined_up, late_before, opened, punctuation, reached
from headgate.progress.rule import Needs, ProgressRule, Seen
from headgate.progress.slack import ranks
from headgate.progress.span import Span
from headgate.progress.stream import StreamProgress, progress
from headgate.progress.tracker import Tracker

__all__ = [
    "Needs",
    "ProgressRule",
    "Punctuation",
    "Reached",
    "Seen",
    "Span",
    "StreamProgress",
    "Tracker",
    "closed",
    "coarsened",
    "furthest",
    "joined_up",
    "late_before",
    "least",
    "opened",
    "progress",
    "punctuation",
    "ranks",
    "reached",
]
