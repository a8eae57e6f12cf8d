"""What shedding has made of the windows that close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate.bounded.rollup import WINDOW_ID
from headgate.shed.subset.sql import group_hash, threshold

_BEFORE_ALL = -(1 << 62)


@dataclass(frozen=True)
class Fate:
    """What shedding has made of the closing windows of a query."""

    tops: Mapping[int, float] = field(default_factory=dict)
    """The largest weight that a tuple may have had, by window, of those with tuples that were sampled."""
    dropped: frozenset[int] | None = None
    """The windows that are not answered, of a query that has such."""
    shares: Mapping[int, float] = field(default_factory=dict)
    """The share of groups that is kept, by window, of a query that drops groups."""

    @property
    def top(self) -> str:
        """That weight, as SQL: in the same form for any windows, so that Spark does not compile it anew."""
        pairs = ", ".join(f"{window}L, {top!r}D" for window, top in (self.tops or {_BEFORE_ALL: 1.0}).items())
        return f"coalesce(element_at(map({pairs}), {WINDOW_ID}), 1D)"

    def keeps(self, keys: Sequence[str]) -> str:
        """Whether a group of a window is answered, as SQL: nothing if all are."""
        if self.shares:
            pairs = ", ".join(f"{window}L, {threshold(share)}L" for window, share in self.shares.items())
            return f" AND {group_hash(keys)} <= element_at(map({pairs}), {WINDOW_ID})"
        if self.dropped is None:
            return ""
        windows = ", ".join(f"{window}L" for window in sorted(self.dropped) or [_BEFORE_ALL])
        return f" AND NOT array_contains(array({windows}), {WINDOW_ID})"
