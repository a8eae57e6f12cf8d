"""`subset` by group: whole groups are dropped by a hash of their key, and the others are exact.

A group is kept in a window if the hash of its key, a number from 0 to 1, is below the share of that window. So a lower
share keeps some of the groups that a higher one keeps, and no others. A window has the share that holds where it
begins: a new share holds for windows that begin later, and until the others have ended a tuple is kept by the highest
share of all windows that need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from headgate.errors import FlowError
from headgate.progress.place import Punctuation, read, written
from headgate.shed.subset.needs import Range, merged, needed, without
from headgate.shed.subset.rules import pipeline
from headgate.windows import Number, Sliding


class GroupRange(NamedTuple):
    """A range of the input. Tuples in it are kept if their key hashes below the share."""

    low: Number
    high: Number
    share: float


@dataclass(frozen=True, slots=True)
class GroupShares:
    """The share of groups that each window of a query keeps, by where the window begins.

    >>> shares = GroupShares((Sliding(10, 5, "ts"),)).hold(20, 0.5)
    >>> shares.share(15), shares.share(20)
    (1.0, 0.5)
    >>> shares.pieces(0, 40)  # the window [15, 25) still needs all groups
    (GroupRange(low=0, high=25, share=1.0), GroupRange(low=25, high=40, share=0.5))
    """

    windows: tuple[Sliding, ...]
    """In the order that tuples meet them, as in a ledger."""
    steps: tuple[tuple[Number, float], ...] = ()
    """Where a share begins to hold, in order. Before the first, every group is kept."""

    def share(self, start: Number) -> float:
        """Give the share of groups that the outermost window keeps that begins here."""
        return next((share for at, share in reversed(self.steps) if at <= start), 1.0)

    def hold(self, at: Number, share: float) -> GroupShares:
        """Give the shares with another one for windows that begin at a place or later; none of them has a tuple yet.

        >>> GroupShares((Sliding(10, 5, "ts"),)).hold(20, 0.5).hold(10, 0.2)
        Traceback (most recent call last):
        headgate.errors.FlowError: the shares of windows from 20 on are fixed: a share cannot begin to hold at 10
        """
        if not 0 <= share <= 1:
            raise FlowError(f"share={share}: give the fraction of groups to keep, from 0 to 1")
        if self.steps and at < self.steps[-1][0]:
            fixed = self.steps[-1][0]
            raise FlowError(f"the shares of windows from {fixed} on are fixed: a share cannot begin to hold at {at}")
        steps = tuple(step for step in self.steps if step[0] < at)
        held = steps[-1][1] if steps else 1.0
        return replace(self, steps=steps if share == held else (*steps, (at, share)))

    def pieces(self, low: Number, high: Number) -> tuple[GroupRange, ...]:
        """Give what to keep of the input within [low, high), in order; nothing is kept outside the pieces."""
        found: list[GroupRange] = []
        covered: tuple[Range, ...] = ()
        for share in sorted({1.0, *(share for _, share in self.steps)} - {0.0}, reverse=True):
            ranges = needed(self.windows, self._below(share, high), low, high)
            found += [GroupRange(*free, share) for a, b in ranges for free in without(covered, a, b)]
            covered = merged((*covered, *ranges))
        return tuple(sorted(found))

    def _below(self, share: float, high: Number) -> tuple[Range, ...]:
        """Where windows begin that keep less than a share, if tuples below `high` can be in them."""
        end = high + sum(window.slide for window in self.windows)
        ends = [*(at for at, _ in self.steps[1:]), end]
        return merged((at, past) for (at, held), past in zip(self.steps, ends, strict=False) if held < share)

    def forget(self, p: Punctuation) -> GroupShares:
        """Give the shares without those of windows that punctuation on the input has closed."""
        if p is None:
            return self
        extent = pipeline(self.windows, 1).extent
        # A share holds up to the next step; the last one holds on.
        passed = sum(1 for at, _ in self.steps[1:] if at + extent <= p)
        return replace(self, steps=self.steps[passed:])

    def state(self) -> list[list[Any]]:
        """Give what `restored` needs, as JSON has it."""
        return [[written(at), share] for at, share in self.steps]

    @classmethod
    def restored(cls, windows: Sequence[Sliding], state: list[list[Any]]) -> GroupShares:
        """Give the shares that were in this state."""
        return cls(tuple(windows), tuple((cast(Number, read(at)), share) for at, share in state))
