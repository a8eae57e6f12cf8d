"""Random shedding of a join: how large a part of each side to insert or to let probe, for the most results in a budget.

After Ayad et al., Approximating streaming window joins under CPU limitations. Probe-no-insert is the one to use: no
other choice of shares that looks at no key gives more. The other two are there to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from headgate.shed.join.cost import (
    EVERYTHING,
    NOTHING,
    JoinCosts,
    JoinLoad,
    JoinShares,
    check_budget,
    outcome,
)

#: What is kept now stays so unless something else is better by this part: new tuples only pay when windows are full.
_STAY = 0.25


def staying(share: float) -> float:
    """How much more a side counts when such a share of it is kept already."""
    return 1 + _STAY * (share > 0)


def probe_no_insert(load: JoinLoad, costs: JoinCosts, budget: float, last: JoinShares = NOTHING) -> JoinShares:
    """Every tuple probes, and a part of them is inserted: first of the side whose tuples find more partners.

    Results and cost are both linear in what is inserted, and the more partners a tuple finds, the more results its
    update is shared by. So one side is filled up before the other is begun; where there is little between them, the
    one of which more was kept at `last`.

    >>> load = JoinLoad(left_rate=100, right_rate=50, left_window=10, right_window=4, selectivity=0.01)
    >>> costs = JoinCosts(update=0.002, probe=0.0004, produce=0.0006)
    >>> shares = probe_no_insert(load, costs, budget=0.85)
    >>> shares.insert_left, round(shares.insert_right, 6), shares.probe_left, shares.probe_right
    (1.0, 0.5, 1.0, 1.0)
    """
    check_budget(budget)
    left = load.left_rate * (costs.update + load.left_partners * costs.result)
    right = load.right_rate * (costs.update + load.right_partners * costs.result)
    if load.left_partners * staying(last.insert_left) >= load.right_partners * staying(last.insert_right):
        of_left = _affordable(left, budget)
        of_right = _affordable(right, budget - left * of_left)
    else:
        of_right = _affordable(right, budget)
        of_left = _affordable(left, budget - right * of_right)
    return JoinShares(insert_left=of_left, insert_right=of_right)


def coin_flipping(load: JoinLoad, costs: JoinCosts, budget: float) -> JoinShares:
    """A part of each side is dropped, the rest is processed in full.

    The fewest tuples that give so many results are as many from one side as from the other, unless one side has not
    so many: that one is taken whole.

    >>> load = JoinLoad(left_rate=100, right_rate=100, left_window=10, right_window=10, selectivity=0.01)
    >>> round(coin_flipping(load, JoinCosts(update=0.002, probe=0.0, produce=0.001), budget=0.7).insert_left, 6)
    0.5
    """
    if _fits(load, costs, budget):
        return EVERYTHING
    if budget == 0:
        return NOTHING
    pairs = load.selectivity * (load.left_window + load.right_window)
    # The rate of each side, for the budget: 2 * rate * update + pairs * rate^2 * result, solved for the rate.
    rate = budget / (costs.update + math.sqrt(costs.update**2 + pairs * costs.result * budget))
    few, many = sorted((load.left_rate, load.right_rate))
    if rate > few:
        of_few, of_many = 1.0, (budget - few * costs.update) / (many * (costs.update + pairs * few * costs.result))
    else:
        of_few, of_many = rate / few, rate / many
    left, right = (of_few, of_many) if load.left_rate <= load.right_rate else (of_many, of_few)
    return JoinShares(insert_left=left, insert_right=right, probe_left=left, probe_right=right)


def insert_no_probe(load: JoinLoad, costs: JoinCosts, budget: float) -> JoinShares:
    """Every tuple is inserted, and a part of them probes. If inserting alone is too much, nothing is done.

    >>> load = JoinLoad(left_rate=100, right_rate=100, left_window=10, right_window=10, selectivity=0.01)
    >>> round(insert_no_probe(load, JoinCosts(update=0.002, probe=0.0, produce=0.001), budget=1.4).probe_left, 6)
    0.5
    """
    if _fits(load, costs, budget):
        return EVERYTHING
    updates = (load.left_rate + load.right_rate) * costs.update
    if updates > budget:
        return NOTHING
    # Which side probes makes no difference: each result costs the same, whoever finds it.
    share = (budget - updates) / (outcome(load, costs).cost - updates)
    return JoinShares(probe_left=share, probe_right=share)


#: The strategies by name.
STRATEGIES: dict[str, Callable[[JoinLoad, JoinCosts, float], JoinShares]] = {
    "probe-no-insert": probe_no_insert,
    "coin-flipping": coin_flipping,
    "insert-no-probe": insert_no_probe,
}


def _fits(load: JoinLoad, costs: JoinCosts, budget: float) -> bool:
    check_budget(budget)
    return outcome(load, costs).cost <= budget


def _affordable(cost: float, budget: float) -> float:
    """The part that the budget pays for."""
    return 1.0 if cost <= budget else max(0.0, budget) / cost
