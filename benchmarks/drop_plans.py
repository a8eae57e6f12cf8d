"""Where windows can be dropped in a plan, and which fraction has to go there: by the planner, and as published.

A fraction is asked for by the excess: how much more comes in than fits, in parts of what fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.shed.subset.plan import Place, Step, SubsetQuery, Tree, plan, saving
from headgate.shed.subset.rules import highest_drop
from headgate.windows import Sliding

GAP = 10


@dataclass(frozen=True)
class Placement:
    """A place for drops: the level of each query from which on they save, and whether they save what queries share."""

    name: Place
    level: int
    together: bool = False


#: Two aggregates in a row: before the first, between them, after the second.
IN_PIPELINE = (Placement("input", 0, together=True), Placement("middle", 1), Placement("behind", 2))
#: Two aggregates side by side: before the streams part, then before each aggregate, after each.
IN_FAN_OUT = (Placement("input", 0, together=True), Placement("middle", 0), Placement("behind", 1))
#: One aggregate: before and after.
AROUND_ONE = (Placement("input", 0, together=True), Placement("behind", 1))


def pipeline(*windows: tuple[int, int], gap: int = GAP) -> Tree:
    """Give nested aggregates over windows (range, slide), with the same work before, between and after them."""
    slides = [1, *(slide for _, slide in windows)]
    *costs, per_answer = map(float, slides)
    return Tree((_query("nested", windows, costs, per_answer, gap),))


def fan_out(*windows: tuple[int, int], gap: int = GAP) -> Tree:
    """Give aggregates side by side; as much work is shared as is done for each of them alone, before and after."""
    part = 1.0 / len(windows)
    queries = [
        _query(f"side {i}", [window], [part], part * window[1], gap) for i, window in enumerate(windows, start=1)
    ]
    return Tree(tuple(queries), shared=1.0)


def one(length: int, slide: int, gap: int = GAP) -> Tree:
    """Give an aggregate for whose answers there is as much to do as for its tuples, for each."""
    return Tree((_query("one", [(length, slide)], [1.0], 1.0, gap),))


def _query(
    name: str, windows: Sequence[tuple[int, int]], costs: Sequence[float], per_answer: float, gap: int
) -> SubsetQuery:
    """A query to whose first aggregate one tuple comes in a second, on average."""
    steps = tuple(Step(Sliding(r, s, "ts"), cost) for (r, s), cost in zip(windows, costs, strict=True))
    return SubsetQuery(name, steps, gap, rate=1.0, per_answer=per_answer, pace=1.0)


def load(tree: Tree) -> float:
    """Give all the work in a second, with nothing dropped."""
    return tree.shared + sum(query.load for query in tree.queries)


def highest(tree: Tree) -> float:
    """Give the largest fraction that the gaps allow, of each query by itself."""
    return min(highest_drop(query.gap) for query in tree.queries)


def predicted(tree: Tree, placement: Placement, excess: float) -> float | None:
    """Give the fraction of each query's answers that has to go, or None where no fraction within the gaps is enough."""
    surplus = _surplus(tree, excess)
    if placement.together:
        found = plan([tree], load(tree) - surplus)
        # Queries that share their input save it only together.
        return found.drops[0].fraction if len(found.drops) == 1 and not found.suspended else None
    return _fraction(surplus, sum(saving(query, placement.level) for query in tree.queries), highest(tree))


def published(tree: Tree, placement: Placement, excess: float) -> float | None:
    """Give the same by the authors' formulas (section 3.6), which are for one aggregate; marks cost nothing.

    They set what a dropped batch leaves unread against all that its windows cover. Its neighbours cover part of that
    too, so it is counted twice, and less seems to be saved than is.
    """
    (query,) = tree.queries
    window = query.steps[0].window
    assert isinstance(window, Sliding)
    unread = max(0.0, float((query.gap + 1) * window.slide - window.range))
    covered = float((query.gap - 1) * window.slide + window.range)
    before, after = query.loads
    saved = after if placement.level else after + before * unread / covered
    return _fraction(_surplus(tree, excess), saved, highest(tree))


def _surplus(tree: Tree, excess: float) -> float:
    return load(tree) * excess / (1 + excess)


def _fraction(surplus: float, saved: float, most: float) -> float | None:
    return surplus / saved if surplus <= saved * most else None
