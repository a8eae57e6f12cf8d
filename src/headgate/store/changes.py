"""Queries that come and go: what a manifest still has of those that are gone, and where those that are new begin."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.errors import StateError
from headgate.incremental.hold import HeldInRange, held
from headgate.plan.logical.nodes import ROW_NUM, Aggregate, Band, Distinct, Lookup, Node, SameWindow, Source
from headgate.progress import opened
from headgate.progress.place import read, written
from headgate.protocol.manifest import QueriesPart, WindowsPart
from headgate.sharing.layout import layout

_T = TypeVar("_T")
_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*'|`[^`]*`)")

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.plan.stream.feeds import Feed
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.protocol.manifest import Manifest
    from headgate.windows import Number

    Stages = Mapping[str, Stage]
    Columns = Mapping[str, Mapping[str, Mapping[str, str]]]


def without_dropped(
    manifest: Manifest,
    stages: Stages,
    texts: Mapping[str, str],
    columns: Columns,
    anew: Collection[str],
    checkpoint: str,
) -> Manifest:
    """The manifest without what it has of queries that are no more, or that begin anew."""
    known = {n: text_ for n, text_ in manifest.queries.texts.items() if n in texts}
    retyped = {query for query, *_ in _retyped(manifest, columns) if query in anew}
    other = [name for name, text_ in known.items() if _plain(text_) != _plain(texts[name])]
    changed = sorted({*other, *(known.keys() & retyped)})
    known = {name: text_ for name, text_ in known.items() if name not in changed}
    changed = [name for name in changed if name not in anew]
    if changed:
        raise StateError(
            f"the checkpoint {checkpoint} has another query of this name (see {', '.join(changed)}): give the"
            " new one a name of its own, or let it begin anew, flow.query(..., anew=True)"
        )
    kept = {n for n, s in stages.items() if s.query in known}
    tables = [{**t, "stages": [n for n in t["stages"] if n in kept]} for t in manifest.state.tables]
    own, windows, state = manifest.queries, manifest.windows, manifest.state
    return replace(
        manifest,
        queries=QueriesPart(known, _only(own.begun, known), _only(own.columns, known)),
        windows=WindowsPart(
            closed=_only(windows.closed, kept),
            first=_only(windows.first, kept),
            boxes=_only(windows.boxes, kept),
            told=_only(windows.told, kept),
            skipped=_only(windows.skipped, kept),
        ),
        state=replace(
            state,
            tables=[t for t in tables if t["stages"]],
            tuples=tuple(of for f in state.tuples if (of := f.of(kept)).spans),
        ),
        counters={what: _counts(counts, what, known) for what, counts in manifest.counters.items()},
    )


def _only(found: Mapping[str, _T], names: Collection[str]) -> dict[str, _T]:
    """The items of these names."""
    return {name: value for name, value in found.items() if name in names}


def _plain(text: str) -> str:
    """The text of a query as earlier versions wrote it, too: in other cases of letters, and UNION without ALL."""
    parts = _QUOTED.split(text)
    parts[::2] = [part.lower().replace("union all", "union") for part in parts[::2]]
    return "".join(parts)


def used_columns(queries: Mapping[str, Continuous]) -> dict[str, dict[str, dict[str, str]]]:
    """By query, the columns of each stream and table that it uses, with their types."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name, query in queries.items():
        own = {stage.name for stage in query.stages}
        sources = (source for stage in query.stages for source in _sources(stage.plan) if source.name not in own)
        for source in sources:
            found.setdefault(name, {}).setdefault(source.name, {}).update({c.name: c.type for c in source.columns})
    return found


def _sources(node: Node) -> list[Source]:
    if isinstance(node, Source):
        return [node]
    tables = (node.table,) if isinstance(node, Lookup) else ()
    return [source for below in (*node.inputs, *tables) for source in _sources(below)]


def _retyped(manifest: Manifest, columns: Columns) -> list[tuple[str, str, str, str, str]]:
    """The queries that know a column of a stream by another type: query, stream, column, the old type and the new."""
    return [
        (query, stream, column, was, type_)
        for query, streams in columns.items()
        for stream, own in streams.items()
        for column, type_ in own.items()
        if (was := manifest.queries.columns.get(query, {}).get(stream, {}).get(column, type_)) != type_
    ]


