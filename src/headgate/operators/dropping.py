"""Windows and groups that are dropped: which tuples are left out for that, as Spark SQL.

The numbers in these conditions change from batch to batch, and the conditions do not, so that Spark's code stays the
same. Only what is pushed down to a reader has plain numbers, which let it skip what it need not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.operators.sql import literal, moving
from headgate.shedding.subset_groups import Piece
from headgate.shedding.subset_needs import Range

#: So many ranges are left out in a batch at most: of more, the last ones.
_RANGES = 4
#: So many shares hold in a batch at most: of more, the last ones, and before them all groups are kept.
_SHARES = 3
#: So many ranges are pushed down at most.
_PUSHED = 50
_HALF = 1 << 63


def outside(place: str, ranges: Sequence[Range]) -> str:
    """Whether a place is in none of some ranges, in order."""
    used = list(ranges[-_RANGES:])
    used += [(0, 0)] * (_RANGES - len(used))
    met = [f"{place} >= {moving(low, place)} AND {place} < {moving(high, place)}" for low, high in used]
    return f"NOT ({' OR '.join(f'({m})' for m in met)})"


def threshold(share: float) -> int:
    """The number below which the hashes of so many groups are.

    >>> threshold(0.5), threshold(1.0) == 2 ** 63 - 1
    (0, True)
    """
    return min(round(share * 2 * _HALF) - _HALF, _HALF - 1)


def group_hash(keys: Sequence[str]) -> str:
    """The hash of a group."""
    return f"xxhash64({', '.join(keys)})"


def in_groups(place: str, keys: Sequence[str], pieces: Sequence[Piece]) -> str:
    """Whether the group of a tuple is kept at its place."""
    used = list(pieces[-_SHARES:])
    used = [*used, *([used[-1]] * (_SHARES - len(used)))]
    first = used[0]
    below = " ".join(f"WHEN {place} < {moving(p.high, place)} THEN {moving(threshold(p.share), place)}" for p in used)
    shares = f"CASE WHEN {place} < {moving(first.low, place)} THEN {_HALF - 1}L {below} ELSE {_HALF - 1}L END"
    return f"{group_hash(keys)} <= {shares}"


def pushed_down(attribute: str, ranges: Sequence[Range], bound: str) -> str:
    """The same as `outside` for a reader: `bound` makes a value of the attribute from a place."""
    apart = [
        f"({attribute} < {bound.format(literal(low))} OR {attribute} >= {bound.format(literal(high))})"
        for low, high in ranges[-_PUSHED:]
    ]
    return " AND ".join([f"{attribute} IS NOT NULL", *apart])
