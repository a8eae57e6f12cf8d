"""Progress: punctuation says that no tuple below it is still to come, which closes windows and frees state."""

from headgate.progress.granularity import coarsened
from headgate.progress.group import Seen
from headgate.progress.place import Punctuation, furthest, least
from headgate.progress.propagation import Reached, closed, joined_up, late_before, opened, punctuation, reached
from headgate.progress.rule import Rule, Span, progress
from headgate.progress.slack import ranks
from headgate.progress.tracker import Tracker

__all__ = [
    "Punctuation",
    "Reached",
    "Rule",
    "Seen",
    "Span",
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
