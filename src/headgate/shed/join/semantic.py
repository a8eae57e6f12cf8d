"""Shedding of a join by its keys: which keys to keep, and on which side, for the most results in a budget.

After Ayad et al., Approximating streaming window joins under CPU limitations, with one change. They rank whole
components. But a result needs only the earlier of its tuples to be kept, so each side of a component is a thing of its
own, with its own results and its own cost, and to rank the sides never gives less: of a key that is frequent on the
left and rare on the right, the few right tuples are kept, and the many left ones only probe. Sides are kept whole while
they fit; of the one at the margin a part is inserted. A key of which neither side is kept is dropped before it costs
anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from headgate.shed.join.cost import (
    EVERYTHING,
    NOTHING,
    JoinCosts,
    JoinShares,
    Outcome,
    check_budget,
)
from headgate.shed.join.keys import Floats, KeyLoads
from headgate.shed.join.random import staying
from headgate.shed.join.work import carried_out


@dataclass(frozen=True)
class KeyPlan:
    """What is shed of each key, what comes of it, and why."""

    known: Mapping[Hashable, JoinShares]
    others: JoinShares
    expected: Outcome
    why: str

    def shares(self, key: Hashable) -> JoinShares:
        """What is done with the tuples of a key; NULL matches nothing and is dropped."""
        return NOTHING if key is None else self.known.get(key, self.others)


def by_keys(
    loads: KeyLoads, costs: JoinCosts, budget: float, last: Mapping[Hashable, JoinShares] | None = None
) -> KeyPlan:
    """The plan that gives the most results while the rates of the keys stay as they are.

    Of `last`, a plan that ranked almost as well, as much is left as it was as pays.

    >>> from headgate.shed.join.keys import KeyRates, key_loads
    >>> loads = key_loads(KeyRates(10, {"a": 8, "b": 2}), KeyRates(4, {"a": 1, "b": 3}), 10, 10, keys=2)
    >>> plan = by_keys(loads, JoinCosts(update=1, probe=0, produce=0), budget=2)
    >>> plan.shares("a")  # left tuples look for the one right tuple a second, and are not kept
    JoinShares(insert_left=0.0, insert_right=1.0, probe_left=1.0, probe_right=0.0)
    >>> plan.shares("b")  # left tuples, which meet more, are kept as far as the budget goes
    JoinShares(insert_left=0.5, insert_right=0.0, probe_left=0.0, probe_right=1.0)
    """
    check_budget(budget)
    needed = _total(loads, costs, np.ones_like(loads.rates), np.ones_like(loads.rates))
    if needed.cost <= budget:
        return KeyPlan({}, EVERYTHING, needed, f"nothing is shed: {needed.cost:.3g} of {budget:.3g} CPU is needed")
    inserted = kept_sides(loads, costs, budget, worth(loads, last))
    looking = looking_for(inserted)
    *known, others = (JoinShares(*row) for row in np.hstack([inserted, looking]).tolist())
    return KeyPlan(
        dict(zip(loads.keys, known, strict=True)),
        others,
        _total(loads, costs, inserted, looking),
        "the sides of keys with the most partners are kept",
    )


def worth(loads: KeyLoads, last: Mapping[Hashable, JoinShares] | None = None) -> Floats:
    """What the sides of all components are ranked by; what was kept at `last` counts more."""
    if not last:
        return loads.partners
    before = [last.get(key, NOTHING) for key in (*loads.keys, None)]
    return loads.partners * [[staying(shares.insert_left), staying(shares.insert_right)] for shares in before]


def kept_sides(loads: KeyLoads, costs: JoinCosts, budget: float, worth: Floats) -> Floats:
    """The part of each side of each component to keep."""
    # A result costs the same everywhere, and the more of them share the update of one tuple, the less of it each pays.
    inserted = filled(loads.rates * (costs.update + loads.partners * costs.result), worth, budget)
    inserted[loads.rates * loads.partners == 0] = 0.0
    return inserted


def filled(sizes: Floats, worth: Floats, room: float) -> Floats:
    """The part of each side of a component to keep: what is worth most first, until the room is used up."""
    order = np.argsort(-worth, axis=None, kind="stable")
    ordered = sizes.flat[order]
    left_over = np.maximum(0.0, room - (np.cumsum(ordered) - ordered))
    part = np.ones(sizes.size)
    np.divide(left_over, ordered, out=part, where=ordered > left_over)
    kept = np.empty(sizes.size)
    kept[order] = part
    return kept.reshape(sizes.shape)


def looking_for(inserted: Floats) -> Floats:
    """Who looks for tuples of the other side: nobody if none of them is kept."""
    return (inserted[:, ::-1] > 0).astype(float)


def _total(loads: KeyLoads, costs: JoinCosts, inserted: Floats, probing: Floats) -> Outcome:
    done = carried_out(loads, inserted, probing)
    return Outcome(done.pairs, done.kept * costs.update + done.pairs * costs.result)
