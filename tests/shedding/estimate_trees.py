"""Random trees for the tests of the `estimate` planner, and the best plans as linear programmes find them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from headgate.shed.estimate.tree import Kind, Leaf, Node, Segment, Stream, Trees


def random_trees(seed: int, queries: int, streams: int = 1, depth: int = 3) -> Trees:
    """Give trees of aggregates with constants from 0.005 to 0.5, in which a batch takes a few seconds."""
    rng = np.random.default_rng(seed)
    leaves: list[Node] = [
        Leaf(
            f"q{i}",
            cost=float(10 ** rng.uniform(-2, 0.3)),
            constant=float(10 ** rng.uniform(-2.3, -0.3)),
            weight=float(rng.choice([1, 1, 2, 5])),
        )
        for i in range(queries)
    ]
    names = (f"s{i}" for i in range(1_000_000))
    roots = [_segment(rng, part, names, depth) for part in np.array_split(np.array(leaves, dtype=object), streams)]
    return Trees(tuple(Stream(f"S{i}", float(rng.uniform(0.5, 2)), (root,)) for i, root in enumerate(roots)))


def _segment(rng: np.random.Generator, leaves: Collection[Node], names: Iterator[str], depth: int) -> Segment:
    """A segment with its leaves dealt out to segments below it, some of them directly."""
    name, hands = next(names), rng.integers(0, 3, len(leaves))
    below: list[Node] = []
    for hand in range(3):
        part = [leaf for leaf, of in zip(leaves, hands, strict=True) if of == hand]
        below += [_segment(rng, part, names, depth - 1)] if part and hand and depth > 1 else part
    return Segment(name, float(10 ** rng.uniform(-2, 0.3)), float(rng.uniform(0.1, 1.2)), tuple(below))


def changed(trees: Trees, change: Callable[[Leaf], Leaf | None]) -> Trees:
    """Give trees with other queries in place of theirs; where there is None, the query is gone."""

    def of(node: Node) -> Iterator[Node]:
        if isinstance(node, Leaf):
            if query := change(node):
                yield query
        elif below := tuple(found for child in node.below for found in of(child)):
            yield replace(node, below=below)

    return Trees(tuple(replace(s, below=tuple(n for top in s.below for n in of(top))) for s in trees.streams))


def subsets(names: Collection[str]) -> Iterator[frozenset[str]]:
    return (frozenset(some) for size in range(len(names) + 1) for some in combinations(sorted(names), size))


class Programme:
    """The plans with drops at some places only, as a linear programme over the rates at all nodes."""

    def __init__(self, trees: Trees, drops: Collection[str], drop_cost: float) -> None:
        self.places = list(trees.places())
        self.index = {p.node.name: i for i, p in enumerate(self.places)}
        self.size = len(self.places) + 1  # The last variable is the multiplier, 1 / the largest weighted error.
        self.upper: list[tuple[np.ndarray, float]] = []
        self.equal: list[tuple[np.ndarray, float]] = []
        self.load, self.constant_load = np.zeros(self.size), 0.0
        for place in self.places:
            name, above = place.node.name, self.index.get(place.above)
            self.load[self.index[name]] += place.tuples * place.node.cost
            row, bound = self.row(name, 1.0), 1.0
            if above is not None:
                row[above], bound = -1.0, 0.0
            (self.upper if name in drops else self.equal).append((row, bound))
            if name in drops and above is not None:
                self.load[above] += place.tuples * drop_cost
            elif name in drops:
                self.constant_load += place.tuples * drop_cost

    def row(self, name: str, value: float) -> np.ndarray:
        row = np.zeros(self.size)
        row[self.index[name]] = value
        return row

    def at_least(self, name: str, rate: float) -> None:
        self.upper.append((self.row(name, -1.0), -rate))

    def just(self, name: str, rate: float) -> None:
        self.equal.append((self.row(name, 1.0), rate))

    def proportional(self, name: str, factor: float) -> None:
        row = self.row(name, -1.0)
        row[-1] = factor
        self.upper.append((row, 0.0))

    def within(self, capacity: float) -> None:
        self.upper.append((self.load, capacity - self.constant_load))

    def least(self, objective: np.ndarray) -> float | None:
        """The least value of the objective, or None where there is no plan."""
        found = linprog(
            objective,
            A_ub=np.array([row for row, _ in self.upper]) if self.upper else None,
            b_ub=[bound for _, bound in self.upper] if self.upper else None,
            A_eq=np.array([row for row, _ in self.equal]) if self.equal else None,
            b_eq=[bound for _, bound in self.equal] if self.equal else None,
            bounds=[(0, 1)] * (self.size - 1) + [(0, 1e6)],
        )
        return None if found.fun is None else float(found.fun)


def least_load(trees: Trees, rates: Mapping[str, float], drop_cost: float) -> float:
    """The least load of all sets of drops that leave each query its rate or more (a fixed rate: just that)."""
    found = []
    for drops in subsets([p.node.name for p in trees.places()]):
        programme = Programme(trees, drops, drop_cost)
        for query in trees.queries:
            (programme.at_least if query.fixed_rate is None else programme.just)(query.name, rates[query.name])
        load = programme.least(programme.load)
        if load is not None:
            found.append(load + programme.constant_load)
    return min(found)


def least_error(trees: Trees, capacity: float, drop_cost: float | None = None) -> float:
    """The least largest weighted error of aggregates, over all sets of queries not shed and all sets of drops.

    Without a cost of drops they may stand everywhere, and only the queries not shed are tried out.
    """
    everywhere = [p.node.name for p in trees.places()]
    places = [frozenset(everywhere)] if drop_cost is None else list(subsets(everywhere))
    shed = {q.name: q for q in trees.queries if q.fixed_rate is None}
    assert all(q.kind is Kind.AGGREGATE for q in shed.values())
    best = math.inf
    for drops in places:
        for untouched in subsets(shed):
            programme = Programme(trees, drops, drop_cost or 0.0)
            for query in trees.queries:
                if query.name in shed and query.name not in untouched:
                    programme.proportional(query.name, query.weight * query.constant)
                else:
                    programme.just(query.name, query.fixed_rate or 1.0)
            programme.within(capacity)
            multiplier = programme.least(np.append(np.zeros(programme.size - 1), -1.0))
            if multiplier is not None:
                best = min(best, 0.0 if len(untouched) == len(shed) else 1 / -multiplier if multiplier else math.inf)
    return best
