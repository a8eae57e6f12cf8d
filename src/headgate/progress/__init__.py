"""Progress: punctuation says that no tuple below it is still to come, which closes windows and frees state."""

from headgate.progress.granularity import coarsened
from headgate.progress.group import Seen
from headgate.progress.place import Punctuation, furthest, least
from headgate.progress.propagation import closed, late_before, punctuation
from headgate.progress.rule import Rule, Span, progress
from headgate.progress.tracker import Tracker

__all__ = [
    "Punctuation",
    "Rule",
    "Seen",
    "Span",
    "Tracker",
    "closed",
    "coarsened",
    "furthest",
    "late_before",
    "least",
    "progress",
    "punctuation",
]
