"""The policies that come with Headgate: exact, estimate, subset and sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from headgate import given
from headgate.errors import FlowError
from headgate.shed.estimate.intervals import widened
from headgate.shed.losses import (
    SPREAD,
    Groups,
    Loss,
    Nothing,
    Pairs,
    RandomPairs,
    Tuples,
    Windows,
    confidence_of,
    gap_of,
    method_of,
    room_of,
    spread_of,
)
from headgate.shed.policy import Policy, Situation, described, left_out, rate_of, weight_of
from headgate.shed.shape import QueryShape
from headgate.shed.subset.fill import check_fill

#: Limits of aggregates over pairs that share coins are made for so many times the variance. By key, counts of the most
#: frequent keys without a class of their own vary more: they have a few times as many partners as the others.
_VARIANCE = 2.0


@dataclass(frozen=True)
class Exact(Policy):
    """Every answer, none of them touched."""

    def loss(self, query: QueryShape) -> Loss:  # noqa: ARG002
        """Nothing is left out of any query."""
        return Nothing()

    def describe(self) -> str:
        """Nothing need be said."""
        return ""


@dataclass(frozen=True)
class Estimate(Policy):
    """Answers from a sample, scaled, each with limits that hold the exact one with this confidence."""

    confidence: float = 0.99
    weight: float = 1.0
    priority: int = 0
    rate: float | None = None
    """With a rate, tuples are always sampled at just that rate."""

    def __post_init__(self) -> None:
        what = "hg.estimate"
        given.settled(
            self,
            confidence=confidence_of(what, self.confidence),
            weight=weight_of(what, self.weight),
            priority=given.whole(f"{what}: priority", self.priority, "a whole number, such as 1"),
            rate=rate_of(what, self.rate, "tuples"),
        )

    def loss(self, query: QueryShape) -> Loss:
        """Tuples, or the pairs of a join below the aggregate.

        At a given rate, any two pairs are independent. Under overload they share coins, and limits are wider.
        """
        if query.answers != "windows of pairs":
            return Tuples(self.confidence)
        if self.rate is not None:
            return RandomPairs(1.0, True, self.confidence)
        return RandomPairs(SPREAD, True, widened(self.confidence, _VARIANCE))

    def keep(self, now: Situation) -> float | None:  # noqa: ARG002
        """The rate, if there is one."""
        return self.rate

    def describe(self) -> str:
        """As a script writes it."""
        return described(self, "estimate", asdict(self))


@dataclass(frozen=True)
class Subset(Policy):
    """Some of the answers, each of them exact: whole windows are dropped, whole groups, or pairs of a join."""

    gap: int = 1
    drop: float | None = None
    """With a fraction, so much is always dropped."""
    by: str = "window"
    weight: float = 1.0
    fill: str | None = None
    """How gaps are filled where answers are looked at; what is delivered has none of it."""
    method: str | None = None
    """Of a join, which pairs are dropped."""
    max_state: int | None = None
    """Of a join, how many tuples it may keep."""

    def __post_init__(self) -> None:
        what = "hg.subset"
        given.settled(self, method=method_of(what, self.method), max_state=room_of(what, self.max_state))
        given.one_of(f"{what}: by", self.by, ("window", "group"))
        given.settled(self, gap=gap_of(what, self.gap), weight=weight_of(what, self.weight))
        if self.drop is not None:
            fraction = "a fraction of the answers, from 0 to 1"
            given.settled(self, drop=given.number(f"{what}: drop", self.drop, fraction, lambda d: 0 <= d <= 1))
        check_fill(what, self.fill)
        if self.fill is not None and self.by == "group":
            raise FlowError(f"hg.subset: fill={self.fill!r} is for windows: dropped groups have nothing to go by")

    def loss(self, query: QueryShape) -> Loss:
        """Pairs of a join; of other queries windows or groups."""
        if query.answers == "pairs":
            if self.by != "window" or self.gap != 1:
                raise FlowError(
                    f"query {query.name} is a join, and has no windows or groups to drop: leave out gap and by"
                )
            return Pairs(self.method, self.max_state)
        for name in ("method", "max_state"):
            if getattr(self, name) is not None:
                raise FlowError(f"query {query.name}: {name} is for joins of streams: leave it out")
        return Windows(self.gap, self.fill) if self.by == "window" else Groups()

    def keep(self, now: Situation) -> float | None:  # noqa: ARG002
        """What the fraction leaves, if there is one."""
        return None if self.drop is None else left_out(self.drop)

    def describe(self) -> str:
        """As a script writes it."""
        return described(self, "subset", asdict(self))


@dataclass(frozen=True)
class Sample(Policy):
    """A uniform random sample of the pairs of a join."""

    rate: float | None = None
    """With a rate, pairs are always sampled at just that rate."""
    spread: float = SPREAD
    """How much wider than that of independent pairs the variance of a count may be."""
    weight: float = 1.0

    def __post_init__(self) -> None:
        what = "hg.sample"
        given.settled(
            self,
            rate=rate_of(what, self.rate, "pairs"),
            spread=spread_of(what, self.spread),
            weight=weight_of(what, self.weight),
        )

    def loss(self, query: QueryShape) -> Loss:
        """The pairs of a join, which have to be the answers."""
        if query.answers != "pairs":
            raise FlowError(f"query {query.name} has no pairs to sample: only a join of streams has; use hg.estimate()")
        # Where every pair is taken, no key need be treated apart.
        return RandomPairs(1.0 if self.rate == 1 else self.spread)

    def keep(self, now: Situation) -> float | None:  # noqa: ARG002
        """The rate, if there is one."""
        return self.rate

    def describe(self) -> str:
        """As a script writes it."""
        return described(self, "sample", asdict(self))


@given.checked("hg.exact")
def exact() -> Exact:
    """Never shed: every window is answered exactly."""
    return Exact()


@given.checked("hg.estimate")
def estimate(confidence: float = 0.99, weight: float = 1.0, priority: int = 0, rate: float | None = None) -> Estimate:
    """Answer from a sample of the tuples, unbiased, with limits: a column `n` has `n_low` and `n_high`.

    With a `rate`, that share of the tuples is always taken. A query of a higher `priority` is answered exactly before a
    lower one gets anything. Within one priority, a higher `weight` makes an error count for more.

    >>> estimate(rate=0.5).describe()
    "shed = 'estimate', rate = 0.5"
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
    fraction is always dropped. A query of a higher `weight` is dropped later. With fill="linear", gaps in `run.results`
    have rows too, on a line between the answers on both sides, and marked as `filled`.

    Of a join, pairs are dropped: as few as the time allows, and with `max_state` as the room for so many kept tuples
    allows. With method="by-key" the keys that find most are kept, if keys differ enough. Otherwise it is
    "probe-no-insert": every tuple looks for others, and some are not kept. "coin-flipping" and "insert-no-probe" are
    there to compare, and give less.

    >>> subset(gap=3, fill="linear").describe()
    "shed = 'subset', gap = 3, fill = 'linear'"
    """
    return Subset(gap, drop, by, weight, fill, method, max_state)


@given.checked("hg.sample")
def sample(rate: float | None = None, spread: float = SPREAD, weight: float = 1.0) -> Sample:
    """Deliver a uniform random sample of the pairs of a join: none is more likely than another.

    With a `rate`, that share of the pairs is always taken. With spread=1 any two pairs are independent of each other,
    and every tuple is kept. A `spread` above 1 allows tuples to be let go early, or left out, for a variance of counts
    that is wider by so much. Tuples with many partners are kept all the same.
    """
    return Sample(rate, spread, weight)


#: The policies that a script can name: the arguments of these functions are the properties after WITH.
POLICIES: dict[str, Callable[..., Policy]] = {"exact": exact, "estimate": estimate, "subset": subset, "sample": sample}
