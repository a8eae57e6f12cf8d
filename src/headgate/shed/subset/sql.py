"""The tuples that are left out with dropped windows and groups, as Spark SQL.

The numbers in these conditions change from batch to batch, and the conditions do not, so that Spark's code stays the
same. Only what is pushed down to a reader has plain numbers, which let it skip what it need not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from headgate.shed.subset.groups import GroupRange
from headgate.shed.subset.needs import Range
from headgate.sql.text import literal, moving
from headgate.windows.arithmetic import gcd

#: The most cells of a grid that are looked at. What lies before them is not left out.
_CELLS = 1 << 16
#: The most shares that hold in a batch: of more, the last ones. Before them, all groups are kept.
_SHARES = 3
#: The most ranges that are pushed down.
_PUSHED = 50
_HALF = 1 << 63


def outside(place: str, ranges: Sequence[Range]) -> str:
    """Whether there is a place outside of these ranges, which are in order.

    All ends of the ranges are on one grid, and a bit for each of its cells says whether it is in a range. So it
    takes as long for a thousand ranges as for one.
    """
    first, last = (ranges[0][0], ranges[-1][1]) if ranges else (0, 1)
    cell = reduce(gcd, (end - first for range_ in ranges for end in range_ if end > first), last - first)
    first = max(first, last - cell * _CELLS)
    words = [0] * -((first - last) // (64 * cell))
    for low, high in ranges:
        for k in range(max((low - first) // cell, 0), (high - first) // cell):
            words[k // 64] |= 1 << k % 64
    # As signed numbers, which is what Spark has.
    bits = ", ".join(f"{word - (word >> 63 << 64)}L" for word in words)
    begin, end = moving(first, place), moving(last, place)
    at = f"(({place} - {begin}) div {moving(cell, place)})"
    is_set = f"getbit(get(array({bits}), CAST(shiftright({at}, 6) AS INT)), CAST({at} & 63L AS INT)) = 1"
    return f"CASE WHEN {place} >= {begin} AND {place} < {end} THEN NOT {is_set} ELSE {place} IS NOT NULL END"


def threshold(share: float) -> int:
    """The number that the hashes of this share of the groups are below.

    >>> threshold(0.5), threshold(1.0) == 2 ** 63 - 1
    (0, True)
    """
    return min(round(share * 2 * _HALF) - _HALF, _HALF - 1)


def group_hash(keys: Sequence[str]) -> str:
    """The hash of a group."""
    return f"xxhash64({', '.join(keys)})"


def in_groups(place: str, keys: Sequence[str], pieces: Sequence[GroupRange]) -> str:
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
