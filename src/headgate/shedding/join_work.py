"""What a join does in a batch, in amounts that the cost model has prices for, whatever part of it is left out."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.shedding.join_cost import EVERYTHING, JoinCosts, JoinLoad, Shares, outcome
from headgate.shedding.join_keys import KeyLoads
from headgate.shedding.join_plan import JoinPlan, PairSample

_FREE = JoinCosts(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Work:
    """New tuples that take part, those of them that are kept, the kept ones that are read again, and pairs."""

    looking: float = 0.0
    kept: float = 0.0
    held: float = 0.0
    pairs: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.looking + other.looking, self.kept + other.kept, self.held + other.held, self.pairs + other.pairs
        )

    def scaled(self, pairs: float) -> Work:
        """The same work with so many times as many pairs."""
        return Work(self.looking, self.kept, self.held, self.pairs * pairs)


@dataclass(frozen=True, slots=True)
class Prices:
    """The seconds that one of each of these takes."""

    looking: float
    kept: float
    held: float
    pair: float

    def seconds(self, work: Work) -> float:
        """The seconds that some work takes."""
        return self.looking * work.looking + self.kept * work.kept + self.held * work.held + self.pair * work.pairs

    def costs(self, loads: KeyLoads, scale: float) -> JoinCosts:
        """The prices as the formulas know them: a tuple is read again for as many batches as it is kept.

        Where the windows of the sides differ, it is what a tuple costs on average.
        """
        whole = loads.whole
        tuples = whole.left_rate + whole.right_rate
        work = _component(whole, EVERYTHING)
        update = (self.kept * work.kept + self.held * work.held) / tuples if tuples else 0.0
        return JoinCosts(update, 0.0, self.pair * scale)


def work(loads: KeyLoads, plan: JoinPlan) -> Work:
    """What a batch does with such loads under a plan, if windows are as full as they get under it.

    >>> from headgate.shedding.join_plan import PairSubset
    >>> load = JoinLoad(left_rate=100, right_rate=50, left_window=10, right_window=0.5, selectivity=0.01)
    >>> work(KeyLoads({}, load), PairSubset(Shares(insert_left=0.5)))
    Work(looking=150.0, kept=100.0, held=525.0, pairs=275.0)
    """
    if isinstance(plan, PairSample):
        return sum((_sampled(load, plan) for load in loads.all), Work())
    known = plan.known or {}
    found = [_component(load, known.get(key, plan.others)) for key, load in _by_key(loads)]
    return sum(found, _component(loads.others, plan.others))


def _by_key(loads: KeyLoads) -> list[tuple[int, JoinLoad]]:
    return [(key, load) for key, load in loads.known.items() if isinstance(key, int)]


def _component(load: JoinLoad, shares: Shares) -> Work:
    left, right = load.left_rate * shares.insert_left, load.right_rate * shares.insert_right
    return Work(
        load.left_rate * max(shares.insert_left, shares.probe_left)
        + load.right_rate * max(shares.insert_right, shares.probe_right),
        left + right,
        left * load.left_window + right * load.right_window,
        outcome(load, _FREE, shares).results,
    )


def _sampled(load: JoinLoad, plan: PairSample) -> Work:
    """With coins by slots a tuple is kept if it has a success, until it has had the last."""
    left, right = (_kept(plan.rate, cut) for cut in (plan.coins.left, plan.coins.right))
    whole = _component(load, Shares(insert_left=left, insert_right=right))
    return Work(whole.looking, whole.kept, whole.held, plan.rate * outcome(load, _FREE).results)


def _kept(rate: float, cut: int | None) -> float:
    return float(rate > 0) if cut is None else 1 - (1 - rate) ** cut
