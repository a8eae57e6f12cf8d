"""What a query promises when more arrives than can be processed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headgate.errors import FlowError


@dataclass(frozen=True)
class Exact:
    """Every answer, none of them touched."""


@dataclass(frozen=True)
class Estimate:
    """Answers from a sample, scaled, each with limits that hold the exact one with this confidence."""

    confidence: float = 0.99
    weight: float = 1.0
    priority: int = 0
    rate: float | None = None
    """With a rate, tuples are sampled at just that rate, always."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise FlowError(f"hg.estimate: confidence={self.confidence}: give a number between 0 and 1, such as 0.99")
        if not 0 < self.weight < math.inf:
            raise FlowError(f"hg.estimate: weight={self.weight}: give a number above 0")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise FlowError(f"hg.estimate: rate={self.rate}: give a share of the tuples above 0 and not above 1")


Policy = Exact | Estimate


def exact() -> Exact:
    """Never shed: every window is answered exactly."""
    return Exact()


def estimate(confidence: float = 0.99, weight: float = 1.0, priority: int = 0, rate: float | None = None) -> Estimate:
    """Answer from a sample of the tuples, unbiased, with limits: a column `n` has `n_low` and `n_high`.

    With a `rate`, that share of the tuples is taken always. A higher `priority` is answered exactly before a lower one
    gets anything, and within one priority a higher `weight` makes an error count for more.
    """
    return Estimate(confidence, weight, priority, rate)
