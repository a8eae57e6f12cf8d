"""The tuples of a batch that are left out for queries, and those that are not: by the same coins, places and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headgate.connect.scan import together
from headgate.incremental import reduce as ingest
from headgate.incremental.reduce import MALFORMED
from headgate.shed.estimate.sql import COIN, tossed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.connect.scan import Read
    from headgate.incremental.levels import Level
    from headgate.incremental.reduce import Watch
    from headgate.protocol.figures import Figures
    from headgate.shed.estimate.sql import Sampling


def kept(level: Level, stream: str, sampling: Sampling) -> dict[str, str]:
    """By query that tuples of a stream are left out for, on which condition one is not, as SQL.

    Only the flow's own streams are known as a whole: what is left out after a table is not counted.
    """
    sets = [s.query for s in level.passing_on.values() if stream in s.streams and s.query in sampling.rates]
    return ingest.kept(level.tables, stream, sampling) | {q: " AND ".join(sampling.taken(q)) for q in sets}


class LeftOut:
    """What is left out of the streams of a batch, by query."""

    def __init__(
        self,
        level: Level,
        sampling: Sampling,
        found: Mapping[str, Read],
        batches: Mapping[str, Sequence[DataFrame]],
    ) -> None:
        self.sampling, self._batches = sampling, batches
        self._kept = {stream: kept(level, stream, sampling) for stream in found}
        sampled = [stream for stream, queries in self._kept.items() if queries.keys() & sampling.rates.keys()]
        self.coined = {name: self._tossed(name, found[name], batches[name]) for name in sampled}
        """The tuples of streams that are sampled, in pieces, each with the coin that queries take it by, or not."""

    def _tossed(self, stream: str, own: Read, pieces: Sequence[DataFrame]) -> list[DataFrame]:
        seed = self.sampling.seed
        if own.pieces[0].df is not pieces[0]:  # They have got arrival numbers meanwhile.
            return [tossed(df, seed(stream, i)) for i, df in enumerate(pieces)]
        return [piece.tossed(seed(stream, i)) for i, piece in enumerate(own.pieces)]

    def of(self, query: str, batches: Mapping[str, Sequence[DataFrame]]) -> dict[str, Sequence[DataFrame]]:
        """The tuples of a batch without those that the coins leave out for a query that passes on the others."""
        found = dict(batches)
        for stream, pieces in self.coined.items():
            if query in self._kept[stream]:
                found[stream] = [df.where(self._kept[stream][query]).drop(COIN) for df in pieces]
        return found

    def counted(self, figures: Figures) -> dict[str, dict[str, int]]:
        """How many tuples of each stream are left out, by query; bad ones are no tuples."""
        found: dict[str, dict[str, int]] = {}
        for stream, queries in self._kept.items():
            own = figures.of(stream)
            for query in queries:
                found.setdefault(query, {})[stream] = own.rows - own.bad - own.kept.get(query, 0)
        return found

    def tuples(self, query: str, watch: Watch) -> DataFrame:
        """The tuples of a stream that are left out for a query."""
        df = together(self.coined.get(watch.stream, self._batches[watch.stream]))
        left_out = df.where(f"NOT ({watch.is_bad(df)}) AND NOT ({self._kept[watch.stream][query]})")
        return left_out.drop(COIN, MALFORMED)
