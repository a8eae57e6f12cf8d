"""A window aggregate in words: its window, what its bounds mean, and how it is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.aggregates import Kept
from headgate.plan.logical import render
from headgate.plan.logical.nodes import ROW_NUM, WINDOW_END, WINDOW_START, Aggregate, Call
from headgate.plan.logical.strategy import Choice, Strategy, choose
from headgate.plan.logical.types import is_time
from headgate.windows import Category, OnAxis, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

_CATEGORIES = {
    Category.CONTEXT_FREE: "a tuple alone tells which windows it is in",
    Category.FORWARD_CONTEXT_FREE: "a tuple and those before it tell which windows it is in",
    Category.FORWARD_CONTEXT_AWARE: "tuples yet to come have a say in which windows a tuple is in",
}
_LONG = 48
_TOTALS = "running totals: each slide is added to all before it"
_RUNNING = "running sums: panes that enter are added, those that leave are subtracted"
_BLOCKS = "prefix and suffix blocks: nothing is ever subtracted"


def aggregate_lines(node: Aggregate, forced: Strategy | None) -> Iterator[tuple[str, str]]:
    """The lines that explain an aggregate, each with its label; a line without one goes on with the last.

    >>> from headgate.aggregates.builtin import COUNT_ROWS
    >>> from headgate.plan.logical.nodes import Field, Source
    >>> from headgate.windows import Sliding
    >>> main = Source("Main", (Field("ts", "timestamp"),))
    >>> minutes = Sliding(300_000_000, 60_000_000, "ts")
    >>> dict(aggregate_lines(Aggregate(main, minutes, (), (Call("n", COUNT_ROWS),)), None))["panes"]
    '1 minute long; 5 to a window, 1 to a slide'
    """
    choice = choose(node, forced)
    if node.window is None:
        yield "window", "none: a group is complete when progress has passed its key"
    else:
        yield "window", _window(node, node.window)
        yield "bounds", _bounds(node, node.window)
        yield "category", f"{node.window.category.value}: {_CATEGORIES[node.window.category]}"
    yield "keys", ", ".join(render.sql(k.expression, node.input) for k in node.keys) or "none"
    yield "strategy", f"{choice.strategy}: {choice.why}"
    if node.window is not None:
        yield from _work(node, node.window, choice)
    yield from _calls(node, choice)


def _window(node: Aggregate, window: Window) -> str:
    if window.by == "tuple":
        behind = "every tuple" if window.slide == 1 else f"one tuple in {window.slide}"
        last = render.length(window.range, window.range_attr, node.input)
        return f"slides by tuple: the last {last} of {render.name(window.range_attr)}, for {behind}"
    if window.growing:
        each = f" of each {_names(window.partition)}" if window.partition else ""
        axis = "" if window.attr == ROW_NUM else f" of {render.name(window.attr)}"
        return f"landmark: everything{each} so far, {_every(_step(node, window))}{axis}"
    type_, long, step = window.type, _long(node, window), _step(node, window)
    if type_.per_window == type_.per_slide:
        return f"tumbling: {long}{_of(window)}, one window after the other"
    if type_.gaps:
        return f"sliding: {long}{_of(window)}, {_every(step)}; tuples in the gaps are in no window"
    least, most = type_.per_window // type_.per_slide, -(-type_.per_window // type_.per_slide)
    held = render.counted(most, "windows") if least == most else f"{least:,} or {most:,} windows"
    return f"sliding: {long}{_of(window)}, {_every(step)}; a tuple is in {held}"


def _long(node: Aggregate, window: OnAxis) -> str:
    return render.panes(window.type.cut, window.type.per_window, window.attr, node.input)


def _step(node: Aggregate, window: OnAxis) -> str:
    return render.panes(window.type.cut, window.type.per_slide, window.attr, node.input)


def _of(window: OnAxis) -> str:
    if window.attr == ROW_NUM:
        return f" of each {_names(window.partition)}" if window.partition else ""
    return f" of {render.name(window.attr)}" + (f" for each {_names(window.partition)}" if window.partition else "")


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(render.name(c) for c in columns)


def _every(length: str) -> str:
    return f"every {length.removeprefix('1 ')}" if not length[-1].isdigit() else f"every {length}"


def _bounds(node: Aggregate, window: Window) -> str:
    assert node.attribute is not None
    value = render.name(node.attribute)
    if node.attribute in (WINDOW_START, WINDOW_END):
        value = f"the input's {value}"
    if window.by == "tuple":
        by = "by arrival" if window.order == "row_num" else f"by {value}"
        return f"{WINDOW_START} < {value} <= {WINDOW_END}, the tuple's own; tuples are counted {by}"
    if window.growing:
        return f"{value} < {WINDOW_END}, {_multiples(node, window)}; {WINDOW_START} is NULL"
    return f"{WINDOW_START} <= {value} < {WINDOW_END}; {WINDOW_START} is {_multiples(node, window)}"


def _multiples(node: Aggregate, window: OnAxis) -> str:
    cut = window.type.cut
    own = f"; each {_names(window.partition)} counts its own" if window.holds else ""
    if cut.length is None:
        return f"the start of a pane of {cut}{own}"
    origin = cut.start(0)
    since = " since 1970 UTC" if is_time(node.input.types.get(window.attr, "")) else ""
    beyond = f", plus {render.length(origin, window.attr, node.input)}" if origin else ""
    return f"a multiple of {_step(node, window)}{since}{beyond}{own}"


def _work(node: Aggregate, window: Window, choice: Choice) -> Iterator[tuple[str, str]]:
    """Panes and roll-up, where there are any."""
    if choice.strategy == "eager":
        return
    if window.by == "tuple":
        yield "panes", f"one for each value of {render.name(window.range_attr)}"
        yield "roll-up", _BLOCKS
        return
    type_, long = window.type, render.panes(window.type.cut, 1, window.attr, node.input)
    if window.growing:
        yield "panes", f"{long} long, one to a slide"
        yield "roll-up", _TOTALS
    else:
        yield "panes", f"{long} long; {type_.per_window:,} to a window, {type_.per_slide:,} to a slide"
        yield "roll-up", _RUNNING if choice.running else _BLOCKS


def _calls(node: Aggregate, choice: Choice) -> Iterator[tuple[str, str]]:
    """A line for each call: what may be done with it, and what is kept for it."""
    rows = [(render.call(c, node.input), _properties(node, c, choice), _kept(node, c, choice)) for c in node.calls]
    wide, broad = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
    for place, (text, properties, kept) in enumerate(rows):
        line = f"{text:{wide}}  {properties:{broad}}"
        if len(kept) > _LONG:
            yield "" if place else "calls", line.rstrip()
            yield "", f"{'':{wide}}  from {kept}"
        else:
            yield "" if place else "calls", f"{line}  from {kept}"


def _kept(node: Aggregate, item: Call, choice: Choice) -> str:
    """What is kept of the tuples of a pane or a window, to answer a call."""
    if item.kept is Kept.STATE:
        return "the tuples" if choice.strategy == "eager" else "one state for each pane"
    if item.kept is Kept.VALUES:
        return "the values" if choice.strategy == "eager" else "a count for each value"
    holes = _holes(node, item)
    return ", ".join(p.sql.format(**holes) for p in item.function.partials)


def _properties(node: Aggregate, item: Call, choice: Choice) -> str:
    size = "bounded" if item.bounded else "holistic"
    if not item.function.differential:
        return f"{size}, not differential"
    slides = node.window is not None and node.window.by == "axis" and not node.window.growing
    by_panes = slides and choice.strategy == "paned"
    if by_panes and not choose(replace(node, calls=(item,)), "paned").running:
        return f"{size}, differential but for rounding"
    return f"{size}, differential"


def _holes(node: Aggregate, item: Call) -> dict[str, str]:
    """What the holes of a partial's template are filled with, for a reader."""
    arguments = [render.sql(a, node.input) for a in item.arguments]
    return {
        "x": ", ".join(arguments) if item.function.name == "count" else (arguments or [""])[0],
        "y": arguments[1] if len(arguments) > 1 else "",
        "t": render.name(node.attribute) if node.attribute else "",
        "f": f" FILTER (WHERE {render.sql(item.where, node.input)})" if item.where is not None else "",
    }
