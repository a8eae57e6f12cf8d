"""The windows, and the groups, that punctuation closes in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.progress.place import Punctuation


@dataclass(frozen=True)
class Box:
    """Groups by several progressing columns that close together: those below all of their places, new against old."""

    now: Mapping[str, Punctuation]
    before: Mapping[str, Punctuation]


@dataclass(frozen=True)
class Closing:
    """The windows of a query that close: those numbered from `first` to `last`; of groups, those in the box."""

    first: int
    last: int
    box: Box | None = None

    def __hash__(self) -> int:
        return hash((self.first, self.last))
