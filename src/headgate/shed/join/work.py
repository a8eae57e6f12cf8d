"""What a join does in a batch, in amounts that the cost model has prices for, whatever part of it is left out."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

import numpy as np

from headgate.shed.join.cost import EVERYTHING, JoinCosts, JoinLoad, JoinShares, outcome
from headgate.shed.join.keys import Floats, KeyLoads
from headgate.shed.join.plan import JoinPlan, PairSample, PairSubset
from headgate.shed.join.sample import successful
from headgate.shed.join.stock import Sides

_FREE = JoinCosts(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Work:
    """New tuples that take part, those of them that are kept, the kept ones that are read again, pairs, new tuples."""

    looking: float = 0.0
    kept: float = 0.0
    held: float = 0.0
    pairs: float = 0.0
    came: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def scaled(self, pairs: float) -> Work:
        """The same work with so many times as many pairs."""
        return replace(self, pairs=self.pairs * pairs)


@dataclass(frozen=True, slots=True)
class Prices:
    """The seconds that one of each of these takes."""

    looking: float
    kept: float
    held: float
    pair: float
    came: float = 0.0

    def seconds(self, work: Work) -> float:
        """The seconds that some work takes."""
        return float(np.dot(astuple(self), astuple(work)))

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

    >>> from headgate.shed.join.plan import PairSubset
    >>> from headgate.shed.join.keys import KeyRates, key_loads
    >>> loads = key_loads(KeyRates(100, {}), KeyRates(50, {}), left_window=10, right_window=0.5, keys=100)
    >>> work(loads, PairSubset(JoinShares(insert_left=0.5)))
    Work(looking=150.0, kept=100.0, held=525.0, pairs=275.0, came=150.0)
    """
    if isinstance(plan, PairSample):
        kept, looking = _sampled(loads, plan)
        takes_part = float((loads.rates * (1 - (1 - kept) * (1 - looking))).sum())
        every = float((loads.rates * loads.partners).sum())
        return replace(carried_out(loads, kept, looking), looking=takes_part, pairs=plan.rate * every)
    shares = shares_of(loads, plan)
    return carried_out(loads, shares[:, :2], shares[:, 2:])


def shares_of(loads: KeyLoads, plan: PairSubset) -> Floats:
    """The shares of all components under a plan: left and right that are kept, left and right that look for others."""
    if not plan.known:
        return np.broadcast_to(astuple(plan.others), (len(loads.rates), 4))
    known = plan.keyed
    every = [*(known.get(key, plan.others) for key in loads.keys), plan.others]
    return np.array([(s.insert_left, s.insert_right, s.probe_left, s.probe_right) for s in every])


def carried_out(loads: KeyLoads, inserted: Floats, probing: Floats) -> Work:
    """What a batch does where these shares of all components are kept, and these look for others."""
    kept = loads.rates * inserted
    found = (
        (loads.rates * np.maximum(inserted, probing)).sum(),
        kept.sum(),
        (kept * loads.windows).sum(),
        # Those who look for the tuples of a side are on the other one.
        (kept * loads.partners * probing[:, ::-1]).sum(),
        loads.rates.sum(),
    )
    return Work(*map(float, found))


def parts(loads: KeyLoads, plan: JoinPlan) -> tuple[Sides, Sides]:
    """By side, the part of the tuples that is kept after a batch, and the part whose pairs may come out."""
    if isinstance(plan, PairSample):
        return _inserted(loads, _sampled(loads, plan)[0]), (plan.rate, plan.rate)
    taken = _inserted(loads, shares_of(loads, plan)[:, :2])
    room = None if plan.room is None else _inserted(loads, shares_of(loads, plan.room)[:, :2])
    return taken if room is None else _least(taken, room), taken


def _inserted(loads: KeyLoads, shares: Floats) -> Sides:
    left, right = (loads.rates * shares).sum(axis=0).tolist()
    return _part(left, loads.whole.left_rate), _part(right, loads.whole.right_rate)


def _part(some: float, every: float) -> float:
    return min(some / every, 1.0) if every else 1.0


def _least(a: Sides, b: Sides) -> Sides:
    return min(a[0], b[0]), min(a[1], b[1])


def _component(load: JoinLoad, shares: JoinShares) -> Work:
    left, right = load.left_rate * shares.insert_left, load.right_rate * shares.insert_right
    return Work(
        load.left_rate * max(shares.insert_left, shares.probe_left)
        + load.right_rate * max(shares.insert_right, shares.probe_right),
        left + right,
        left * load.left_window + right * load.right_window,
        outcome(load, _FREE, shares).results,
        load.left_rate + load.right_rate,
    )


def _sampled(loads: KeyLoads, plan: PairSample) -> tuple[Floats, Floats]:
    """The part of the tuples of each component and side that has a success, and is kept, and the part that looks."""
    every = (plan.others, *plan.classes)
    cuts = np.array([[coins.left or 1, coins.right or 1] for coins in every])
    kept = successful(cuts, np.array([plan.success(coins) for coins in every])) * (plan.rate > 0)
    looking = np.array([[coins.look_left, coins.look_right] for coins in every])
    numbers = [*(plan.numbers.get(key, 0) for key in loads.keys), 0]
    return kept[numbers], looking[numbers]
