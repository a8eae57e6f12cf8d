"""Ingest: the tuples of a level are reduced to partial rows, in one job, which also tells how far they got."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation

from headgate.batch.context import Context
from headgate.batch.exclusion import kept
from headgate.incremental.reduce import (
    FIGURES_OBSERVED,
    GROUP,
    NO_TABLE,
    RANKED,
    TABLE,
    Watch,
    figure,
    ingested,
    kept_figure,
    observation,
    partial_rows,
)
from headgate.progress import Seen
from headgate.progress.place import from_spark
from headgate.protocol import transitions
from headgate.protocol.figures import Figures, StreamFigures
from headgate.store.faults import reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.connect.scan import Batches
    from headgate.windows import Number


def ingest(context: Context) -> Context:
    """Adds the partial rows of the level's tuples to the state, and what is found out about streams to the figures."""
    level, known = context.work.level, context.figures
    told = {s: own.figures for s, own in context.work.samples.items() if own.figures is not None}
    watches = watched(context)
    if not watches:
        return _figured(context, Figures(told))
    batches = coined(context)
    lateness, before = context.program.lateness, context.before
    closed_before = lateness.closed_before(before)
    late = closed_before if lateness.any_of(before, batches, known) else {}
    found, spans = _ingested(context, batches, watches, late)
    found = _with_told(found, told)
    if not late and lateness.any_of(before, batches, found):
        # Rare, so it may cost a second pass.
        again, spans = _ingested(context, batches, watches, closed_before)
        found = _with_told(again, told)
    reach("ingested")
    context = _figured(context, _with_groups(context, found, watches))
    if not found.panes:
        return context
    files = context.running.stored.state.written(context.number, level.depth, spans, found.panes)
    return replace(context, manifest=transitions.ingested(context.manifest, files))


def watched(context: Context) -> list[Watch]:
    """What to look for in the streams of the level that the batch has tuples of."""
    level, sampling = context.work.level, context.work.sampling
    known = {stream for stream, own in context.work.samples.items() if own.figures is not None}
    found = [
        replace(w, kept=kept(level, w.stream, sampling), known=w.stream in known)
        for w in level.watches
        if w.stream in context.input.streams
    ]
    return [w for w in found if (w.figures and (w.kept or not w.known)) or level.reduces(w.stream)]


def coined(context: Context) -> Batches:
    """The tuples of the level, those of sampled streams with their coins."""
    streams, work = context.input.streams, context.work
    return {**streams, **context.input.left_out.coined} if work.sampling.rates else streams


def rows_of(context: Context, batches: Batches, watches: Sequence[Watch], late: Mapping[str, Number]) -> DataFrame:
    """The partial rows of the level, with the figures of the streams beside them."""
    work = context.work
    pieces = {stream: own.pieces for stream, own in work.samples.items()}
    return ingested(batches, work.level.tables, watches, late, work.sampling, pieces)


def _ingested(
    context: Context, batches: Batches, watches: Sequence[Watch], late: Mapping[str, Number]
) -> tuple[Figures, dict[str, tuple[float, float]]]:
    level, state = context.work.level, context.running.stored.state
    rows = rows_of(context, batches, watches, late)
    columns = level.columns(rows, frozenset(w.stream for w in watches))
    axes = level.axes if any(level.reduces(stream) for stream in batches) else {}
    sums = context.running.shedding.sums() if axes and level.depth == 0 else {}
    observed = Observation()
    watched_rows = rows.observe(observed, observation(watches, list(axes.values()), sums))
    to_keep = partial_rows(watched_rows, columns)
    if to_keep is None:
        watched_rows.write.format("noop").mode("overwrite").save()
    else:
        state.write(to_keep, context.number, level.depth)
    found = observed.get[FIGURES_OBSERVED].asDict()
    ends = {axis: (found.get(f"first_{i}"), found.get(f"last_{i}")) for i, axis in enumerate(axes)}
    spans = {axis: (first, last) for axis, (first, last) in ends.items() if first is not None and last is not None}
    streams = {w.stream: _stream(w, found) for w in watches if w.figures}
    figures = Figures(streams, found.get("panes") or 0, {name: float(found.get(name) or 0) for name in sums})
    return figures, spans


def _stream(watch: Watch, found: Mapping[str, Any]) -> StreamFigures:
    """The figures of a stream, out of what was observed."""

    def told(name: str) -> Any:
        return found.get(figure(watch.stream, name))

    return StreamFigures(
        rows=told("rows") or 0,
        bad=told("bad") or 0,
        lowest=from_spark(told("lowest")),
        highest=from_spark(told("highest")),
        punctuated=from_spark(told("punctuated")),
        numbered=told("numbered") or 0,
        ranked=_places(told(RANKED)),
        kept={query: told(kept_figure(query)) or 0 for query in watch.kept},
    )


def _places(ranked: Iterable[Any] | None) -> list[Number]:
    """The places at ranks, of those that there are."""
    return [p for place in ranked or () if (p := from_spark(place)) is not None]


def _with_told(found: Figures, told: Mapping[str, StreamFigures]) -> Figures:
    """The figures with those that footers have told; what is left out was counted all the same."""
    streams = {s: replace(own, kept=found.of(s).kept) for s, own in told.items()}
    return replace(found, streams={**found.streams, **streams})


def _figured(context: Context, found: Figures) -> Context:
    """The context with the figures that the level has found out."""
    context = context.with_work(figured=frozenset(found.streams))
    return replace(context, figures=context.figures.joined(found))


def _with_groups(context: Context, found: Figures, watches: Sequence[Watch]) -> Figures:
    """The figures with how far each group got, for the streams that keep progress by group."""
    if all(w.by is None or not w.figures for w in watches):
        return found
    state = context.running.stored.state.of_batch(context.number, context.work.level.depth)
    streams = dict(found.streams)
    for row in state.where(f"{TABLE} = {NO_TABLE}").collect():
        highest, punctuated = (from_spark(row[f"{GROUP}_{name}"]) for name in ("highest", "punctuated"))
        ranked = _places(row.asDict().get(f"{GROUP}_{RANKED}"))
        seen = Seen(row[f"{GROUP}_rows"] or 0, highest, punctuated, ranked)
        own = streams[row[f"{GROUP}_stream"]]
        streams[row[f"{GROUP}_stream"]] = replace(own, groups={**own.groups, row[GROUP]: seen})
    return replace(found, streams=streams)
