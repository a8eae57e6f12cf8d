"""The most results that shedding could leave of a join, if all input were known. Planners are measured by this.

There are two problems. In the first, tuples are dropped or taken whole, so both tuples of a result are paid for. It is
hard, and solved exactly for small inputs only; there is a greedy heuristic after Ayad et al., Approximating streaming
window joins under CPU limitations. In the second, tuples may look for others without being kept, so only the earlier
tuple is paid for. It is easy, and never gives less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from headgate.windows import Number


class Arrival(NamedTuple):
    """A tuple of a stream: its time and its key, which is None for NULL."""

    ts: Number
    key: Hashable


class Pair(NamedTuple):
    """A result of the join: the numbers of its tuples in their streams, and whether the left one is the earlier."""

    left: int
    right: int
    left_first: bool

    @property
    def nodes(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Both tuples, the earlier one first."""
        left, right = ("left", self.left), ("right", self.right)
        return (left, right) if self.left_first else (right, left)


def pairs(lefts: Sequence[Arrival], rights: Sequence[Arrival], left_window: Number, right_window: Number) -> list[Pair]:
    """All results of `L [RANGE left_window], R [RANGE right_window]` with equal keys. Of equal times, left is first.

    >>> pairs([Arrival(0, "a"), Arrival(5, "a")], [Arrival(3, "a"), Arrival(3, None)], left_window=4, right_window=1)
    [Pair(left=0, right=0, left_first=True)]
    """
    return [
        Pair(i, j, left_first=left.ts <= right.ts)
        for i, left in enumerate(lefts)
        for j, right in enumerate(rights)
        if left.key == right.key is not None and left.ts - right_window <= right.ts < left.ts + left_window
    ]


def most_of_whole_tuples(results: Sequence[Pair], update: float, result: float, budget: float) -> int:
    """The most results if both tuples of each are paid for. Exact, by integer programming; for small inputs.

    >>> star = [Pair(0, 0, True), Pair(0, 1, True), Pair(1, 2, True)]
    >>> most_of_whole_tuples(star, update=1.0, result=1.0, budget=5.0)
    2
    """
    nodes = {node: number for number, node in enumerate(sorted({node for pair in results for node in pair.nodes}))}
    edges = len(results)
    if not edges:
        return 0
    # Variables: each result, then each tuple. A result needs both of its tuples.
    rows = np.repeat(np.arange(2 * edges), 2)
    columns = [column for e, pair in enumerate(results) for node in pair.nodes for column in (e, edges + nodes[node])]
    needs = coo_array((np.tile([1.0, -1.0], 2 * edges), (rows, columns)), shape=(2 * edges, edges + len(nodes)))
    price = np.concatenate([np.full(edges, result), np.full(len(nodes), update)])
    solved = milp(
        -np.concatenate([np.ones(edges), np.zeros(len(nodes))]),
        constraints=[LinearConstraint(needs.tocsr(), ub=0), LinearConstraint(price[None, :], ub=budget)],
        integrality=np.ones(edges + len(nodes), dtype=np.int64),
        bounds=Bounds(0, 1),
    )
    assert solved.fun is not None, solved.message
    return round(-solved.fun)


def greedy_of_whole_tuples(results: Sequence[Pair], update: float, result: float, budget: float) -> int:
    """The results of the greedy heuristic: it takes the connected components with the most results for their cost.

    Of the first component that does not fit, it takes the results whose tuples the most others share.

    >>> star = [Pair(0, 0, True), Pair(0, 1, True), Pair(1, 2, True)]
    >>> greedy_of_whole_tuples(star, update=1.0, result=1.0, budget=5.0)
    2
    """
    found, left_over = 0, budget
    for component in sorted(_components(results), key=lambda c: _price(c, update, result) / len(c)):
        if _price(component, update, result) > left_over:
            return found + _greedy_part(component, update, result, left_over)
        found += len(component)
        left_over -= _price(component, update, result)
    return found


def most_by_keeping(results: Sequence[Pair], update: float, result: float, budget: float) -> int:
    """The most results if only the earlier tuple of each is kept. Exact, for inputs of any size.

    The fewest kept tuples give so many results if they are those that later tuples match most often.

    >>> star = [Pair(0, 0, True), Pair(0, 1, True), Pair(1, 2, True)]
    >>> most_by_keeping(star, update=1.0, result=1.0, budget=5.0)
    3
    """
    found, left_over = 0, budget
    for _, partners in Counter(pair.nodes[0] for pair in results).most_common():
        affordable = partners if result == 0 else int((left_over - update) / result + 1e-9)
        if update > left_over or affordable <= 0:
            break
        taken = min(partners, affordable)
        found += taken
        left_over -= update + taken * result
    return found


def _components(results: Sequence[Pair]) -> list[list[Pair]]:
    """The results by connected component. Tuples are the nodes of the graph, results its edges."""
    if not results:
        return []
    lefts = 1 + max(pair.left for pair in results)
    size = lefts + 1 + max(pair.right for pair in results)
    ends = [pair.left for pair in results], [lefts + pair.right for pair in results]
    _, labels = connected_components(coo_array((np.ones(len(results)), ends), shape=(size, size)), directed=False)
    components: dict[int, list[Pair]] = {}
    for pair in results:
        components.setdefault(int(labels[pair.left]), []).append(pair)
    return list(components.values())


def _price(component: Sequence[Pair], update: float, result: float) -> float:
    return len({node for pair in component for node in pair.nodes}) * update + len(component) * result


def _greedy_part(component: Sequence[Pair], update: float, result: float, budget: float) -> int:
    degree = Counter(node for pair in component for node in pair.nodes)
    taken: list[Pair] = []
    for pair in sorted(component, key=lambda pair: sum(1 / degree[node] for node in pair.nodes)):
        if _price([*taken, pair], update, result) > budget:
            break
        taken.append(pair)
    return len(taken)
