"""What a query promises when more arrives than can be processed."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from headgate import given
from headgate.errors import FlowError
from headgate.plan.stream.stages import Continuous, Stage
from headgate.shed.estimate.estimators import check_estimated
from headgate.shed.estimate.intervals import widened
from headgate.shed.join.random import STRATEGIES
from headgate.shed.subset.fill import check_fill, group_columns
from headgate.shed.subset.rules import chain, pipeline

#: How a join can be shed: by its keys, or without a look at them.
BY_KEY = "by-key"
METHODS = (BY_KEY, *STRATEGIES)
#: How much wider than that of independent pairs the variance of a count over sampled ones may be, if nobody says.
_SPREAD = 1.25
#: What limits of aggregates over such pairs are for: by key, counts of the most frequent of the keys that are not known
#: by themselves vary more, as these have a few times as many partners as the others have on average.
_VARIANCE = 2.0


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
        what, confidence = "hg.estimate", "a number between 0 and 1, such as 0.99"
        given.settled(
            self,
            confidence=given.number(f"{what}: confidence", self.confidence, confidence, lambda c: 0 < c < 1),
            weight=_weight(what, self.weight),
            priority=given.whole(f"{what}: priority", self.priority, "a whole number, such as 1"),
            rate=_rate(what, self.rate, "tuples"),
        )


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
    method: str | None = None
    """Of a join, which pairs are dropped."""
    max_state: int | None = None
    """Of a join, how many tuples it may keep."""

    def __post_init__(self) -> None:
        what, answers = "hg.subset", "the number of answers that may be missing in a row"
        if self.method is not None:
            given.one_of(f"{what}: method", self.method, METHODS)
        if self.max_state is not None:
            room = given.whole(f"{what}: max_state", self.max_state, "a number of tuples, zero or more", least=0)
            given.settled(self, max_state=room)
        given.one_of(f"{what}: by", self.by, ("window", "group"))
        given.settled(
            self, gap=given.whole(f"{what}: gap", self.gap, answers, least=1), weight=_weight(what, self.weight)
        )
        if self.drop is not None:
            fraction = "a fraction of the answers, from 0 to 1"
            given.settled(self, drop=given.number(f"{what}: drop", self.drop, fraction, lambda d: 0 <= d <= 1))
        check_fill(what, self.fill)
        if self.fill is not None and self.by == "group":
            raise FlowError(f"hg.subset: fill={self.fill!r} is for windows: dropped groups have nothing to go by")


@dataclass(frozen=True)
class Sample:
    """A uniform random sample of the pairs of a join."""

    rate: float | None = None
    """With a rate, pairs are sampled at just that rate, always."""
    spread: float = _SPREAD
    """How much wider than that of independent pairs the variance of a count may be."""
    weight: float = 1.0
    all_look: bool = False
    """Whether every tuple looks for others, so that no pair has a lower rate than its tuples were read at."""

    def __post_init__(self) -> None:
        what, wider = "hg.sample", "how much wider the variance may be, 1 or more"
        given.settled(
            self,
            rate=_rate(what, self.rate, "pairs"),
            spread=given.number(f"{what}: spread", self.spread, wider, lambda spread: 1 <= spread < math.inf),
            weight=_weight(what, self.weight),
        )


def _weight(what: str, weight: object) -> float:
    return given.number(f"{what}: weight", weight, "a number above 0", lambda w: 0 < w < math.inf)


def _rate(what: str, rate: object, of: str) -> float | None:
    if rate is None:
        return None
    return given.number(f"{what}: rate", rate, f"a share of the {of} above 0 and not above 1", lambda r: 0 < r <= 1)


Policy = Exact | Estimate | Subset | Sample


def as_policy(what: str, policy: object) -> Policy:
    """The policy that a query is given; without one, it is answered exactly."""
    if policy is None:
        return Exact()
    if not isinstance(policy, Policy):
        word = policy if isinstance(policy, str) else getattr(policy, "__name__", "")
        own = word if word in ("exact", "estimate", "subset", "sample") else "estimate"
        others = " or another of hg.exact(), hg.subset(), hg.sample()" if own != word else ", with its parentheses"
        raise given.refused(f"{what}: policy", policy, f"hg.{own}(){others}")
    return policy


@given.checked("hg.exact")
def exact() -> Exact:
    """Never shed: every window is answered exactly."""
    return Exact()


@given.checked("hg.estimate")
def estimate(confidence: float = 0.99, weight: float = 1.0, priority: int = 0, rate: float | None = None) -> Estimate:
    """Answer from a sample of the tuples, unbiased, with limits: a column `n` has `n_low` and `n_high`.

    With a `rate`, that share of the tuples is taken always. A higher `priority` is answered exactly before a lower one
    gets anything, and within one priority a higher `weight` makes an error count for more.
    """
    return Estimate(confidence, weight, priority, rate)


@given.checked("hg.subset")
def subset(
    gap: int = 1,
    drop: float | None = None,
    by: str = "window",
    weight: float = 1.0,
    fill: str | None = None,
    method: str | None = None,
    max_state: int | None = None,
) -> Subset:
    """Drop whole windows, never more than `gap` in a row, so that every answer that is delivered is exact.

    With by="group", whole groups are dropped instead, and the others are exact in every window. With `drop`, that
    fraction is dropped always. A query of a higher `weight` is dropped later. With fill="linear", gaps
    in `run.results` have rows too, on a line between the answers on both sides, and marked as `filled`.

    Of a join, pairs are dropped: as few as the time allows, and, with `max_state`, as the room for so many kept tuples
    does. With method="by-key" the keys that find most are kept, where they differ enough; else it is
    "probe-no-insert": every tuple looks for others, and some are not kept. "coin-flipping" and "insert-no-probe" are
    there to compare, and give less.
    """
    return Subset(gap, drop, by, weight, fill, method, max_state)


@given.checked("hg.sample")
def sample(rate: float | None = None, spread: float = _SPREAD, weight: float = 1.0) -> Sample:
    """Deliver a uniform random sample of the pairs of a join: none is more likely than another.

    With a `rate`, that share of the pairs is taken always. With spread=1 any two pairs are independent of each other,
    and every tuple is kept. A `spread` above 1 allows tuples to be let go early, or left out, for a variance of counts
    that is wider by so much. Tuples with many partners are kept all the same.
    """
    return Sample(rate, spread, weight)


def properties(policy: Policy) -> list[str]:
    """What a policy says, as a script writes it behind WITH.

    >>> properties(subset(gap=3, fill="linear"))
    ["shed = 'subset'", 'gap = 3', "fill = 'linear'"]
    """
    if isinstance(policy, Exact):
        return []
    said = {f.name: getattr(policy, f.name) for f in fields(policy) if getattr(policy, f.name) != f.default}
    return [f"shed = '{type(policy).__name__.lower()}'", *(f"{name} = {value!r}" for name, value in said.items())]


def shed_join(query: Continuous) -> Stage | None:
    """The join of a query whose answers are its pairs, if they are that: it is what is shed of the query."""
    *before, last = query.stages
    return last if last.join is not None and all(stage.looks_up for stage in before) else None


def estimated_join(query: Continuous) -> Stage | None:
    """The join of a query with an aggregate over its pairs: to estimate the answers, it is what is sampled."""
    *before, last = query.stages
    *before, join = before or [last]
    joins = join.join is not None and all(stage.looks_up for stage in before)
    return join if joins and last.aggregate is not None and not last.holds and last.streams == (join.name,) else None


def sampled_join(query: Continuous, policy: Policy) -> tuple[Stage, Sample] | None:
    """The join whose pairs are sampled for a query, and how."""
    if isinstance(policy, Sample) and (join := shed_join(query)) is not None:
        return join, policy
    if isinstance(policy, Estimate) and (join := estimated_join(query)) is not None:
        return join, Sample(policy.rate, 1.0 if policy.rate is not None else _SPREAD, policy.weight, all_look=True)
    return None


def limits_for(query: Continuous, policy: Policy) -> float | None:
    """The confidence of the limits that a query has, as it is for independent tuples; None for a query without.

    At a rate that is given, any two pairs of a join are independent. Under overload they share coins.
    """
    if not isinstance(policy, Estimate):
        return None
    shared = policy.rate is None and estimated_join(query) is not None
    return widened(policy.confidence, _VARIANCE) if shared else policy.confidence


def check_policy(query: Continuous, policy: Policy) -> None:
    """Raises an error if a query cannot be shed as its policy says."""
    if isinstance(policy, Estimate):
        check_estimated(query, estimated_join(query))
        _check_limits(query)
    elif isinstance(policy, Sample) and shed_join(query) is None:
        raise FlowError(f"query {query.name} has no pairs to sample: only a join of streams has; use hg.estimate()")
    elif isinstance(policy, Subset):
        if shed_join(query) is None:
            _check_subset(query, policy)
        elif policy.by != "window" or policy.gap != 1:
            raise FlowError(f"query {query.name} is a join, and has no windows or groups to drop: leave out gap and by")


def _check_limits(query: Continuous) -> None:
    """Raises an error if a column of a query is called as the limit of another one is."""
    names = {field.name.lower() for field in query.plan.fields}
    for field in query.plan.fields:
        for limit in (f"{field.name}_low", f"{field.name}_high"):
            if limit.lower() in names:
                raise FlowError(
                    f"query {query.name}: {limit} is what an estimate calls a limit of {field.name}: give one of the"
                    " two columns another name with AS"
                )


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
    for name in ("method", "max_state"):
        if getattr(policy, name) is not None:
            raise FlowError(f"query {query.name}: {name} is for joins of streams: leave it out")
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
