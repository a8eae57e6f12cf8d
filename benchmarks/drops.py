"""How many answers a load costs, by where windows are dropped: predicted, published, and counted in a simulation.

The experiments of Tatbul and Zdonik, Window-aware load shedding (sections 4.1 and 4.2), with the ledger in place of
marks on tuples. The paper does not say in words which windows its fan-out has: here it has those of its example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from benchmarks import drop_curves
from benchmarks.drop_plans import (
    AROUND_ONE,
    GAP,
    IN_FAN_OUT,
    IN_PIPELINE,
    Placement,
    fan_out,
    one,
    pipeline,
    predicted,
    published,
)
from benchmarks.drop_simulation import Simulation
from headgate.shed.subset.plan import Tree

EXCESSES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0)
RANGES = (25, 50, 100, 200)
SLIDES = (1, 2, 5, 8, 10, 15, 20, 50, 100)
#: Ranges and slides of two aggregates in a row, and the gap: first as in the paper, then with ever less to save early;
#: the last two have windows that do not begin and end together.
NESTED = (
    ((10, 10), (100, 100), GAP),
    ((30, 10), (200, 100), GAP),
    ((50, 10), (40, 20), 3),
    ((300, 10), (400, 20), GAP),
    ((60, 50), (120, 70), GAP),
    ((60, 50), (120, 70), 3),
)
#: The excess at which the paper looks at windows.
_PUBLISHED = 0.25
#: So many windows of the longest slide: a batch of ten is then a thousandth of the answers.
_UNITS = 10_000

Measured = Mapping[Placement, Mapping[float, float | None]]
"""The fraction of answers that had to go, by place and excess."""


def run(console: Console) -> None:
    """Prints the tables and draws the curves. Everything is counted, nothing timed: it is the same on any machine."""
    drawn = [
        _placements(console, "pipeline", pipeline((10, 10), (100, 100)), IN_PIPELINE),
        _placements(console, "fan-out", fan_out((30, 20), (30, 30)), IN_FAN_OUT),
    ]
    console.print(_nested())
    drawn.append(_windows(console))
    for path in drawn:
        console.print(f"drawn: {path}", soft_wrap=True)


# By the place of the drop


def _placements(console: Console, name: str, tree: Tree, placements: Sequence[Placement]) -> Path:
    """Prints the table of a plan and draws its curves."""
    simulation = Simulation(tree, _UNITS)
    measured = {p: {excess: simulation.needed_drop(p, excess) for excess in EXCESSES} for p in placements}
    table = _table("excess %", *(p.name for p in placements), title=f"{name}: answers dropped, %, predicted / measured")
    for excess in EXCESSES:
        cells = [_cell(predicted(tree, p, excess), found[excess]) for p, found in measured.items()]
        table.add_row(f"{100 * excess:.0f}", *cells)
    table.caption = _promises(simulation, measured)
    console.print(table)
    return _placement_curves(name, tree, measured)


def _promises(simulation: Simulation, measured: Measured) -> str:
    """What came of the answers and of the gap, at the highest load that each place can bear."""
    excess = max(e for e in EXCESSES if all(found[e] is not None for found in measured.values()))
    said = []
    for placement in measured:
        drop = simulation.fitting(placement, excess)
        assert drop is not None
        outcome = simulation.outcome(placement, drop)
        wrong, gap = simulation.wrong(outcome), simulation.longest_gap(outcome)
        said.append(f"{placement.name}: {wrong} answers wrong, {gap} missing in a row")
    return "\n".join([f"at {excess:.0%}", *said])


def _placement_curves(name: str, tree: Tree, measured: Measured) -> Path:
    figure, (axes,) = drop_curves.figure()
    for number, (placement, found) in enumerate(measured.items()):
        drop_curves.line(axes, {n: predicted(tree, placement, n / 100) for n in range(201)}, number, "predicted")
        drop_curves.marks(axes, {100 * excess: rate for excess, rate in found.items()}, number)
    title = f"{name.capitalize()}: answers dropped by the place of the drop, gap {GAP}"
    along = "excess: input over what fits, % of what fits"
    drop_curves.explain(axes, title, along, [p.name for p in measured], ["predicted"])
    return drop_curves.save(figure, name)


def _nested() -> Table:
    """Pipelines of other windows."""
    title = f"pipelines at {_PUBLISHED:.0%} excess: answers dropped, %, predicted / measured"
    table = _table("RANGE by SLIDE", "gap", *(p.name for p in IN_PIPELINE), title=title)
    for inner, outer, gap in NESTED:
        tree = pipeline(inner, outer, gap=gap)
        simulation = Simulation(tree, _UNITS)
        cells = [_cell(predicted(tree, p, _PUBLISHED), simulation.needed_drop(p, _PUBLISHED)) for p in IN_PIPELINE]
        table.add_row("{} by {}, {} by {}".format(*inner, *outer), str(gap), *cells)
    return table


# By the range and the slide


@dataclass(frozen=True)
class Series:
    """Aggregates that differ in one length, at one excess."""

    name: str
    tree: Callable[[int], Tree]
    excess: float = _PUBLISHED

    def rates(self, placement: Placement, length: int) -> tuple[float | None, float | None]:
        """Give the fraction to drop at a place, predicted and as published."""
        tree = self.tree(length)
        return predicted(tree, placement, self.excess), published(tree, placement, self.excess)


def _windows(console: Console) -> Path:
    """Prints the tables of one aggregate by its range and its slide, and draws the curves for drops at the input."""
    by_range = (
        Series(f"SLIDE 1, excess {_PUBLISHED:.0%}", lambda length: one(length, 1)),
        Series(f"tumbling, excess {_PUBLISHED:.0%}", lambda length: one(length, length)),
    )
    # At the excess of the paper most slides leave too little to be saved, so there are lower ones.
    by_slide = [
        Series(f"RANGE 100, excess {excess:.0%}", partial(one, 100), excess) for excess in (0.05, 0.1, _PUBLISHED)
    ]
    figure, panels = drop_curves.figure(2)
    compared = (("RANGE", RANGES, by_range), ("SLIDE", SLIDES, by_slide))
    for axes, (word, lengths, series) in zip(panels, compared, strict=True):
        measured = [_measured(found, lengths) for found in series]
        console.print(_window_table(word, lengths, series, measured))
        _window_curves(axes, word, lengths, series, measured)
    return drop_curves.save(figure, "windows")


def _measured(series: Series, lengths: Sequence[int]) -> Measured:
    return {
        p: {length: _simulation(series.tree(length)).needed_drop(p, series.excess) for length in lengths}
        for p in AROUND_ONE
    }


@cache
def _simulation(tree: Tree) -> Simulation:
    return Simulation(tree, _UNITS)


def _window_table(word: str, lengths: Sequence[int], series: Sequence[Series], measured: Sequence[Measured]) -> Table:
    title = f"one aggregate by its {word}: answers dropped, %, predicted / published / measured"
    table = _table("", word, *(p.name for p in AROUND_ONE), title=title)
    for each, found in zip(series, measured, strict=True):
        for length in lengths:
            cells = [_cell(*each.rates(p, length), found[p][length]) for p in AROUND_ONE]
            table.add_row(each.name, str(length), *cells, end_section=length == lengths[-1])
    return table


def _window_curves(
    axes: Axes, word: str, lengths: Sequence[int], series: Sequence[Series], measured: Sequence[Measured]
) -> None:
    at_input, kinds = AROUND_ONE[0], ("predicted", "published")
    for number, (each, found) in enumerate(zip(series, measured, strict=True)):
        rates = {length: each.rates(at_input, length) for length in range(lengths[0], lengths[-1] + 1)}
        for which, kind in enumerate(kinds):
            drop_curves.line(axes, {length: both[which] for length, both in rates.items()}, number, kind)
        drop_curves.marks(axes, found[at_input], number)
    title = f"One aggregate: answers dropped at the input by {word}, gap {GAP}"
    along = f"{word} (one tuple for each value, on average)"
    drop_curves.explain(axes, title, along, [each.name for each in series], kinds)
    drop_curves.by_ratio(axes, lengths)


def _cell(*rates: float | None) -> str:
    return " / ".join("—" if rate is None else f"{100 * rate:.1f}" for rate in rates)


def _table(*columns: str, title: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table
