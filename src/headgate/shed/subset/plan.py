"""The plan of `subset`: which fraction of each query's windows to drop under a load, and which queries to suspend.

A dropped fraction saves work in proportion, at each point of a query by another factor: after the aggregates an answer
saves its own work, before them input is saved only as far as no kept window needs it. So the plan is a linear programme
that keeps the most answers, by weight. Queries over one input are decided together where that saves more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import linprog

from headgate.errors import FlowError
from headgate.shed.subset.rules import Grid, droppable, early_share, fan_out, highest_drop, over_answers, pipeline
from headgate.windows import Window

Place: TypeAlias = Literal["input", "middle", "behind"]
"""Where a drop begins to save work: before the first aggregate, before a later one, or after them all."""


@dataclass(frozen=True)
class Step:
    """An aggregate of a query: its work for each tuple, and the rows that a window of it passes on."""

    window: Window
    cost: float
    rows: float = 1.0


@dataclass(frozen=True)
class SubsetQuery:
    """What the plan knows of a query: `rate` tuples a second come in, and an answer costs `per_answer`.

    The progressing attribute goes on by `pace` a second: a million for a time, the rate itself for rows. A query of a
    higher weight is dropped and suspended later.

    >>> from headgate.windows import Sliding
    >>> inner, outer = Step(Sliding(5, 5, "ts"), cost=2.0, rows=10.0), Step(Sliding(60, 60, "window_start"), cost=3.0)
    >>> SubsetQuery("swings", (inner, outer), gap=3, rate=100.0, per_answer=6.0, pace=1.0).loads
    (200.0, 6.0, 0.1)
    """

    name: str
    steps: tuple[Step, ...]
    gap: int
    rate: float
    per_answer: float = 0.0
    weight: float = 1.0
    pace: float = 1_000_000.0

    def __post_init__(self) -> None:
        self.grid()  # An error here rather than with the first plan.
        figures = {"rate": self.rate, "per_answer": self.per_answer}
        figures |= {f"cost of {step.window}": step.cost for step in self.steps}
        figures |= {f"rows of {step.window}": step.rows for step in self.steps}
        for word, figure in figures.items():
            if not 0 <= figure < math.inf:
                raise FlowError(f"query {self.name}: {word} is {figure}: give zero or more")
        for word, figure in (("weight", self.weight), ("pace", self.pace)):
            if not 0 < figure < math.inf:
                raise FlowError(f"query {self.name}: {word} is {figure}: give a number above 0")

    @property
    def loads(self) -> tuple[float, ...]:
        """The work in a second before each of the aggregates, and last the work after them all."""
        answers = [step.rows * self.pace / float(droppable(step.window).slide) for step in self.steps]
        costs = [*(step.cost for step in self.steps), self.per_answer]
        return tuple(cost * tuples for cost, tuples in zip(costs, (self.rate, *answers), strict=True))

    @property
    def load(self) -> float:
        """All its work in a second, with nothing dropped."""
        return sum(self.loads)

    def grid(self, level: int = 0) -> Grid:
        """The grid before one of the aggregates, if the query is decided by itself."""
        return pipeline([step.window for step in self.steps[level:]], self.gap)

    def shares(self, run: int) -> list[float]:
        """What is saved before each aggregate, and last of the answers, if so many windows are dropped in a row."""
        first, *others = (replace(self.grid(level), gap=run) for level in range(len(self.steps)))
        answers = [over_answers(step.window, grid) for step, grid in zip(self.steps, others, strict=False)]
        return [*map(early_share, (first, *answers)), 1.0]


@dataclass(frozen=True)
class Tree:
    """Queries over one input, and the work in a second of reading it. It is saved where no query needs the input."""

    queries: tuple[SubsetQuery, ...]
    shared: float = 0.0


@dataclass(frozen=True)
class Drop:
    """Queries that are decided together, and the dropped fraction of their windows."""

    queries: tuple[str, ...]
    fraction: float
    highest: float
    """The most that their gaps allow."""
    places: tuple[Place, ...]
    """Where the drop begins to save, for each query."""


@dataclass(frozen=True)
class Suspension:
    """A query that does not run for now, and why."""

    query: str
    reason: str


@dataclass(frozen=True)
class SubsetPlan:
    """What to drop of the running queries, which queries do not run, and the load that is left."""

    drops: tuple[Drop, ...]
    suspended: tuple[Suspension, ...]
    load: float


def saving(query: SubsetQuery, level: int, run: int | None = None) -> float:
    """Give the work in a second that is saved if all answers of a query are dropped from one level on.

    Level 0 is the input, the number of aggregates is after them all. A fraction of the answers saves that fraction
    of it. `run` is how many windows are dropped in a row, where that is less than the gap because others decide too.

    >>> from headgate.windows import Sliding
    >>> query = SubsetQuery("q", (Step(Sliding(10, 10, "ts"), cost=5.0),), 10, rate=1.0, per_answer=50.0, pace=1.0)
    >>> saving(query, 0), saving(query, 1)
    (10.0, 5.0)
    """
    shares = query.shares(query.gap if run is None else run)
    return sum(load * share for load, share in zip(query.loads[level:], shares[level:], strict=True))


def needed_drop(query: SubsetQuery, level: int, excess: float) -> float | None:
    """Give the fraction of answers to drop to save this much work in a second; None if nothing saves so much.

    >>> from headgate.windows import Sliding
    >>> query = SubsetQuery("q", (Step(Sliding(10, 10, "ts"), cost=5.0),), 10, rate=1.0, per_answer=50.0, pace=1.0)
    >>> needed_drop(query, 0, 2.0), needed_drop(query, 1, 2.0), needed_drop(query, 1, 6.0)
    (0.2, 0.4, None)
    """
    most = saving(query, level)
    if excess <= 0:
        return 0.0
    return excess / most if excess <= most * highest_drop(query.gap) else None


def plan(trees: Sequence[Tree], capacity: float, suspended: Collection[str] = (), *, margin: float = 0.1) -> SubsetPlan:
    """Give the drops with which the queries fit into a capacity, in work a second, and the queries that do not run.

    Where no drop within the gaps is enough, the costliest queries by weight are suspended, one by one. Those that were
    suspended resume, the cheapest first, when it all fits with a `margin` to spare: load at the edge of the capacity
    does not turn them on and off.
    """
    if not capacity >= 0:
        raise FlowError(f"capacity is {capacity}: give the work that can be done in a second, zero or more")
    by_cost = sorted((q for t in trees for q in t.queries), key=lambda q: (q.load / q.weight, q.name))
    running = {q.name for q in by_cost} - set(suspended)
    fits = _fit(trees, running, capacity)
    if fits is None:
        for query in reversed(by_cost):
            if query.name in running:
                running.remove(query.name)
                fits = _fit(trees, running, capacity)
            if fits is not None:
                break
    else:
        for query in by_cost:
            if query.name not in running and _fit(trees, running | {query.name}, capacity * (1 - margin)) is not None:
                running.add(query.name)
                fits = _fit(trees, running, capacity)
    assert fits is not None  # With no query running there is no load.
    drops, load = fits
    stopped = tuple(
        Suspension(
            q.name, f"its gap of {q.gap} cannot be kept: it takes {q.load:.2%} of the time, and {capacity:.2%} are left"
        )
        for q in by_cost
        if q.name not in running
    )
    return SubsetPlan(drops, stopped, load)


@dataclass(frozen=True)
class _Choice:
    """Queries that are decided together, and what that saves."""

    queries: tuple[SubsetQuery, ...]
    runs: tuple[int, ...]
    """How many windows of each are dropped in a row."""
    highest: float
    shared: float = 0.0
    """The work in common that is saved."""

    @property
    def saved(self) -> float:
        return self.shared + sum(saving(q, 0, run) for q, run in zip(self.queries, self.runs, strict=True))

    @property
    def weight(self) -> float:
        return sum(query.weight for query in self.queries)


def _fit(trees: Sequence[Tree], running: Collection[str], capacity: float) -> tuple[tuple[Drop, ...], float] | None:
    """The drops of least loss that bring the running queries down to a capacity, and the load that is left."""
    active = [replace(t, queries=tuple(q for q in t.queries if q.name in running)) for t in trees]
    active = [tree for tree in active if tree.queries]
    load = sum(tree.shared + sum(query.load for query in tree.queries) for tree in active)
    excess = max(0.0, load - capacity)
    # First what loses least. If that is not enough, what saves most.
    for together in (
        [max(_choices(tree), key=_saved) for tree in active],
        [max(_choices(tree), key=_most) for tree in active],
    ):
        choices = [choice for tree in together for choice in tree]
        if _most(choices) >= excess * (1 - 1e-9):
            fractions = _least_loss(choices, excess)
            drops = tuple(_drop(choice, fraction) for choice, fraction in zip(choices, fractions, strict=True))
            return drops, load - sum(c.saved * f for c, f in zip(choices, fractions, strict=True))
    return None


def _least_loss(choices: Sequence[_Choice], excess: float) -> list[float]:
    if excess == 0:
        return [0.0] * len(choices)
    most = _most(choices)
    found = linprog(
        c=[choice.weight for choice in choices],
        # In parts of what can be saved at all, so that the unit of work makes no difference.
        A_ub=-np.array([[choice.saved / most for choice in choices]]),
        b_ub=[-min(1.0, excess / most)],
        bounds=[(0, choice.highest) for choice in choices],
    )
    if not found.success:  # Numbers may be too far apart. To drop all that may be dropped does fit.
        return [choice.highest for choice in choices]
    return [
        min(max(float(fraction), 0.0), choice.highest)
        for choice, fraction in zip(choices, np.array(found.x), strict=True)
    ]


def _choices(tree: Tree) -> list[list[_Choice]]:
    """The ways to decide the queries of a tree: all together, where their gaps allow, or each by itself."""
    apart = [_Choice((q,), (q.gap,), highest_drop(q.gap)) for q in tree.queries]
    grids = [query.grid() for query in tree.queries]
    if len({grid.attr for grid in grids}) > 1:
        return [apart]
    common = fan_out(grids)
    runs = tuple(int(common.gap * common.slide / grid.slide) for grid in grids)
    together = [_Choice(tree.queries, runs, highest_drop(common.gap), tree.shared * early_share(common))]
    return [together, apart] if len(grids) > 1 else [together]


def _saved(choices: Sequence[_Choice]) -> float:
    return sum(choice.saved for choice in choices if choice.highest > 0)


def _most(choices: Sequence[_Choice]) -> float:
    return sum(choice.saved * choice.highest for choice in choices)


def _drop(choice: _Choice, fraction: float) -> Drop:
    places = tuple(_place(query, run) for query, run in zip(choice.queries, choice.runs, strict=True))
    return Drop(tuple(query.name for query in choice.queries), fraction, choice.highest, places)


def _place(query: SubsetQuery, run: int) -> Place:
    """The earliest place at which a drop saves anything."""
    level = next(level for level, share in enumerate(query.shares(run)) if share > 0)
    if level == len(query.steps):
        return "behind"
    return "middle" if level else "input"
