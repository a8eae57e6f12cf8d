"""Landmark windows: each holds everything from the beginning up to its end, which moves by the slide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.windows.axis import (
    ROW_NUM,
    check_length,
    counts_rows_of_partition,
    key_of,
    make_id,
    number_of,
    position,
    positions,
    sorted_ids,
    tail,
)
from headgate.windows.category import Category

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.windows.axis import AxisId, Key, Number, Tuple


@dataclass(frozen=True, slots=True)
class Landmark:
    """The window that only grows: id k holds everything before origin + (k+1)*slide.

    >>> growing = Landmark(slide=60, attr="ts")
    >>> T = [{"ts": 5}, {"ts": 130}]
    >>> [(k, len(growing.extent(k, T))) for k in growing.windows(T)]
    [(0, 1), (1, 1), (2, 2)]
    """

    slide: Number
    attr: str
    origin: Number = 0
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_length("SLIDE", self.slide, self.attr)

    @property
    def category(self) -> Category:
        """What `wids` needs to know, as for `Sliding`.

        >>> Landmark(60, "ts").category
        <Category.CONTEXT_FREE: 'context free'>
        """
        if counts_rows_of_partition(self.attr, self.partition):
            return Category.FORWARD_CONTEXT_FREE
        return Category.CONTEXT_FREE

    def first_wid(self, value: Number) -> int:
        """Give the number of the first window that holds a value; all later ones hold it too.

        >>> Landmark(60, "ts").first_wid(60), Landmark(60, "ts").first_wid(-1)
        (1, -1)
        """
        return (value - self.origin) // self.slide

    def bounds(self, w: AxisId) -> tuple[None, Number]:
        """Give None, since a landmark window has no start, and the first value past window `w`.

        >>> Landmark(60, "ts").bounds(1)
        (None, 120)
        """
        return None, self.origin + (number_of(w) + 1) * self.slide

    def windows(self, tuples: Sequence[Tuple]) -> list[AxisId]:
        """Give every id from the slide that the first tuple falls into to that of the last, in order.

        A key's windows begin at its own first tuple, before which they are empty. They end with the whole
        stream, which goes on for a key that has fallen silent; only where each partition counts its own
        rows do they end with the key's last row.

        >>> Landmark(10, "v").windows([{"v": 31}, {"v": 5}, {"v": None}])
        [0, 1, 2, 3]
        >>> T = [{"v": 5, "src": "a"}, {"v": 15, "src": "b"}, {"v": 25, "src": "b"}]
        >>> Landmark(10, "v", partition=("src",)).windows(T)
        [(0, ('a',)), (1, ('a',)), (1, ('b',)), (2, ('a',)), (2, ('b',))]
        """
        slides: dict[Key, list[int]] = {}
        for place, t in positions(tuples, self.attr, self.partition):
            slides.setdefault(key_of(t, self.partition), []).append(self.first_wid(place))
        last_of_stream = max((max(own) for own in slides.values()), default=0)
        ids: list[AxisId] = []
        for key, own in slides.items():
            last = max(own) if counts_rows_of_partition(self.attr, self.partition) else last_of_stream
            ids += [make_id(k, key) for k in range(min(own), last + 1)]
        return sorted_ids(ids)

    def extent(self, w: AxisId, tuples: Sequence[Tuple]) -> list[Tuple]:
        """Give the tuples of window `w` (thesis Eq. 5.8).

        >>> Landmark(10, "v").extent(1, [{"v": 4}, {"v": 19}, {"v": 20}, {"v": -100}])
        [{'v': 4}, {'v': 19}, {'v': -100}]
        """
        _, end = self.bounds(w)
        return [
            t
            for place, t in positions(tuples, self.attr, self.partition)
            if place < end and make_id(number_of(w), key_of(t, self.partition)) == w
        ]

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> list[AxisId]:
        """Give the ids of the windows that hold `t` (thesis Eq. 5.9): from its own slide on.

        >>> T = [{"v": 31}, {"v": 5}, {"v": 12}]
        >>> Landmark(10, "v").wids(T[2], T)
        [1, 2, 3]
        """
        place = position(t, tuples, self.attr, self.partition)
        if place is None:
            return []
        first, key = self.first_wid(place), key_of(t, self.partition)
        later = (w for w in self.windows(tuples) if number_of(w) >= first)
        return [w for w in later if make_id(number_of(w), key) == w]

    def __str__(self) -> str:
        """Give the specification as the language writes it.

        >>> str(Landmark(60, "ts"))
        '[RANGE ALL, SLIDE 60, WA ts]'
        """
        unit = " rows" if self.attr == ROW_NUM else ""
        parts = ["RANGE ALL", f"SLIDE {self.slide}{unit}", f"WA {self.attr}"]
        return f"[{', '.join(parts + tail(self.origin, self.partition))}]"
