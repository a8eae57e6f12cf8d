"""The decision of a batch: what it is about, written down before anything is done.

A batch that a crash cuts off is run again from its decision. So a replay leaves out the same tuples, and splits what it
reads in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Drops:
    """What is left out of a batch."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """By query, the part of the tuples that is taken."""
    subsets: Mapping[str, Any] = field(default_factory=dict)
    """The ledgers of dropped windows, and the shares of dropped groups: a document of shed/live."""
    joins: Mapping[str, Any] = field(default_factory=dict)
    """By join, which pairs are left out: documents of shed/join/plan."""
    needed: Mapping[str, float] = field(default_factory=dict)
    """By query that drops windows, the part of the tuples that its other windows need."""
    suspended: Mapping[str, str] = field(default_factory=dict)
    """The queries that are suspended, each with the reason."""
    chosen: Mapping[str, float] = field(default_factory=dict)
    """By query, the share that its policy keeps, where the policy says so itself."""
    shedding: bool = False
    """Whether the batch is shed because there is not time for all of it."""
    predicted: float = 0.0
    """The seconds that the batch is predicted to take."""
    event: str | None = None
    """Why shedding begins or ends with this batch, if it does."""


@dataclass(frozen=True)
class Decision:
    """What a batch is about."""

    batch: int
    source_batch: int | None
    """The batch of the source that it holds; None if the source knows nothing of it."""
    now: int
    """The wall clock, in microseconds."""
    ended: tuple[str, ...] = ()
    """The streams that end with this batch."""
    held: bool = False
    """Whether the time since the last batch counts as no quiet time, because the flow was down."""
    splitting: Mapping[str, str | None] = field(default_factory=dict)
    """How Spark splits what it reads into partitions."""
    drops: Drops = field(default_factory=Drops)
