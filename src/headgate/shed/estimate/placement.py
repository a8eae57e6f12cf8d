"""Where drops go: the cheapest places that leave each query the rate it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.shed.estimate.tree import Leaf, Node, Trees


@dataclass(frozen=True)
class Placement:
    """The probability to keep a tuple on the edge to each node, and the load that is left."""

    keep: Mapping[str, float]
    load: float


def place(trees: Trees, rates: Mapping[str, float], drop_cost: float = 0.0) -> Placement:
    """Give the placement of least load that samples each query at its rate or above.

    A query with a fixed rate is sampled at just that rate. Where drops cost nothing, they stand at the top of each
    segment and keep what the most demanding query below needs of what is still there (after Babcock, Datar and
    Motwani, *Load Shedding for Aggregation Queries*). Where they do cost, one that takes more time than it saves is
    left out, and the queries below get more than they need.

    >>> from headgate.shed.estimate.tree import Segment, Stream
    >>> shared = Segment("A", cost=1e-6, selectivity=1.0, below=(Leaf("B", cost=1e-6), Leaf("C", cost=1e-6)))
    >>> trees = Trees((Stream("S", tuples=1_000_000, below=(shared,)),))
    >>> dict(place(trees, {"B": 0.5, "C": 0.8}).keep)
    {'A': 0.8, 'B': 0.625, 'C': 1.0}
    >>> dict(place(trees, {"B": 0.5, "C": 0.8}, drop_cost=4e-7).keep)  # before B it would save 0.30 s and take 0.32
    {'A': 0.8, 'B': 1.0, 'C': 1.0}
    """
    tops = [
        _cheapest(node, stream.tuples, (1.0,), rates, drop_cost) for stream in trees.streams for node in stream.below
    ]
    keep = dict(kept for top in tops for kept in _kept(top, 0, 1.0))
    return Placement(keep, sum(top.loads[0] for top in tops))


@dataclass(frozen=True)
class _Cheapest:
    """The least load of a node with all below it, by the rate at which tuples come from above.

    With the places of the drops given, every rate is as low as the queries below let it be. So the rate at a
    node is either that of the node above, or the highest that a query below needs; and the rates that can come from
    above are 1 and those highest ones of the nodes on the way.
    """

    name: str
    needed: float
    """The highest rate that a query below needs."""
    loads: list[float]
    drops: list[bool]
    below: list[_Cheapest]


def _cheapest(
    node: Node, tuples: float, above: tuple[float, ...], rates: Mapping[str, float], drop_cost: float
) -> _Cheapest:
    needed = _needed(node, rates)
    below: list[_Cheapest] = []
    if not isinstance(node, Leaf):
        passed = tuples * node.selectivity
        below = [_cheapest(child, passed, (*above, needed), rates, drop_cost) for child in node.below]
    work, toss = tuples * node.cost, tuples * drop_cost if needed else 0.0
    must = isinstance(node, Leaf) and node.fixed_rate is not None
    dropped_work = work * needed + sum(b.loads[-1] for b in below)
    loads, drops = [], []
    for place, rate in enumerate(above):
        through = work * rate + sum(b.loads[place] for b in below)
        dropped = toss * rate + dropped_work
        drop = needed < rate and (must or dropped < through)
        loads.append(dropped if drop else through)
        drops.append(drop)
    return _Cheapest(node.name, needed, loads, drops, below)


def _needed(node: Node, rates: Mapping[str, float]) -> float:
    return rates[node.name] if isinstance(node, Leaf) else max(_needed(child, rates) for child in node.below)


def _kept(best: _Cheapest, place: int, rate: float) -> Iterator[tuple[str, float]]:
    """The probabilities of a node and all below it, where tuples come at the rate in this place of its `loads`."""
    drop = best.drops[place]
    yield best.name, best.needed / rate if drop else 1.0
    for child in best.below:
        yield from _kept(child, len(best.drops) if drop else place, best.needed if drop else rate)
