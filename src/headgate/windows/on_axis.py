"""Windows on an axis: everything that follows from a window type and the attribute that it is over."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headgate.windows.axis import (
    ROW_NUM,
    counts_rows_of_partition,
    key_of,
    make_id,
    number_of,
    position,
    positions,
    sorted_ids,
)
from headgate.windows.category import Category

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.windows.axis import AxisId, Key, Number, Tuple
    from headgate.windows.sliding import Sliding
    from headgate.windows.type import WindowType


class OnAxis(ABC):
    """Windows of a type over an attribute. The id of a window is its number k, or (k, key) with a `partition`.

    Over "row_num" with a partition, each partition counts its own rows from 0.
    """

    __slots__ = ()
    by: ClassVar[Literal["axis"]] = "axis"
    """Windows lie on the axis by themselves, whatever tuples there are."""

    @property
    @abstractmethod
    def attr(self) -> str:
        """The attribute that windows are over."""

    @property
    @abstractmethod
    def partition(self) -> tuple[str, ...]:
        """The columns whose values have windows of their own."""

    @property
    @abstractmethod
    def type(self) -> WindowType:
        """How windows are put together from panes."""

    @property
    @abstractmethod
    def ends(self) -> tuple[object, ...]:
        """Which places windows end at: windows on one axis with equal `ends` have the same."""

    @property
    @abstractmethod
    def as_sliding(self) -> Sliding | None:
        """The same windows by range and slide, if all have one length."""

    @property
    def attribute(self) -> str:
        """The attribute that windows are over."""
        return self.attr

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that have a say in which windows a tuple is in, beside the partition."""
        return (self.attr,)

    @property
    def growing(self) -> bool:
        """Whether windows begin before all time."""
        return self.type.growing

    @property
    def holds(self) -> bool:
        """Whether the tuples themselves are needed: where each partition counts its own rows."""
        return counts_rows_of_partition(self.attr, self.partition)

    @property
    def whole(self) -> OnAxis:
        """The same windows over the stream as a whole, without a partition."""
        changed: Any = self
        return replace(changed, partition=()) if self.partition else self

    @property
    def category(self) -> Category:
        """What `wids` needs to know: the tuple alone; for the rows of a partition, the rows before it too.

        >>> from headgate.windows import Landmark, Sliding
        >>> Landmark(60, "ts").category, Sliding(10, 5, "row_num", partition=("src",)).category
        (<Category.CONTEXT_FREE: 'context free'>, <Category.FORWARD_CONTEXT_FREE: 'forward-context free'>)
        """
        return Category.FORWARD_CONTEXT_FREE if self.holds else Category.CONTEXT_FREE

    def first_wid(self, value: Number) -> int:
        """Give the number of the first window that may hold a value; one that grows holds all before its end.

        >>> from headgate.windows import Landmark
        >>> Landmark(60, "ts").first_wid(60), Landmark(60, "ts").first_wid(-1)
        (1, -1)
        """
        return self.type.windows(self.type.pane(value)).start

    def wid_range(self, value: Number) -> builtins.range:
        """Give the numbers k of the windows that hold a value; none in a gap. Of windows that grow, only the first.

        The form of thesis Eq. 5.3 for windows whose start, rather than end, is a multiple of the slide.

        >>> from headgate.windows import Sliding
        >>> Sliding(10, 5, "ts").wid_range(12), Sliding(2, 10, "ts").wid_range(5)
        (range(1, 3), range(1, 1))
        """
        return self.type.windows(self.type.pane(value))

    def bounds(self, w: AxisId) -> tuple[Number | None, Number]:
        """Give the first value of window `w`, None if it grows, and the first value past it.

        >>> from headgate.windows import Landmark
        >>> Landmark(60, "ts").bounds(1)
        (None, 120)
        """
        return self.type.bounds(number_of(w))

    def end(self, w: AxisId) -> Number:
        """Give the first value past window `w`."""
        return self.bounds(w)[1]

    def marks(self, w: AxisId) -> Number:
        """Give the value by which the answer of a window progresses: its start, or its end if it grows."""
        start, end = self.bounds(w)
        return end if start is None else start

    def answers_after(self, value: Number) -> Number | None:
        """Give where the first answer still to come is, once all tuples below a value have come.

        None where that cannot be told, as each partition goes on by itself.

        >>> from headgate.windows import Landmark, Sliding
        >>> Sliding(120, 60, "ts").answers_after(200), Landmark(60, "ts").answers_after(200)
        (120, 240)
        """
        return None if self.holds else self.marks(self.type.closed_at(value) + 1)

    def windows(self, tuples: Sequence[Tuple]) -> list[AxisId]:
        """Give the ids of the windows that hold at least one of the tuples, in order.

        Windows that grow are answered at every slide: a key's begin at its own first tuple, before which they are
        empty. They end with the whole stream, which goes on for a key that has fallen silent; only where each partition
        counts its own rows do they end with the key's last row.

        >>> from headgate.windows import Landmark, Sliding
        >>> Sliding(2, 10, "v").windows([{"v": 31}, {"v": 5}, {"v": 10}, {"v": None}])
        [1, 3]
        >>> Landmark(10, "v").windows([{"v": 31}, {"v": 5}, {"v": None}])
        [0, 1, 2, 3]
        """
        placed = positions(tuples, self.attr, self.partition)
        if not self.growing:
            ids = (make_id(k, key_of(t, self.partition)) for place, t in placed for k in self.wid_range(place))
            return sorted_ids(ids)
        steps: dict[Key, list[int]] = {}
        for place, t in placed:
            steps.setdefault(key_of(t, self.partition), []).append(self.first_wid(place))
        last = max((max(own) for own in steps.values()), default=0)
        return sorted_ids(
            make_id(k, key)
            for key, own in steps.items()
            for k in range(min(own), (max(own) if self.holds else last) + 1)
        )

    def extent(self, w: AxisId, tuples: Sequence[Tuple]) -> list[Tuple]:
        """Give the tuples of window `w` (thesis Eq. 5.2, 5.5, 5.8).

        >>> from headgate.windows import Landmark, Sliding
        >>> Sliding(10, 5, "v").extent(1, [{"v": 4}, {"v": 5}, {"v": 14}, {"v": 15}])
        [{'v': 5}, {'v': 14}]
        >>> Landmark(10, "v").extent(1, [{"v": 4}, {"v": 19}, {"v": 20}, {"v": -100}])
        [{'v': 4}, {'v': 19}, {'v': -100}]
        """
        start, end = self.bounds(w)
        return [
            t
            for place, t in positions(tuples, self.attr, self.partition)
            if (start is None or start <= place)
            and place < end
            and make_id(number_of(w), key_of(t, self.partition)) == w
        ]

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> list[AxisId]:
        """Give the ids of the windows that hold `t` (thesis Eq. 5.3, 5.6, 5.9): one that grows is in all later ones.

        >>> from headgate.windows import Landmark, Sliding
        >>> T = [{"src": "a", "row_num": 7}, {"src": None, "row_num": 8}, {"src": "a", "row_num": 9}]
        >>> Sliding(2, 1, "row_num", partition=("src",)).wids(T[2], T)
        [(0, ('a',)), (1, ('a',))]
        >>> Landmark(10, "v").wids({"v": 12}, [{"v": 31}, {"v": 5}, {"v": 12}])
        [1, 2, 3]
        """
        place = position(t, tuples, self.attr, self.partition)
        if place is None:
            return []
        key = key_of(t, self.partition)
        if not self.growing:
            return [make_id(k, key) for k in self.wid_range(place)]
        first = self.first_wid(place)
        later = (w for w in self.windows(tuples) if number_of(w) >= first)
        return [w for w in later if make_id(number_of(w), key) == w]

    def rows(self) -> str:
        """The unit of lengths, as the language writes it."""
        return " rows" if self.attr == ROW_NUM else ""
