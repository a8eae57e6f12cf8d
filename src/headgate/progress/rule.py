"""The door for progress rules: what a rule is shown of a batch, and what it says about the batches after it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from headgate.errors import ProgressError
from headgate.windows import Number


@dataclass(frozen=True, slots=True)
class Needs:
    """What a rule looks for in each batch, besides the number of rows and the highest place.

    - `marked_by`: a boolean column; the rule is shown the highest place among the rows where it is true.
    - `ranks`: the rule is shown the places at these ranks, 1 for the highest row.

    >>> Needs(ranks=(2, 1))
    Traceback (most recent call last):
    headgate.errors.ProgressError: ranks=(2, 1): give whole numbers from 1 up, in ascending order
    """

    marked_by: str | None = None
    ranks: Sequence[int] = ()

    def __post_init__(self) -> None:
        ascending = [*self.ranks] == sorted({*self.ranks})
        if not ascending or not all(isinstance(rank, int) and rank >= 1 for rank in self.ranks):
            raise ProgressError(f"ranks={self.ranks}: give whole numbers from 1 up, in ascending order")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a batch showed of a stream, or of one group of it.

    A place is a value of the progressing attribute: microseconds since the epoch for a time. Rows where it is NULL
    count in `rows`, and have no place.
    """

    rows: int
    highest: Number | None
    """The highest place; None if no row has one."""
    marked: Number | None = None
    """The highest place among the rows that `Needs.marked_by` marks."""
    ranked: Sequence[Number] = ()
    """The places at `Needs.ranks`, as far down as there are rows."""


@runtime_checkable
class ProgressRule(Protocol):
    """What a source promises about the order of its tuples. Subclass it, and give an object to `hg.progress(rule=...)`.

    A rule holds no state. It is given the state after the last batch and what the next batch showed, and returns the
    state after that one. States go into the checkpoint, so they consist of what JSON has: numbers, texts, lists and
    dicts. With `by`, each group has a state of its own. Each step must depend on its arguments alone.

    >>> class Daily(ProgressRule):
    ...     def step(self, state, seen):
    ...         return state, None if seen.highest is None else seen.highest - 86_400_000_000
    >>> Daily().step(None, Seen(rows=3, highest=90_000_000_000))
    (None, 3600000000)
    """

    @property
    def needs(self) -> Needs:
        """What to look for in each batch. Only `rows` and `highest` are known unless you say more."""
        return Needs()

    def start(self) -> Any:
        """The state before the first batch."""
        return None

    @abstractmethod
    def step(self, state: Any, seen: Seen) -> tuple[Any, Number | None]:
        """The state after a batch, and the place that no tuple of a later batch is below; None if nothing new is known.

        Progress never goes back: a place below an earlier one changes nothing.
        """
        raise NotImplementedError

    def check(self, attr: str, type_: str) -> None:  # noqa: ARG002
        """Raises a ProgressError if the rule does not fit an attribute of this Spark type, such as "timestamp"."""
        return

    def describe(self) -> str:
        """The rule in words, for `explain`: what follows PROGRESS ON and the attribute."""
        return f"BY RULE {type(self).__name__}"
