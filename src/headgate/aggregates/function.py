"""What an aggregate is: its partials, how they merge, how the answer is made, and what the planner may assume."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A built-in aggregate.

    A *bounded* aggregate has partials of constant size; a holistic one has none and is computed from the
    values themselves with their frequencies. A *differential* aggregate can take a part away again, so that
    a window is made from the one before it (panes paper, section 3.2).
    """

    name: str
    domain: Domain
    arity: int
    partials: tuple[Partial, ...]
    """Empty for a holistic aggregate."""
    final: str
    """The answer from the partials, whose names are the holes; for a holistic aggregate, a Spark aggregate over
    a value `{x}` that occurs `{n}` times."""
    differential: bool
    direct: str = ""
    """A holistic aggregate over plain tuples, as Spark computes it; `{d}` is the place of DISTINCT."""
    native: str = ""
    """The Spark aggregate whose result type ours takes, where the partials alone would give another."""
    parameters: int = 0
    """How many constants follow the arguments; they fill the hole `{p}`."""

    @property
    def bounded(self) -> bool:
        """Whether the partials have a constant size."""
        return bool(self.partials)
