"""The windows that a query has dropped: how many in all, and which the last ones are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: The most runs of windows that are remembered. The ledger itself forgets windows as they close.
_RUNS = 500
#: The windows from the first to the last of these numbers.
WindowRun = tuple[int, int]


@dataclass(frozen=True)
class Dropped:
    """The dropped windows of one query, by their numbers."""

    count: int = 0
    runs: tuple[WindowRun, ...] = ()

    def then(self, more: Iterable[WindowRun]) -> Dropped:
        """The same with later windows.

        >>> Dropped().then([(3, 4), (7, 7)]).then([(8, 9), (12, 12)])
        Dropped(count=6, runs=((3, 4), (7, 9), (12, 12)))
        """
        count, runs = self.count, list(self.runs)
        for first, last in more:
            count += last - first + 1
            if runs and runs[-1][1] + 1 == first:
                first = runs.pop()[0]
            runs.append((first, last))
        return Dropped(count, tuple(runs[-_RUNS:]))

    def state(self) -> dict[str, Any]:
        """What `restored` needs, as JSON has it."""
        return {"count": self.count, "runs": [list(run) for run in self.runs]}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Dropped:
        """The windows that were in this state."""
        return cls(state["count"], tuple((first, last) for first, last in state["runs"]))