def check_columns(manifest: Manifest, columns: Columns, promised: Mapping[str, Any], path: str) -> None:
    """Raises an error if queries that go on would find their streams changed: state is of the types that it has."""
    if retyped := _retyped(manifest, columns):
        _, stream, column, was, now = retyped[0]
        users = ", ".join(query for query, *of in retyped if of == [stream, column, was, now])
        raise StateError(
            f"{stream}: column {column} is {was} in the checkpoint {path}, and now it is {now}: give it its old type,"
            f" or let what uses it ({users}) begin anew, flow.query(..., anew=True)"
        )
    for stream, rule in promised.items():
        before = manifest.progress.promised.get(stream, rule)
        if stream in manifest.progress.trackers and before != rule:
            (was, old), (now, new) = ((r["attr"], r["type"]) for r in (before, rule))
            raise StateError(
                f"stream {stream}: the checkpoint {path} has its progress on the column {was} ({old}), and now it is to"
                f" be on {now} ({new}): keep to that column and its type, give the stream another name, or start with a"
                " new checkpoint"
            )


def _counts(counts: Mapping[str, int], what: str, queries: Collection[str]) -> dict[str, int]:
    """What was counted by stream, and of what was counted by query, those that go on."""
    return {name: count for name, count in counts.items() if what in ("rows", "bad") or name in queries}


def with_added(manifest: Manifest, stages: Stages, texts: Mapping[str, str], levels: Sequence[Level]) -> Manifest:
    """The manifest with the queries of this loop. One that is new begins with its first whole window."""
    first = dict(manifest.windows.first)
    for name, stage in stages.items():
        new = manifest.batch >= 0 and stage.query not in manifest.queries.texts
        if not new or not isinstance(stage.own, Aggregate | Distinct):
            continue
        place = _latest(manifest, stages, first, stage, stage.feeds)
        if place is None:
            continue
        if not stage.holds:
            first[name] = stage.window.type.next_at(place)
        elif isinstance(side := held(stage.own), HeldInRange):
            first[name] = written(place + side.range)
    tables = [layout(table) for level in levels for table in level.tables]
    begun = {**dict.fromkeys(texts, manifest.batch + 1), **manifest.queries.begun}
    return replace(
        manifest,
        queries=replace(manifest.queries, texts=dict(texts), begun=begun),
        windows=replace(manifest.windows, first=first),
        state=replace(manifest.state, tables=tables),
    )


def _since(manifest: Manifest, stages: Stages, first: Mapping[str, Any], stage: Stage, feed: Feed) -> Number | None:
    """The place from which on a stage gets all tuples of a stream; None if it has always done so."""
    if feed.stream in stages:
        inner = stages[feed.stream]
        if inner.join is not None:
            # Both tuples of a pair have to be new, and they are as far apart as the window lets them be.
            since = _latest(manifest, stages, first, stage, inner.feeds)
            return None if since is None else since + max(_reach(c) for c in inner.join.conditions)
        if inner.looks_up:
            return _latest(manifest, stages, first, stage, inner.feeds)
        if inner.holds:
            whole = read(first.get(feed.stream))
            assert not isinstance(whole, float)
            return whole
        return opened(inner.window, first[feed.stream] - 1) if feed.stream in first else None
    if not stage.holds and stage.window.attr == ROW_NUM:
        return manifest.progress.numbered.get(feed.stream)
    highest = read(manifest.progress.highest.get(feed.stream))
    return None if highest is None or isinstance(highest, float) else highest + 1


def _latest(
    manifest: Manifest, stages: Stages, first: Mapping[str, Any], stage: Stage, feeds: Sequence[Feed]
) -> Number | None:
    """The place from which on a stage gets all tuples of several streams."""
    since = (_since(manifest, stages, first, stage, feed) for feed in feeds)
    return max((place for place in since if place is not None), default=None)


def _reach(condition: Band | SameWindow) -> Number:
    """How far apart the tuples of a pair may be."""
    return max(condition.before, condition.after) if isinstance(condition, Band) else condition.size
