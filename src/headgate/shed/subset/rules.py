"""The rules of `subset`: which stretches of the input are kept or dropped as one, for nested and shared aggregates.

A decision is about a unit of the input. Units follow one another by a slide, each reaches as far as its windows need
tuples, and no more of them than the gap may be dropped in a row. Any plan is a composition of two rules: what a
decision means before one more aggregate (`before`), and what several queries can decide together (`fan_out`).
After Tatbul and Zdonik, Window-aware load shedding, with window starts on any grid instead of all at the first tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from headgate.errors import FlowError, WindowError
from headgate.plan.logical.nodes import Lookup
from headgate.plan.stream.stages import Continuous, Stage
from headgate.windows import Number, Sliding, Window
from headgate.windows.arithmetic import gcd
from headgate.windows.axis import ROW_NUM

_OTHERWISE = "shed by 'estimate'"


@dataclass(frozen=True, slots=True)
class Grid:
    """The units that are decided: unit k needs [origin + k*slide, origin + k*slide + extent) of `attr`.

    It stands for the windows that begin in [origin + k*slide, origin + (k+1)*slide). At most `gap` units in a row
    may be dropped; a gap of 0 says that no unit can be dropped without breaking the gap of a query.

    >>> Grid("ts", slide=60, extent=600, gap=10).bounds(2)
    (120, 720)
    """

    attr: str
    slide: Number
    extent: Number
    gap: int
    origin: Number = 0

    def bounds(self, unit: int) -> tuple[Number, Number]:
        """Give the first value that a unit needs, and the first past it."""
        start = self.origin + unit * self.slide
        return start, start + self.extent

    def next(self, place: Number) -> Number:
        """Give the start of the first unit that begins at a place or after it.

        >>> Grid("ts", slide=60, extent=600, gap=10).next(61)
        120
        """
        return self.origin - (self.origin - place) // self.slide * self.slide


def single(window: Window, gap: int) -> Grid:
    """Give the grid of a query with one aggregate: each of its windows is a unit.

    >>> single(Sliding(600, 60, "ts"), gap=10)
    Grid(attr='ts', slide=60, extent=600, gap=10, origin=0)
    """
    if isinstance(gap, bool) or not isinstance(gap, int) or gap < 1:
        raise FlowError(f"gap={gap!r}: give the number of answers that may be missing in a row, 1 or more")
    sliding = droppable(window)
    return Grid(sliding.attr, sliding.slide, sliding.range, gap, sliding.origin)


def before(window: Window, grid: Grid) -> Grid:
    """Give the grid at the input of an aggregate, from the one over its answers (the pipeline rule).

    An answer carries the start of its window, so the last one that a unit needs begins at least one step before the
    unit ends, and its own window reaches on from there. Starts and ends lie on a common raster; its step is one in the
    worst case, and the inner slide where everything is aligned.

    >>> before(Sliding(3, 2, "ts"), single(Sliding(3, 3, "window_start"), gap=1)).extent
    5
    >>> before(Sliding(10, 10, "ts"), single(Sliding(100, 100, "window_start"), gap=1)).extent
    100
    """
    inner = droppable(window)
    step = reduce(gcd, (inner.slide, grid.slide, grid.extent, grid.origin - inner.origin))
    return replace(grid, attr=inner.attr, extent=grid.extent + inner.range - step)


def over_answers(window: Window, grid: Grid) -> Grid:
    """Give a grid over the answers of an aggregate with the extent that its units have in answers.

    Answers lie only where windows begin, so a unit that ends between two of them leaves no more unread than if it
    ended at the later one. Where slides do not divide one another, units begin at all places of a raster from one
    answer to the next, each as often as any other.

    >>> over_answers(Sliding(20, 20, "ts"), single(Sliding(47, 40, "window_start"), gap=1)).extent
    60
    >>> over_answers(Sliding(15, 15, "ts"), single(Sliding(17, 10, "window_start"), gap=1)).extent
    20
    """
    inner = droppable(window)
    step = gcd(inner.slide, grid.slide)
    first = (inner.origin - grid.origin) % step
    return replace(grid, extent=-((first - grid.extent) // step) * step)


def pipeline(windows: Sequence[Window], gap: int) -> Grid:
    """Give the grid at the input of nested aggregates, whose windows come in the order that tuples meet them.

    >>> pipeline([Sliding(4, 1, "ts"), Sliding(3, 2, "window_start")], gap=10)
    Grid(attr='ts', slide=2, extent=6, gap=10, origin=0)
    """
    if not windows:
        raise FlowError("a query without an aggregate has no windows to drop: give the windows of its aggregates")
    *inner, outermost = windows
    return reduce(lambda grid, window: before(window, grid), reversed(inner), single(outermost, gap))


def fan_out(grids: Sequence[Grid]) -> Grid:
    """Give the grid by which all of these can be decided together.

    It moves by the least common multiple of the slides, so a unit holds whole numbers of windows of each, and
    reaches as far as the last of these needs. A query of a short slide has many windows in a unit, and its gap
    allows that many fewer units.

    >>> fan_out([Grid("ts", slide=2, extent=3, gap=9), Grid("ts", slide=3, extent=3, gap=9)])
    Grid(attr='ts', slide=6, extent=7, gap=3, origin=0)
    """
    first, *others = grids
    for other in others:
        if other.attr != first.attr:
            raise WindowError(
                f"windows over {first.attr} and over {other.attr} cannot be dropped together: decide them apart"
            )
    slide = reduce(_lcm, (grid.slide for grid in grids))
    overhang = max(grid.extent - grid.slide + (grid.origin - first.origin) % grid.slide for grid in grids)
    gap = min(int(grid.gap * grid.slide // slide) for grid in grids)
    return Grid(first.attr, slide, slide + overhang, gap, first.origin)


def early_share(grid: Grid) -> float:
    """Give how much of the needed input goes unread for each window that is dropped, as a fraction of a slide.

    A dropped batch of `gap` units lies between kept ones, which reach into it from before and need its end:
    (gap + 1) * slide - extent are left for nobody, of gap * slide. So dropping a fraction p of the answers saves
    p * early_share of the input: all of p for tumbling windows, nothing where a window is longer than the batch. It is
    exact where windows are aligned, and otherwise no more than is saved; only where inner windows leave room between
    them, some of what goes unread may lie in that room.

    >>> early_share(Grid("ts", slide=60, extent=60, gap=3)), early_share(Grid("ts", slide=60, extent=120, gap=3))
    (1.0, 0.6666666666666666)
    >>> early_share(Grid("ts", slide=60, extent=600, gap=3))
    0.0
    """
    if grid.gap == 0:
        return 0.0
    unread = (grid.gap + 1) * grid.slide - grid.extent
    return min(1.0, max(0.0, float(unread / (grid.gap * grid.slide))))


def highest_drop(gap: int) -> float:
    """Give the largest fraction that can be dropped for good: one unit is kept after every batch.

    >>> highest_drop(3), highest_drop(0)
    (0.75, 0.0)
    """
    return gap / (gap + 1)


def droppable(window: Window) -> Sliding:
    """Give the window by range and slide, or an error that says why whole windows of it cannot be dropped at the input.

    >>> from headgate.windows import Landmark
    >>> droppable(Landmark(60, "ts"))
    Traceback (most recent call last):
    headgate.errors.WindowError: no window of [RANGE ALL, SLIDE 60, WA ts] can be dropped: shed by 'estimate'
    """
    sliding = window.as_sliding if window.by == "axis" else None
    if sliding is None:
        raise WindowError(f"no window of {window} can be dropped: {_OTHERWISE}")
    if sliding.holds:
        raise WindowError(f"rows that are dropped would shift {window}, which counts them by partition: {_OTHERWISE}")
    return sliding


def chain(query: Continuous) -> tuple[Sliding, ...]:
    """Give the windows of a query's aggregates in the order that tuples meet them, or an error if it is no pipeline.

    Selections, projections, lookups and unions of streams may lie between: they treat each tuple by itself.
    """
    stages = {stage.name: stage for stage in query.stages}
    windows: list[Sliding] = []
    stage: Stage | None = query.stages[-1]
    while stage is not None:
        if stage.aggregate is not None:
            windows.insert(0, droppable(stage.aggregate.window or stage.window))
        elif not isinstance(stage.own, Lookup):
            raise WindowError(f"query {query.name} is more than aggregates, and only these have windows: {_OTHERWISE}")
        below = [name for name in stage.streams if name in stages]
        if below and len(stage.streams) > 1:
            raise WindowError(
                f"query {query.name} unites the answers of aggregates, which is no pipeline: {_OTHERWISE}"
            )
        stage = stages[below[0]] if below else None
    if any(window.attr == ROW_NUM for window in windows[1:]):
        raise WindowError(f"query {query.name} counts answers, which shift when one is dropped: {_OTHERWISE}")
    if not windows:
        raise WindowError(f"query {query.name} has no aggregate, so it has no windows to drop: {_OTHERWISE}")
    return tuple(windows)


def _lcm(a: Number, b: Number) -> Number:
    multiple = Fraction(a * b) / gcd(a, b)
    return int(multiple) if multiple.denominator == 1 else multiple
