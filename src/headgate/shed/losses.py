"""Losses: the kinds of things that a policy can leave out of a query, and what its answers are worth then.

A policy names a loss, and how much of it. The engine carries it out: it knows these losses, and no policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from headgate import given
from headgate.shed.join.random import STRATEGIES
from headgate.shed.subset.fill import check_fill

#: How a join can be shed: by its keys, or without a look at them.
BY_KEY = "by-key"
METHODS = (BY_KEY, *STRATEGIES)
#: How much wider than that of independent pairs the variance of a count over sampled ones may be, if nobody says.
SPREAD = 1.25


@dataclass(frozen=True)
class Nothing:
    """Nothing is left out: every answer is exact."""

    kept_as = "Exact"
    """What a flow keeps for a query depends on this word. A policy with another word begins the query anew."""
    confidence = None
    """That of the limits of estimates; None where answers are exact."""


@dataclass(frozen=True)
class Tuples:
    """Tuples are sampled. Answers are estimates, with limits that hold the exact one with this confidence."""

    confidence: float = 0.99
    kept_as = "Estimate"

    def __post_init__(self) -> None:
        given.settled(self, confidence=confidence_of("hg.losses.Tuples", self.confidence))


@dataclass(frozen=True)
class Windows:
    """Whole windows are dropped, never more than `gap` in a row. The others are exact."""

    gap: int = 1
    fill: str | None = None
    """How gaps are filled where answers are looked at; what is delivered has none of it."""
    kept_as = "Subset"
    confidence = None

    def __post_init__(self) -> None:
        given.settled(self, gap=gap_of("hg.losses.Windows", self.gap))
        check_fill("hg.losses.Windows", self.fill)


@dataclass(frozen=True)
class Groups:
    """Whole groups are dropped. The others are exact in every window."""

    kept_as = "Subset"
    confidence = None


@dataclass(frozen=True)
class Pairs:
    """Pairs of a join are dropped: as few as there is time for, and room for `max_state` tuples."""

    method: str | None = None
    """Which pairs are dropped; None lets the planner choose."""
    max_state: int | None = None
    kept_as = "Subset"
    confidence = None

    def __post_init__(self) -> None:
        given.settled(
            self,
            method=method_of("hg.losses.Pairs", self.method),
            max_state=room_of("hg.losses.Pairs", self.max_state),
        )


@dataclass(frozen=True)
class RandomPairs:
    """Pairs of a join are sampled, each with the same chance.

    With a confidence, they are what an aggregate is estimated from. Without one, they are the answers.
    """

    spread: float = SPREAD
    """How much wider than that of independent pairs the variance of a count may be."""
    every_tuple_looks: bool = False
    """Whether every tuple looks for others, so that no pair has a lower rate than its tuples were read at."""
    confidence: float | None = None

    def __post_init__(self) -> None:
        given.settled(self, spread=spread_of("hg.losses.RandomPairs", self.spread))
        if self.confidence is not None:
            given.settled(self, confidence=confidence_of("hg.losses.RandomPairs", self.confidence))

    @property
    def kept_as(self) -> str:
        """See `Nothing`."""
        return "Sample" if self.confidence is None else "Estimate"


Loss: TypeAlias = Nothing | Tuples | Windows | Groups | Pairs | RandomPairs


def confidence_of(what: str, value: object) -> float:
    """A confidence that was given, or an error."""
    return given.number(f"{what}: confidence", value, "a number between 0 and 1, such as 0.99", lambda c: 0 < c < 1)


def gap_of(what: str, value: object) -> int:
    """A gap that was given, or an error."""
    return given.whole(f"{what}: gap", value, "the number of answers that may be missing in a row", least=1)


def method_of(what: str, value: object) -> str | None:
    """A way to shed a join that was given, or an error."""
    return None if value is None else given.one_of(f"{what}: method", value, METHODS)


def room_of(what: str, value: object) -> int | None:
    """The room for tuples that was given, or an error."""
    instead = "a number of tuples, zero or more"
    return None if value is None else given.whole(f"{what}: max_state", value, instead, least=0)


def spread_of(what: str, value: object) -> float:
    """A spread that was given, or an error."""
    wider = "how much wider the variance may be, 1 or more"
    return given.number(f"{what}: spread", value, wider, lambda spread: 1 <= spread < math.inf)
