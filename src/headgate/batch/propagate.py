"""How punctuation goes through the stages of a flow: which windows it closes, and how it punctuates their answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headgate.incremental.hold import Held, held
from headgate.incremental.match import Side, sides
from headgate.plan.logical.nodes import ROW_NUM, Aggregate, Distinct
from headgate.progress import Punctuation, Reached, closed, furthest, joined_up, opened, reached
from headgate.progress.closing import Box, Closing
from headgate.progress.place import read, written
from headgate.windows.arithmetic import exact

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.plan.stream.stages import Stage
    from headgate.protocol.manifest import Manifest
    from headgate.windows import OnAxis

#: Punctuation by attribute.
Places = dict[str, Punctuation]


@dataclass
class Punctuated:
    """The punctuation of streams, those of the flow and those of stages, and which of them are idle."""

    streams: dict[str, Punctuation | Reached]
    idle: set[str]
    boxes: dict[str, Places] = field(default_factory=dict)
    """Joint punctuation, by the stages whose groups it closes."""


def passed_on(level: Level, punctuated: Punctuated) -> None:
    """Punctuates the tuples that are looked up in tables: as they were before."""
    for name, stage in level.looking_up.items():
        assert stage.own is not None
        (below,) = stage.own.inputs
        punctuated.streams[name] = reached(below, punctuated.streams, frozenset(punctuated.idle))


def closed_windows(level: Level, manifest: Manifest, punctuated: Punctuated) -> dict[str, int]:
    """The last window of each stage that punctuation has closed, which punctuates the answers of the stage."""
    found = {}
    for name, stage in level.aggregating.items():
        assert stage.aggregate is not None
        below = reached(stage.aggregate.input, punctuated.streams, frozenset(punctuated.idle))
        p = below.on(stage.window.attr)
        last, span = closed(stage.window, p), manifest.state.span(level.depth, level.axis(name))
        if stage.window.growing:
            # It has windows up to the last tuple of its streams, and not one more until there is a later tuple.
            newest = _newest(level, stage, manifest, span)
            last = None if last is None or newest is None else min(last, _window_of(newest, stage.window))
        elif last == math.inf:
            last = None if span is None else _window_of(span[1], stage.window) + 1
        if last is not None:
            found[name] = max(int(last), manifest.windows.closed.get(name, int(last)))
        elif name in manifest.windows.closed:
            found[name] = manifest.windows.closed[name]
        if stage.aggregate.window is None and len(below.joint) > 1:
            before = read_places(manifest.windows.boxes).get(name, {})
            joint = {a: math.inf if below.over else furthest((before.get(a), p)) for a, p in below.joint.items()}
            if joint.keys() <= {key.expression.name for key in stage.aggregate.keys}:
                punctuated.boxes[name] = joint
        at = {stage.aggregate.progress[0]: opened(stage.window, found[name])} if name in found else {}
        punctuated.streams[name] = Reached(at, below.over, below.idle)
    return found


def _newest(level: Level, stage: Stage, manifest: Manifest, span: tuple[float, float] | None) -> float | None:
    """How far the streams of a stage have come, also by tuples that it does not count."""
    streams = level.origins(stage)
    if stage.window.attr == ROW_NUM:
        found = [manifest.progress.numbered.get(s, 0) - 1 for s in streams]
        return max(found) if max(found) >= 0 else None
    places = [read(manifest.progress.highest[s]) for s in streams if s in manifest.progress.highest]
    known = [float(p) for p in places if p is not None]
    return max([*known, *([span[1]] if span is not None else [])], default=None)


def closings(
    level: Level, manifest: Manifest, now_closed: Mapping[str, int], boxes: Mapping[str, Places]
) -> dict[str, Closing]:
    """The windows that have been closed since the last batch, as far as there is anything in them."""
    found = _boxed(level, manifest, boxes)
    now_closed = {name: last for name, last in now_closed.items() if name not in boxes}
    for name, last in now_closed.items():
        window, before = level.stages[name].window, manifest.windows.closed.get(name)
        span = manifest.state.span(level.depth, level.axis(name))
        if last == before or span is None:
            continue
        first = window.first_wid(exact(span[0]))
        first = first if before is None else max(first, before + 1)
        first = max(first, manifest.windows.first.get(name, first))
        last = last if window.growing else min(last, _window_of(span[1], window) + 1)
        if first <= last:
            found[name] = Closing(first, last)
    return found


def _boxed(level: Level, manifest: Manifest, boxes: Mapping[str, Places]) -> dict[str, Closing]:
    """The groups that joint punctuation has closed, which may be some of those of a place."""
    closings = {}
    for name in level.aggregating.keys() & boxes.keys():
        now, before = boxes[name], read_places(manifest.windows.boxes).get(name, {})
        span = manifest.state.span(level.depth, level.axis(name))
        if span is not None and now != before:
            first, last = (_window_of(place, level.stages[name].window) for place in span)
            closings[name] = Closing(max(first, manifest.windows.first.get(name, first)), last, Box(now, before))
    return closings


def heard(level: Level, manifest: Manifest, punctuated: Punctuated) -> Manifest:
    """Takes note of how far the inputs of stages that keep tuples have come, which punctuates what they give."""
    told, idle = read_places(manifest.windows.told), frozenset(punctuated.idle)
    for name, stage in (level.joining | level.holding).items():
        inputs = []
        before, now = told.get(name, {}), Places()
        for side in kept_by(stage):
            come = reached(side.plan, punctuated.streams, idle)
            at = {a: furthest((before.get(a), come.on(a))) for a in side.attributes}
            now |= at
            inputs.append(replace(come, at={**come.at, **at}))
        told[name] = now
        assert stage.own is not None
        punctuated.streams[name] = joined_up(stage.own, inputs)
    told_now = {name: written_places(at) for name, at in told.items()}
    return replace(manifest, windows=replace(manifest.windows, told=told_now))


def kept_by(stage: Stage) -> Sequence[Side | Held]:
    """What a stage keeps tuples of: both sides of a join, the input of windows by tuple."""
    if stage.join is not None:
        return sides(stage.join)
    if stage.holds:
        assert isinstance(stage.own, Aggregate | Distinct)
        return [held(stage.own)]
    return []


def read_places(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Places]:
    return {name: {attribute: read(p) for attribute, p in at.items()} for name, at in told.items()}


def written_places(places: Places) -> dict[str, Any]:
    return {attribute: written(p) for attribute, p in places.items()}


def _window_of(place: float, window: OnAxis) -> int:
    """The last window that begins at this place or before."""
    return window.type.begun_at(exact(place))
