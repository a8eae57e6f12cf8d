"""Which kept tuples of a join to let go when there is no room for all."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

from headgate.errors import FlowError
from headgate.shed.join.keys import KeyLoads


@dataclass(frozen=True)
class Kept:
    """A kept tuple: its key, its side, and for how many more seconds it can meet others."""

    key: Hashable
    side: Literal["left", "right"]
    remaining: float


#: So many classes of keys are told apart by their worth.
_CLASSES = 8


@dataclass(frozen=True)
class Worth:
    """What it is worth to keep a tuple of a side: by classes of known keys, and for all others."""

    known: tuple[tuple[float, tuple[int, ...]], ...]
    others: float


def worth(loads: KeyLoads, side: Literal["left", "right"]) -> Worth:
    """What it is worth to keep the tuples of a side: the partners that come for one in a batch.

    >>> from headgate.shed.join.keys import KeyRates, key_loads
    >>> worth(key_loads(KeyRates(9, {1: 8, 2: 1}), KeyRates(3, {1: 1, 2: 2}), 10, 10, keys=2), "left")
    Worth(known=((2.0, (2,)), (1.0, (1,))), others=0.0)
    """
    *own, others = loads.coming[:, 0 if side == "left" else 1].tolist()
    known = sorted(((w, key) for w, key in zip(own, loads.keys, strict=True) if isinstance(key, int)), reverse=True)
    size = max(1, -(-len(known) // _CLASSES))
    classes = (known[i : i + size] for i in range(0, len(known), size))
    alike = tuple((sum(w for w, _ in own) / len(own), tuple(key for _, key in own)) for own in classes)
    return Worth(alike, others)


def evicted(kept: Iterable[Kept], loads: KeyLoads, max_state: int) -> list[Kept]:
    """The kept tuples to let go so that no more than `max_state` are left, the least useful first.

    A place in the state is worth the partners a second that come for the tuple in it. How long the tuple could stay
    decides only between equals: once it is gone, another takes its place.

    >>> from headgate.shed.join.keys import KeyRates, key_loads
    >>> loads = key_loads(KeyRates(9, {"a": 8, "b": 1}), KeyRates(3, {"a": 1, "b": 2}), 10, 10, keys=2)
    >>> evicted([Kept("a", "left", 9), Kept("a", "right", 3), Kept("b", "left", 1)], loads, max_state=1)
    [Kept(key='a', side='left', remaining=9), Kept(key='b', side='left', remaining=1)]
    """
    if max_state < 0:
        raise FlowError(f"max_state={max_state}: give a number of tuples, zero or more")
    tuples = list(kept)

    def worth(one: Kept) -> tuple[float, float]:
        if one.key is None or one.remaining <= 0:
            return 0.0, 0.0
        load = loads.known.get(one.key, loads.others)
        return load.selectivity * (load.right_rate if one.side == "left" else load.left_rate), one.remaining

    return heapq.nsmallest(len(tuples) - max_state, tuples, key=worth)
