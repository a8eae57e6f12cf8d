"""What an aggregate is: its partials, how they merge, how the answer is made, and what the planner may assume."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.aggregates.aggregator import Aggregator


class Merge(StrEnum):
    """How two partials of disjoint sets of tuples become the partial of their union."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MOMENTS = "moments"
    """A struct (n, mean, m2): count, mean and sum of squared distances from the mean."""


class Domain(StrEnum):
    """The types an argument may have."""

    ANY = "any"
    NUMERIC = "numeric"
    ORDERED = "ordered"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Partial:
    """One column of partial state.

    `sql` is a Spark aggregate expression with the holes `{x}`, `{y}` (arguments), `{t}` (the windowing
    attribute) and `{f}` (the FILTER clause, or nothing); in those of samples, `{w}` is the weight of each tuple.
    """

    name: str
    sql: str
    merge: Merge
    whole: str = ""
    """For samples: the same where every tuple has been taken, so that all weights are 1, with less work."""


class Kept(StrEnum):
    """What is kept of the tuples of a pane, to answer an aggregate."""

    PARTIALS = "partials"
    """Columns of constant size, which Spark makes and merges."""
    VALUES = "values"
    """Each value, with how often it occurs."""
    STATE = "state"
    """A state that Python makes and merges."""


class Scaling(StrEnum):
    """By which rule the answer over all tuples follows from that over a sample."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    SPREAD = "spread"
    LEAST = "least"
    GREATEST = "greatest"
    RANK = "rank"


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate: what is kept of tuples, how that becomes the answer, and what the planner may assume.

    With `partials`, it is *bounded*: they have a constant size. With an `aggregator`, a state is made in Python. With
    neither, it is holistic: it is computed from the values themselves with their frequencies. A *differential*
    aggregate can take a part away again, so that a window is made from the one before it (panes paper, section 3.2).
    """

    name: str = ""
    domain: Domain = Domain.ANY
    """The types that the first argument may have."""
    arity: int | None = 1
    """How many arguments it takes; None if any number."""
    partials: tuple[Partial, ...] = ()
    final: str = ""
    """The answer from the partials, whose names are the holes; for a holistic aggregate, a Spark aggregate over
    a value `{x}` that occurs `{n}` times."""
    differential: bool = False
    direct: str = ""
    """A holistic aggregate over plain tuples, as Spark computes it; `{d}` is the place of DISTINCT."""
    native: str = ""
    """The Spark aggregate whose result type ours takes, where the partials alone would give another."""
    parameters: int = 0
    """How many constants follow the arguments; they fill the hole `{p}`."""
    scaling: Scaling | None = None
    """How it follows from a sample; None if no rule is known."""
    returns: str = ""
    """The Spark SQL type of the answer, of one that was registered."""
    aggregator: Aggregator | None = None
    """The steps in Python, of one that keeps states."""
    constant: bool = True
    """Whether its states have a constant size."""

    @property
    def kept(self) -> Kept:
        """What is kept of tuples."""
        if self.aggregator is not None:
            return Kept.STATE
        return Kept.PARTIALS if self.partials else Kept.VALUES

    @property
    def bounded(self) -> bool:
        """Whether what is kept has a constant size."""
        return self.constant if self.aggregator is not None else bool(self.partials)

    @property
    def registered(self) -> bool:
        """Whether it was registered, and is not part of SQL."""
        return bool(self.returns)
