"""What of a stream is read for the tables that do not need all of it: a sample, or tuples outside dropped windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.batch.exclusion import kept
from headgate.connect.files.footers import looked_at
from headgate.incremental.reduce import narrowed_tables, sampled_tables, taken_by_any
from headgate.protocol.figures import StreamFigures
from headgate.shed.estimate.sql import taken
from headgate.shed.live.ledgers import common
from headgate.shed.live.workload import sharing
from headgate.shed.subset.sql import pushed_down
from headgate.sql.text import bound, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.connect.scan import Read
    from headgate.incremental.levels import Level
    from headgate.incremental.reduce import Watch
    from headgate.shed.estimate.sql import Sampling


@dataclass(frozen=True)
class Sample:
    """The tuples of a stream that some tables do with, in pieces, by table."""

    pieces: Mapping[int, Sequence[DataFrame]]
    figures: StreamFigures | None = None
    """The figures of the stream as a whole, if they are known: then nothing else of it need be read."""


def shared_sample(level: Level, watch: Watch, own: Read, sampling: Sampling, until: ExitStack) -> Sample | None:
    """The samples of a stream that its tables need; one that tables share is held in memory until the batch is over."""
    rates = sampled_tables(level.tables, watch.stream, sampling)
    if not rates:
        return None
    shared = sharing(rates)
    figures = _known(level, watch, own, sampling, rates)
    pieces = {
        number: _pieces(own, watch, sampling, [taken(rate)]) for number, rate in rates.items() if number not in shared
    }
    if shared:
        # What is left out is counted by the largest sample: then it may not lack what no query asks for.
        those = [t for t in level.tables if t.number in shared]
        counts = figures is not None and shared == rates.keys()
        conditions = [taken(max(rates.values()))] if counts else taken_by_any(those, watch.stream, sampling)
        held = _pieces(own, watch, sampling, conditions)
        for piece in held:
            piece.persist()
            until.callback(piece.unpersist)
        pieces |= dict.fromkeys(shared, held)
    return Sample(pieces, figures)


def only_figures(level: Level, watch: Watch, own: Read, sampling: Sampling) -> Sample | None:
    """Nothing of a stream that no table reads, where footers tell its figures."""
    if any(table.reads(watch.stream) for table in level.tables):
        return None
    figures = _known(level, watch, own, sampling, {})
    return Sample({}, figures) if figures is not None else None


def _pieces(own: Read, watch: Watch, sampling: Sampling, conditions: Sequence[str]) -> list[DataFrame]:
    return [piece.sample(sampling.seed(watch.stream, i), conditions) for i, piece in enumerate(own.pieces)]


def _known(
    level: Level, watch: Watch, own: Read, sampling: Sampling, rates: Mapping[int, float]
) -> StreamFigures | None:
    """The figures of a stream by the footers of its files, if they tell all, and its sample the rest.

    `rates` are those of the tables that are sampled.
    """
    plain = watch.attribute is not None and not (
        watch.by or watch.punctuated_by or watch.ranked or watch.marked or watch.numbered
    )
    counted = kept(level, watch.stream, sampling)
    by_coin = all(sampling.rates.get(query, 2.0) <= max(rates.values(), default=0.0) for query in counted)
    places = any(query in sampling.dropped or query in sampling.groups for query in counted)
    whole = any(table.reads(watch.stream) and table.number not in rates for table in level.tables)
    if not own.files or not plain or not by_coin or places or whole:
        return None
    assert watch.attribute is not None
    looked = looked_at(own.files, watch.attribute)
    if looked is None:
        return None
    return StreamFigures(looked.rows, looked.bad, looked.lowest, looked.highest)


def narrowed(level: Level, watch: Watch, frame: DataFrame, own: Read, sampling: Sampling) -> Sample | None:
    """The tuples of a stream without those that nobody needs, if all that read it drop windows."""
    queries = narrowed_tables(level.tables, watch.stream, sampling)
    unneeded = common([sampling.dropped[q] for names in queries.values() for q in names]) if queries else ()
    if not unneeded or watch.attribute is None:
        return None
    where = pushed_down(quoted(watch.attribute), unneeded, bound(frame, watch.attribute, "{}"))
    return Sample(dict.fromkeys(queries, tuple(piece.where(where) for piece in own.pieces)))
