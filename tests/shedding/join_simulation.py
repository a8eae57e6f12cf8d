"""Two streams, tuple by tuple, and what a join with shedding makes of them: the yardstick of the formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headgate.shed.join.cost import JoinCosts, JoinShares, Outcome

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Stream:
    """Tuples in the order of their times, each with the number of its key."""

    ts: Floats
    key: Ints

    def where(self, which: Bools) -> Stream:
        return Stream(self.ts[which], self.key[which])


def zipf(keys: int, exponent: float = 1.0) -> Floats:
    """The frequencies of keys, of which the first is the most frequent."""
    frequencies = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    return np.asarray(frequencies / frequencies.sum())


def poisson(rng: np.random.Generator, rates: Floats, seconds: float) -> Stream:
    """A stream in which each key comes at a rate of its own."""
    counts = rng.poisson(rates * seconds)
    ts = rng.uniform(0, seconds, counts.sum())
    order = np.argsort(ts)
    return Stream(ts[order], np.repeat(np.arange(len(rates)), counts)[order])


def partners(of: Stream, among: Stream, window: float, *, closed: bool) -> Ints:
    """How many of `among` were there for each of `of` that came no more than `window` before it.

    `closed` says that an age of the whole window still counts, and none of zero: so it is for right tuples.
    """
    span = 4 * (window + max(of.ts[-1], among.ts[-1]))
    places = np.sort(among.key * span + among.ts)
    later = of.key * span + of.ts
    side: Literal["left", "right"] = "left" if closed else "right"
    return np.asarray(np.searchsorted(places, later, side) - np.searchsorted(places, later - window, side))


def shed_join(
    rng: np.random.Generator,
    left: Stream,
    right: Stream,
    windows: tuple[float, float],
    shares: Callable[[int], JoinShares],
    costs: JoinCosts,
) -> Outcome:
    """What a second of the join gives and costs, once the windows are full; a tuple has one coin for all it does."""
    start, end = max(windows), max(left.ts[-1], right.ts[-1])
    of_key = [shares(key) for key in range(1 + max(left.key.max(), right.key.max()))]

    def taken(stream: Stream, inserted: list[float], probing: list[float]) -> tuple[Stream, Stream]:
        coin = rng.random(len(stream.ts))
        return (
            stream.where(coin < np.array(inserted)[stream.key]),
            stream.where((coin < np.array(probing)[stream.key]) & (stream.ts >= start)),
        )

    kept_left, probing_left = taken(left, [s.insert_left for s in of_key], [s.probe_left for s in of_key])
    kept_right, probing_right = taken(right, [s.insert_right for s in of_key], [s.probe_right for s in of_key])
    found = 0
    if len(kept_left.ts) and len(probing_right.ts):
        found += int(partners(probing_right, kept_left, windows[0], closed=False).sum())
    if len(kept_right.ts) and len(probing_left.ts):
        found += int(partners(probing_left, kept_right, windows[1], closed=True).sum())
    kept = int((kept_left.ts >= start).sum() + (kept_right.ts >= start).sum())
    seconds = end - start
    return Outcome(found / seconds, (kept * costs.update + found * costs.result) / seconds)
