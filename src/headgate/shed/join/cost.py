"""What a window join gives and what it costs: rates of results and of CPU time, for any part of the work left out.

After Ayad et al., Approximating streaming window joins under CPU limitations. A tuple does two things, and either can
be left out: it *probes*, that is, meets the tuples kept of the other side, and it is *inserted*, that is, kept for
those to come. So a pair comes out where the earlier of the two was inserted and the later one probes. Each inserted
tuple costs one update, each pair that comes out costs a look at the kept tuple and the making of a result.

A probe that finds nothing is free here. What reading a tuple and finding its key costs is paid by every tuple that is
not dropped: take it off the budget first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from headgate.errors import FlowError, WindowError


@dataclass(frozen=True, slots=True)
class JoinCosts:
    """The CPU time, in seconds, to keep a tuple and let it go again, to look at a kept one, to make a result.

    Predicates beyond the keys reject pairs that have been looked at: divide `probe` by the part that passes.
    """

    update: float
    probe: float
    produce: float

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), "a time in seconds, zero or more")

    @property
    def result(self) -> float:
        """The cost of one result, from the look at the kept tuple to the row that leaves."""
        return self.probe + self.produce


@dataclass(frozen=True, slots=True)
class JoinLoad:
    """What arrives at a join: tuples a second on each side, and for how many seconds each side is kept.

    `selectivity` is the part of all pairs within the windows that match.

    >>> load = JoinLoad(left_rate=100, right_rate=50, left_window=10, right_window=4, selectivity=0.01)
    >>> load.left_partners, load.right_partners
    (5.0, 4.0)
    """

    left_rate: float
    right_rate: float
    left_window: float
    right_window: float
    selectivity: float

    def __post_init__(self) -> None:
        for name, rate in (("left_rate", self.left_rate), ("right_rate", self.right_rate)):
            _check(name, rate, "tuples a second, zero or more")
        for name, window in (("left_window", self.left_window), ("right_window", self.right_window)):
            if not 0 < window < math.inf:
                raise WindowError(f"{name}={window}: the window of a join is longer than zero, and it ends")
        if not 0 <= self.selectivity <= 1:
            raise FlowError(f"selectivity={self.selectivity}: give the part of pairs that match, from 0 to 1")

    @property
    def left_partners(self) -> float:
        """The number of later tuples that a left tuple matches while it is kept."""
        return self.selectivity * self.right_rate * self.left_window

    @property
    def right_partners(self) -> float:
        """The number of later tuples that a right tuple matches while it is kept."""
        return self.selectivity * self.left_rate * self.right_window


@dataclass(frozen=True, slots=True)
class JoinShares:
    """The part of each side's tuples that is inserted, and the part that probes. One that does neither is dropped."""

    insert_left: float = 1.0
    insert_right: float = 1.0
    probe_left: float = 1.0
    probe_right: float = 1.0


#: Nothing is shed.
EVERYTHING = JoinShares()
#: Everything is shed, before it costs anything.
NOTHING = JoinShares(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of shedding: results a second, and seconds of CPU time a second."""

    results: float
    cost: float


def outcome(load: JoinLoad, costs: JoinCosts, shares: JoinShares = EVERYTHING) -> Outcome:
    """The results and the cost of a join that is carried out in these shares.

    >>> load = JoinLoad(left_rate=100, right_rate=50, left_window=10, right_window=4, selectivity=0.01)
    >>> costs = JoinCosts(update=0.002, probe=0.0004, produce=0.0006)
    >>> outcome(load, costs)
    Outcome(results=700.0, cost=1.0)
    >>> outcome(load, costs, JoinShares(insert_right=0.5)).results
    600.0
    """
    left, right = load.left_rate * shares.insert_left, load.right_rate * shares.insert_right
    results = left * load.left_partners * shares.probe_right + right * load.right_partners * shares.probe_left
    return Outcome(results, (left + right) * costs.update + results * costs.result)


def check_budget(budget: float) -> None:
    """Fails unless the budget is seconds of CPU time a second: 2 is two whole cores."""
    if not budget >= 0:
        raise FlowError(f"budget={budget}: give seconds of CPU time a second, zero or more")


def _check(name: str, value: float, wanted: str) -> None:
    if not 0 <= value < math.inf:
        raise FlowError(f"{name}={value}: give {wanted}")
