"""Window drop as its authors have it: tuples carry the fates, and aggregates read them. It is only a yardstick.

After Tatbul and Zdonik, Window-aware load shedding. The drop operator marks where each unit of the input begins, and
drops tuples that no kept unit reaches. An aggregate opens only windows that a mark allows, and passes marks on to the
next one. If the tuple of a mark is gone, or never was, a fake tuple carries the mark. Times are whole numbers from 0
on, and streams are in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headgate.windows import Sliding

UNMARKED, DISALLOWED = -1, 0
"""Marks that allow no window. Any other mark is the time up to which the tuples of its window have to be kept."""


@dataclass(frozen=True)
class Marked:
    """A tuple with its mark. A fake tuple has only the mark."""

    time: int
    value: Any = None
    mark: int = UNMARKED
    fake: bool = False


def window_drop(tuples: Sequence[Marked], grid: Sliding, end: int, kept: Callable[[int], bool]) -> list[Marked]:
    """Give the tuples below `end`, marked with the fates of units, without those that no kept unit reaches.

    >>> stream = window_drop([Marked(t, t) for t in range(9)], Sliding(4, 3, "ts"), 9, kept=lambda start: start != 3)
    >>> [(t.time, t.mark) for t in stream]
    [(0, 4), (1, -1), (2, -1), (3, 0), (6, 10), (7, -1), (8, -1)]
    """
    given: list[Marked] = []
    keep_until = 0
    for time in range(end):
        mark = UNMARKED
        if _begins(grid, time):
            mark = time + int(grid.range) if kept(time) else DISALLOWED
        keep_until = max(keep_until, mark)
        given += _carried(time, mark, [t for t in tuples if t.time == time and time < keep_until])
    return given


def select(tuples: Sequence[Marked], predicate: Callable[[Any], bool]) -> list[Marked]:
    """Give the tuples for which a predicate holds, and fake ones for the marks of the others.

    >>> select([Marked(1, "a", mark=5), Marked(2, "b")], lambda value: value == "b")
    [Marked(time=1, value=None, mark=5, fake=True), Marked(time=2, value='b', mark=-1, fake=False)]
    """
    passed = [t if t.fake or predicate(t.value) else Marked(t.time, mark=t.mark, fake=True) for t in tuples]
    return [t for t in passed if not t.fake or t.mark != UNMARKED]


def aggregate(
    tuples: Sequence[Marked],
    window: Sliding,
    function: Callable[[list[Any]], Any],
    end: int,
    *,
    as_printed: bool = False,
) -> list[Marked]:
    """Give the answers of the allowed windows that end at `end` or before, and fake tuples for the other marks.

    A window without a mark, or with one that disallows it, is opened only if it begins where an allowed unit of a
    later aggregate may need it. The rules as printed then also move that place on to the end of the window. That
    opens windows whose tuples are dropped, so it is left out here. A test shows what would happen.

    >>> stream = window_drop([Marked(t, t) for t in range(9)], Sliding(3, 3, "ts"), 9, kept=lambda start: start != 3)
    >>> [(t.time, t.value) for t in aggregate(stream, Sliding(3, 3, "ts"), sum, end=9) if not t.fake]
    [(0, 3), (6, 21)]
    """
    length = int(window.range)
    given: list[Marked] = []
    keep_until = 0
    for time in range(end):
        mark = max((t.mark for t in tuples if t.time == time), default=UNMARKED)
        opens = _begins(window, time) and (mark > DISALLOWED or time < keep_until)
        if mark > DISALLOWED:
            keep_until = mark = mark - (length - 1)
        elif opens and as_printed:
            keep_until = max(keep_until, time + length)
        values = [t.value for t in tuples if time <= t.time < time + length and not t.fake]
        answers = [Marked(time, function(values))] if opens and values and time + length <= end else []
        given += _carried(time, mark, answers)
    return given


def _begins(window: Sliding, time: int) -> bool:
    return (time - window.origin) % window.slide == 0


def _carried(time: int, mark: int, tuples: Sequence[Marked]) -> list[Marked]:
    """The tuples of one time, the first of them with the mark. Without any, a fake tuple carries it."""
    if tuples:
        return [replace(tuples[0], mark=mark), *tuples[1:]]
    return [Marked(time, mark=mark, fake=True)] if mark != UNMARKED else []
