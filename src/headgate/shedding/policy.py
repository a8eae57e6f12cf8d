"""What a query promises when more arrives than can be processed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headgate.errors import FlowError
from headgate.plan.stages import Continuous
from headgate.shedding.estimators import check_estimated
from headgate.shedding.fill import check_fill, group_columns
from headgate.shedding.subset_rules import chain, pipeline


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


@dataclass(frozen=True)
class Subset:
    """Some of the answers, each of them exact: whole windows are dropped, or whole groups."""

    gap: int = 1
    drop: float | None = None
    """With a fraction, so much is dropped always."""
    by: str = "window"
    weight: float = 1.0
    fill: str | None = None
    """How gaps are filled where answers are looked at; what is delivered has none of it."""

    def __post_init__(self) -> None:
        if self.by not in ("window", "group"):
            raise FlowError(f"hg.subset: by={self.by!r}: give 'window' or 'group'")
        if isinstance(self.gap, bool) or not isinstance(self.gap, int) or self.gap < 1:
            raise FlowError(f"hg.subset: gap={self.gap!r}: give the number of answers that may be missing in a row")
        if self.drop is not None and not 0 <= self.drop <= 1:
            raise FlowError(f"hg.subset: drop={self.drop}: give a fraction of the answers, from 0 to 1")
        if not 0 < self.weight < math.inf:
            raise FlowError(f"hg.subset: weight={self.weight}: give a number above 0")
        check_fill("hg.subset", self.fill)
        if self.fill is not None and self.by == "group":
            raise FlowError(f"hg.subset: fill={self.fill!r} is for windows: dropped groups have nothing to go by")


Policy = Exact | Estimate | Subset


def exact() -> Exact:
    """Never shed: every window is answered exactly."""
    return Exact()


def estimate(confidence: float = 0.99, weight: float = 1.0, priority: int = 0, rate: float | None = None) -> Estimate:
    """Answer from a sample of the tuples, unbiased, with limits: a column `n` has `n_low` and `n_high`.

    With a `rate`, that share of the tuples is taken always. A higher `priority` is answered exactly before a lower one
    gets anything, and within one priority a higher `weight` makes an error count for more.
    """
    return Estimate(confidence, weight, priority, rate)


def subset(
    gap: int = 1, drop: float | None = None, by: str = "window", weight: float = 1.0, fill: str | None = None
) -> Subset:
    """Drop whole windows, never more than `gap` in a row, so that every answer that is delivered is exact.

    With by="group", whole groups are dropped instead, and the others are exact in every window. With `drop`, that
    fraction is dropped always. A query of a higher `weight` is dropped later. With fill="linear", gaps
    in `run.results` have rows too, on a line between the answers on both sides, and marked as `filled`.
    """
    return Subset(gap, drop, by, weight, fill)


def check_policy(query: Continuous, policy: Policy) -> None:
    """Raises an error if a query cannot be shed as its policy says."""
    if isinstance(policy, Estimate):
        check_estimated(query)
    elif isinstance(policy, Subset):
        _check_subset(query, policy)


def check_tuples_shed(query: Continuous, policy: Policy) -> None:
    """Raises an error if there are no tuples of its streams that can be left out for a query."""
    if policy == exact():
        raise FlowError(
            f"query {query.name} is answered exactly, so that nothing of it is shed: give it another policy,"
            " hg.estimate(...) or hg.subset(...), or leave this sink out"
        )
    if any(stage.looks_up for stage in query.stages):
        raise FlowError(
            f"query {query.name} joins its tuples with a table before any are left out, so that those cannot be had:"
            " leave this sink out"
        )


def _check_subset(query: Continuous, policy: Subset) -> None:
    """Raises an error if no windows, or groups, of a query can be dropped."""
    windows = chain(query)
    if policy.by == "window":
        pipeline(windows, policy.gap)
        if policy.fill is not None:
            group_columns(query)
        return
    aggregate = query.stages[0].aggregate
    if len(query.stages) > 1 or aggregate is None or not aggregate.keys:
        raise FlowError(
            f"query {query.name} cannot drop groups: only one aggregate over streams that has keys can; drop windows"
            " instead, hg.subset(gap=...)"
        )
    if windows[0].range < windows[0].slide:
        raise FlowError(f"query {query.name} cannot drop groups: there is room between its windows; drop these instead")
