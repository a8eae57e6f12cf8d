"""The curves of `drops`: lines are calculated, marks are measured, and a line ends where no drop is enough."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

_FOLDER = Path(__file__).resolve().parent.parent / "build"
_COLOURS = ("tab:blue", "tab:orange", "tab:red")
_MARKS = ("o", "s", "^")
_STYLES: Mapping[str, Literal["-", "--"]] = {"predicted": "-", "published": "--"}

Rates = Mapping[float, float | None] | Mapping[int, float | None]
"""The fraction to drop along an axis; None where no fraction is enough."""


def figure(panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Give an empty figure, and its panels side by side."""
    made = Figure(figsize=(6.5 * panels, 4.5), dpi=120, layout="constrained")
    return made, [made.add_subplot(1, panels, i) for i in range(1, panels + 1)]


def line(axes: Axes, rates: Rates, number: int, kind: str) -> None:
    """Draw how one of the curves was calculated."""
    axes.plot(list(rates), _percent(rates.values()), _STYLES[kind], color=_COLOURS[number], linewidth=1.5)


def marks(axes: Axes, rates: Rates, number: int) -> None:
    """Draw what was measured of one of the curves."""
    axes.plot(list(rates), _percent(rates.values()), _MARKS[number], color=_COLOURS[number], markersize=6)


def by_ratio(axes: Axes, ticks: Sequence[int]) -> None:
    """Give lengths that double the same distance, and name just these."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)


def explain(axes: Axes, title: str, along: str, names: Sequence[str], kinds: Sequence[str]) -> None:
    """Say what the curves of a panel are: their names by colour, and what is drawn how."""
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(along)
    axes.set_ylabel("answers dropped, %")
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    drawn = zip(names, _COLOURS, _MARKS, strict=False)
    shown = [Line2D([], [], color=colour, marker=mark, label=name) for name, colour, mark in drawn]
    shown += [Line2D([], [], color="gray", linestyle=_STYLES[kind], label=kind) for kind in kinds]
    shown += [Line2D([], [], color="gray", linestyle="", marker=_MARKS[0], label="measured")]
    axes.legend(handles=shown, fontsize=9, title="a line ends where no drop is enough", title_fontsize=8)


def save(made: Figure, name: str) -> Path:
    """Write a figure, and give where."""
    _FOLDER.mkdir(exist_ok=True)
    path = _FOLDER / f"drops-{name}.png"
    made.savefig(path)
    return path


def _percent(rates: Iterable[float | None]) -> list[float]:
    return [math.nan if rate is None else 100 * rate for rate in rates]
