"""The coins that decide which pairs of a join are in a uniform random sample of it.

Every coin is a function of what is known of the tuples, so the sample is the same in any order and any batching, and no
pair is more likely than another. There are two kinds:

- *by pairs*. Each tuple has a place on a circle, the hash of its identity, and a pair is in the sample if the sum of
  its places falls into the first part of the circle. Any two pairs are independent: at least one place is not in both.
  For a given tuple the partners are those on an arc, so tuples meet by key and bucket of the circle, and most pairs
  that are not in the sample are never looked at. But each tuple has to be kept: some partner may come from its arc.
- *by slots*. The time for which a tuple is kept is cut into slots, with a coin for each, the hash of its identity and
  the slot's number. A pair is in the sample if the coin of its earlier tuple for the age at which the later one comes
  says so. A tuple without a success is never kept, one with some is let go behind the last. But partners in the same
  slot share a coin, which widens the variance of a count by the mean number of partners in a slot.

By slots, a tuple has to be kept all the same until no earlier one of the other side can come: that one has the coin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headgate.errors import FlowError

#: Places are whole numbers from 0 to this: a hash modulo CIRCLE. Whole, so that all who ask get the same answer.
CIRCLE = 1 << 32
#: Above this, more buckets save nothing.
_BUCKETS = 1 << 20


def in_sample(left: int, right: int, rate: float) -> bool:
    """Whether a pair is in the sample, by the places of its tuples.

    >>> in_sample(CIRCLE - 5, 5 + CIRCLE // 10, rate=0.2), in_sample(5, 5 + CIRCLE // 5, rate=0.2)
    (True, False)
    """
    return (left + right) % CIRCLE < success(rate)


def buckets(rate: float) -> int:
    """Into how many buckets the circle is cut, none shorter than an arc."""
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


def slots(partners: float, spread: float) -> int | None:
    """How many slots keep the variance within `spread` times that of independent pairs; None where none would do.

    >>> slots(partners=2, spread=1.25), slots(partners=0.1, spread=1.25), slots(partners=2, spread=1)
    (8, 1, None)
    """
    if not spread >= 1:
        raise FlowError(f"spread={spread}: give how much wider the variance may be, 1 or more")
    return None if spread == 1 else max(1, math.ceil(partners / (spread - 1)))


def flips(hashes: Sequence[int], rate: float) -> tuple[bool, ...]:
    """The coins of a tuple, by the hashes of its identity with 0, 1, 2 and so on, one for each slot."""
    return tuple(h % CIRCLE < success(rate) for h in hashes)


def kept_for(coins: Sequence[bool], window: float) -> float:
    """How long a tuple is kept: until the end of its last slot with a success, and not at all without one.

    >>> kept_for((False, True, False, False), window=60), kept_for((False, False), window=60)
    (30.0, 0.0)
    """
    return window * max((slot + 1 for slot, coin in enumerate(coins) if coin), default=0) / len(coins)


def meets(coins: Sequence[bool], age: float, window: float) -> bool:
    """Whether a tuple and one that is later by `age` are in the sample; the window's end is in the last slot."""
    return coins[min(int(age * len(coins) / window), len(coins) - 1)]


def success(rate: float) -> int:
    """How much of the circle is in the sample."""
    if not 0 <= rate <= 1:
        raise FlowError(f"rate={rate}: give the part of pairs in the sample, from 0 to 1")
    return round(rate * CIRCLE)
