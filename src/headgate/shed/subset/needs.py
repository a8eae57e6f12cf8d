"""What kept windows need: from the dropped starts of a query's windows back to ranges of its input.

A query is its windows, in the order that tuples meet them. The answers of each carry the start of their window, which
is what the next one windows over. So everything is a question about ranges of one axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from headgate.windows import Number, Sliding

Range: TypeAlias = tuple[Number, Number]
"""The values from the first to just below the second."""


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Give the same values in as few ranges as possible, in order.

    >>> merged([(5, 7), (0, 2), (1, 3), (3, 4), (9, 9)])
    ((0, 4), (5, 7))
    """
    found: list[Range] = []
    for low, high in sorted(ranges):
        if low >= high:
            continue
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def without(holes: Sequence[Range], low: Number, high: Number) -> tuple[Range, ...]:
    """Give what is left of [low, high) without these ranges, which are in order and apart.

    >>> without([(2, 4), (7, 20)], 0, 10)
    ((0, 2), (4, 7))
    """
    found: list[Range] = []
    for first, past in holes:
        if low < min(first, high):
            found.append((low, min(first, high)))
        low = max(low, past)
    return (*found, (low, high)) if low < high else tuple(found)


def needed(windows: Sequence[Sliding], dropped: Sequence[Range], low: Number, high: Number) -> tuple[Range, ...]:
    """Give the ranges of the input within [low, high) that answers need, without windows that begin in `dropped`.

    Without windows, the axis is that of the answers themselves.

    >>> needed([Sliding(3, 3, "ts")], [(3, 9)], 0, 20)
    ((0, 3), (9, 20))
    >>> needed([Sliding(5, 3, "ts")], [(3, 9)], 0, 20)
    ((0, 5), (9, 20))
    >>> needed([Sliding(2, 1, "ts"), Sliding(3, 3, "window_start")], [(3, 9)], 0, 20)
    ((0, 4), (9, 20))
    """
    if not windows:
        return without(dropped, low, high)
    window, *later = windows
    first = (low - window.origin - window.range) // window.slide + 1
    past = first_window(window, high)
    if first >= past:
        return ()
    starts = needed(later, dropped, window.bounds(first)[0], window.bounds(past)[0])
    runs = merged((first_window(window, a), first_window(window, b)) for a, b in starts)
    covered = (extent for a, b in runs for extent in _extents(window, int(a), int(b)))
    return merged((max(low, a), min(high, b)) for a, b in covered)


def first_window(window: Sliding, place: Number) -> int:
    """The first window that begins at a place or after it."""
    return -((window.origin - place) // window.slide)


def _extents(window: Sliding, first: int, past: int) -> Iterable[Range]:
    """What a run of windows covers: one range, unless there is room between them."""
    if window.range >= window.slide:
        return [(window.bounds(first)[0], window.bounds(past - 1)[1])]
    return [window.bounds(k) for k in range(first, past)]
