"""The coins that decide which pairs of a join are in a uniform random sample of it.

Every coin is a function of what is known of the tuples, so the sample is the same in any order and any batching, and no
pair is more likely than another. There are two kinds:

- *by pairs*. Each tuple has a place on a circle, the hash of its identity, and a pair is in the sample if the sum of
  its places falls into the first part of the circle. Any two pairs are independent: at least one place is not in both.
  For a given tuple the partners are those on an arc, so tuples meet by key and bucket of the circle, and most pairs
  that are not in the sample are never looked at. But each tuple has to be kept: some partner may come from its arc.
- *by slots*. A tuple has a number of slots, with a coin for each, the hash of its identity and the slot's number. The
  time for which it is kept is cut into a few parts, each with as many slots as the others. A pair is in the sample if
  the coin of its earlier tuple says so, for one of the slots of the age at which the later one comes: which one is the
  later one's hash, so that those who come all at once do not share a coin. A tuple without a success is never kept, one
  with some is let go after the last one, which is drawn first. So there may be any number of slots. But partners in the
  same slot share a coin, which widens the variance of a count by the mean number of partners in a slot.

By slots, a tuple has to be kept all the same until no earlier one of the other side can come: that one has the coin.
"""

from __future__ import annotations

import math

import numpy as np

from headgate.errors import FlowError
from headgate.shed.join.keys import Floats

#: Places are whole numbers from 0 to this: a hash modulo CIRCLE. Whole, so that all who ask get the same answer.
CIRCLE = 1 << 32
#: Into so many parts the time is cut at most for which a tuple is kept.
PARTS = 8
#: Above this, more buckets save nothing.
_BUCKETS = 1 << 20


def in_sample(left: int, right: int, rate: float) -> bool:
    """Whether a pair is in the sample, by the places of its tuples.

    >>> in_sample(CIRCLE - 5, 5 + CIRCLE // 10, rate=0.2), in_sample(5, 5 + CIRCLE // 5, rate=0.2)
    (True, False)
    """
    return (left + right) % CIRCLE < success(rate)


def buckets(rate: float) -> int:
    """The number of buckets of the circle, none shorter than an arc."""
    return min(_BUCKETS, CIRCLE // max(1, success(rate)))


def bucket(right: int, rate: float) -> int:
    """The bucket that a right tuple lies in."""
    return right * buckets(rate) // CIRCLE


def buckets_met(left: int, rate: float) -> tuple[int, ...]:
    """The one or two buckets in which the partners of a left tuple lie.

    >>> buckets(0.3), buckets_met(0, 0.3), buckets_met(5, 0.3)
    (3, (0,), (2, 0))
    """
    first = bucket(-left % CIRCLE, rate)
    last = bucket((success(rate) - 1 - left) % CIRCLE, rate)
    return (first,) if first == last else (first, last)


def slots(partners: Floats, spread: float) -> Floats:
    """The number of slots that keeps the variance within `spread` times that of independent pairs.

    >>> slots(np.array([2.2, 2, 0.1]), spread=1.25).tolist()
    [16.0, 8.0, 1.0]
    """
    if not spread > 1:
        raise FlowError(f"spread={spread}: give how much wider the variance may be, more than 1: slots share coins")
    needed = np.maximum(1.0, np.ceil(partners / (spread - 1)))
    return np.where(needed > PARTS, PARTS * np.ceil(needed / PARTS), needed)


def each_part(cut: int) -> int:
    """How many slots a tuple has in each part of the time.

    >>> [each_part(cut) for cut in (5, 8, 24)]
    [1, 1, 3]
    """
    return max(cut // PARTS, 1)


def last_slot(place: int, rate: float, cut: int) -> int:
    """The last slot of a tuple with a success, by a place on the circle; -1 for a tuple without one.

    How many coins say no, from the last one back, is what it takes a coin to say yes.

    >>> last_slot(CIRCLE - 1, rate=0.5, cut=4), last_slot(CIRCLE // 4, rate=0.5, cut=4), last_slot(0, rate=0.5, cut=4)
    (3, 2, -1)
    """
    return max(cut - 1 - math.floor(math.log((place + 1) / CIRCLE) * misses(rate)), -1)


def misses(rate: float) -> float:
    """The factor that turns the logarithm of a uniform number into a count of coins in a row that say no."""
    return 0.0 if success(rate) == CIRCLE else 1 / math.log1p(-max(rate, 1 / CIRCLE))


def kept_for(last: int, cut: int, window: float) -> float:
    """How long a tuple is kept: until the end of the part with its last success, and not at all without one.

    >>> kept_for(1, cut=4, window=60), kept_for(-1, cut=4, window=60), kept_for(4, cut=16, window=60)
    (30.0, 0.0, 22.5)
    """
    each = each_part(cut)
    return window * (last // each + 1) * each / cut


def slot_at(age: float, place: int, cut: int, window: float) -> int:
    """The slot of a tuple for one at this place that is later by `age`; the window's end is in the last part."""
    each = each_part(cut)
    return min(int(age * (cut // each) / window), cut // each - 1) * each + place % each


def slot_succeeds(slot: int, last: int, coin: int, rate: float) -> bool:
    """Whether tuples that come in a slot are in the sample, by the hash of the tuple with the slot."""
    return slot == last or (slot < last and coin % CIRCLE < success(rate))


def success(rate: float) -> int:
    """The part of the circle that is in the sample."""
    if not 0 <= rate <= 1:
        raise FlowError(f"rate={rate}: give the part of pairs in the sample, from 0 to 1")
    return round(rate * CIRCLE)
