"""How a window aggregate is computed: a partial for each window (eager) or for each pane (paned)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.aggregates import Kept
from headgate.plan.logical.nodes import ROW_NUM, Aggregate, Call
from headgate.plan.logical.types import is_exact, type_of
from headgate.windows import OnAxis, WindowType

Strategy = Literal["eager", "paned"]

# Costs relative to updating one partial with one tuple, as measured on Spark: to make a pane's partial and to send it
# to the roll-up, and to roll it up.
_TUPLE, _PANE, _ROLL_UP = 1.0, 2.0, 3.0
#: What is assumed of a stream that nothing is known about.
_TUPLES_A_SECOND, _GROUPS = 1_000.0, 1_000.0


@dataclass(frozen=True)
class Choice:
    """The strategy of one aggregate, whether its roll-up subtracts what leaves, and why."""

    strategy: Strategy
    running: bool
    why: str


@dataclass(frozen=True)
class Load:
    """What the cost of a window depends on: its tuples, and the groups of a pane."""

    tuples: float
    groups: float


def choose(aggregate: Aggregate, forced: Strategy | None = None, load: Load | None = None) -> Choice:
    """The cheaper strategy for an aggregate by the cost formulas, unless one is forced.

    >>> from headgate.windows import Sliding
    >>> from headgate.plan.logical.nodes import Aggregate, Source
    >>> hour_by_minute = Sliding(3_600_000_000, 60_000_000, "ts")
    >>> choose(Aggregate(Source("Main", ()), hour_by_minute, (), ())).strategy
    'paned'
    """
    window, running = aggregate.window, all(_subtracts(aggregate, c) for c in aggregate.calls)
    if window is None:
        return Choice("eager", False, "no window: the keys themselves progress")
    slides = window.by == "axis" and not window.growing
    if not slides and any(c.kept is Kept.STATE for c in aggregate.calls):
        return Choice("eager", False, "a user-defined aggregate shares panes of sliding windows only")
    if window.by == "axis" and not window.type.overlapping:
        return Choice("eager", running, "windows do not overlap: a pane would be a window")
    if forced is not None:
        return Choice(forced, running, "asked for")
    if window.growing:
        return Choice("paned", False, "a landmark window grows slide by slide")
    if window.by == "tuple":
        return Choice("paned", False, "each tuple is a pane: prefix and suffix blocks give every window")
    if any(c.kept is Kept.STATE and not c.bounded for c in aggregate.calls):
        return Choice("eager", running, "the partials of a user-defined aggregate are not bounded")
    load = load or _assumed(aggregate, window)
    eager, paned = window_cost(load), pane_cost(load, window.type)
    why = f"{paned:,.0f} a window by panes against {eager:,.0f} by windows"
    return Choice("paned" if paned < eager else "eager", running, why)


def window_cost(load: Load) -> float:
    """The cost of a window that every one of its tuples updates (thesis Eq. 6.3)."""
    return _TUPLE * load.tuples


def pane_cost(load: Load, window: WindowType) -> float:
    """The cost of a window by panes (thesis Eq. 6.1, 6.2).

    Each tuple of a slide updates one pane, and each pane makes a partial for each of its groups. The last term differs
    from the formulas: our roll-up handles each pane once instead of every pane of every window.
    """
    tuples = load.tuples * window.per_slide / window.per_window
    partials = min(load.groups, load.tuples / window.per_window) * window.per_slide
    return _TUPLE * tuples + (_PANE + _ROLL_UP) * partials


def _assumed(aggregate: Aggregate, window: OnAxis) -> Load:
    start, end = window.bounds(0)
    assert start is not None, "windows that grow are never weighed up"
    length = float(end - start)
    tuples = length if window.attr == ROW_NUM else max(_TUPLES_A_SECOND * length / 1e6, _TUPLES_A_SECOND)
    return Load(tuples, _GROUPS if aggregate.keys else 1.0)


def _subtracts(aggregate: Aggregate, call: Call) -> bool:
    """Whether what a call added up can be taken away again without a trace: sums of floating point cannot."""
    if call.kept is not Kept.PARTIALS:
        return True  # Counted by value, or merged from states: it has a roll-up of its own.
    if not call.function.differential:
        return False
    if call.function.name == "count":
        return True
    exact = all(is_exact(type_of(a, aggregate.input.types)) for a in call.arguments)
    return exact and call.function.name in ("sum", "avg") and "DOUBLE" not in call.function.partials[0].sql
