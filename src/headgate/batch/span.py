"""Where the tuples of a batch are, before it is read, for queries that drop windows before they begin."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from headgate.connect.files.footers import looked_at
from headgate.connect.scan import sound
from headgate.progress.place import from_spark
from headgate.shed.live.ledgers import Axis, Spans, Subsets, come
from headgate.sql.text import position

if TYPE_CHECKING:
    from headgate.connect.scan import Read
    from headgate.incremental.reduce import Watch
    from headgate.protocol.manifest import Manifest
    from headgate.windows import Number


class BatchSpan:
    """Follows how far streams go on in a batch."""

    def __init__(self, watches: Mapping[str, Watch]) -> None:
        self._watches = watches
        self._advances: dict[Axis, Number] = {}

    def spans(self, found: Mapping[str, Read], subsets: Subsets, manifest: Manifest, live: bool) -> Spans:
        """The first and the last place of a batch, by what queries drop windows by.

        In a stream that is followed `live` they are about as far on as those of the last batch were; else it takes a
        look at them.
        """
        spans: dict[Axis, tuple[Number, Number]] = {}
        for axis in {a for name in subsets.names for a in subsets.axes(name)}:
            name, counted = axis
            last, ahead = come(manifest, axis), self._advances.get(axis)
            if name not in found:
                continue
            if last is not None and ahead is not None and live:
                spans[axis] = (last, last + 2 * ahead)
                continue
            low, high = _ends(found[name], self._watches[name], counted)
            if low is not None and high is not None:
                before = (last or 0) if counted else 0
                spans[axis] = (low + before, high + before)
        return spans

    def advance(self, subsets: Subsets, before: Manifest, now: Manifest) -> None:
        """Takes note of how far streams went on with a batch; by the furthest of the last few, as batches differ."""
        for name in subsets.names:
            for axis in subsets.axes(name):
                start, end = come(before, axis), come(now, axis)
                if start is not None and end is not None:
                    self._advances[axis] = max(end - start, self._advances.get(axis, 0) / Fraction(2))


def _ends(own: Read, watch: Watch, counted: bool) -> tuple[Number | None, Number | None]:
    """Where the first and the last tuple of a stream in a batch are, or are counted; footers may tell it."""
    looked = looked_at(own.files, watch.attribute) if own.files and watch.attribute else None
    if looked is not None:
        first = 0 if looked.rows else None
        return (first, looked.rows - 1) if counted else (looked.lowest, looked.highest)
    pieces = [piece.df for piece in own.pieces]
    df = sound(pieces, watch.is_good(pieces[0]))
    place = position(df, watch.attribute) if watch.attribute and not counted else None
    ends = df.selectExpr(f"min({place})" if place else "min(0L)", f"max({place})" if place else "count(*) - 1").first()
    assert ends is not None
    low, high = map(from_spark, ends)
    return low, high
