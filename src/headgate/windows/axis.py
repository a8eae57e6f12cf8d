"""What all windows share: exact numbers, the place of a tuple on the window's axis, and checks of lengths."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from headgate.errors import WindowError

Number: TypeAlias = int | Fraction
"""Lengths, origins and attribute values. Times are microseconds since the epoch, negative before it."""

Tuple: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[Any, ...]

AxisId: TypeAlias = int | tuple[int, Key]
"""The id of a window that lies on the axis by its number: k, or (k, key) for a partitioned window."""

ROW_NUM = "row_num"
"""The attribute that holds the arrival number of a tuple, from 0."""


def value_of(t: Tuple, attr: str) -> Number | None:
    """Give the value of `attr` as an exact number, or None where the tuple has no place on the axis.

    Doubles and decimals become fractions, so that window bounds are never blurred by rounding. NULL, NaN and
    the infinities have no place.

    >>> value_of({"v": 0.5}, "v"), value_of({"v": 7}, "v"), value_of({"v": float("nan")}, "v")
    (Fraction(1, 2), 7, None)
    """
    value = t[attr]
    if value is None or isinstance(value, int):
        return value
    return Fraction(value) if math.isfinite(value) else None


def key_of(t: Tuple, partition: Sequence[str]) -> Key:
    """Give the partition that `t` is in; None is a key value like any other.

    >>> key_of({"src": "a", "dst": None, "n": 1}, ("src", "dst"))
    ('a', None)
    """
    return tuple(t[attr] for attr in partition)


def position(t: Tuple, tuples: Sequence[Tuple], attr: str, partition: Sequence[str]) -> Number | None:
    """Give the place of `t` on the axis of a window over `attr`.

    It is the value of `attr`; only for rows of a partition, it is the tuple's rank in arrival order among the
    tuples of its partition, since each partition counts its own rows.

    >>> T = [{"src": "a", "row_num": 0}, {"src": "b", "row_num": 1}, {"src": "a", "row_num": 2}]
    >>> position(T[2], T, "row_num", ()), position(T[2], T, "row_num", ("src",))
    (2, 1)
    """
    value = value_of(t, attr)
    if value is None or not counts_rows_of_partition(attr, partition):
        return value
    key = key_of(t, partition)
    numbers = (value_of(u, ROW_NUM) for u in tuples if key_of(u, partition) == key)
    return sum(1 for number in numbers if number is not None and number < value)


def positions(tuples: Sequence[Tuple], attr: str, partition: Sequence[str]) -> list[tuple[Number, Tuple]]:
    """Give `position` of every tuple that has one, with the tuple; sorts once where ranks are asked for.

    >>> positions([{"v": 7}, {"v": None}], "v", ())
    [(7, {'v': 7})]
    """
    placed = [(value, t) for t in tuples if (value := value_of(t, attr)) is not None]
    if not counts_rows_of_partition(attr, partition):
        return placed
    arrivals: dict[Key, list[Number]] = {}
    for number, t in sorted(placed, key=lambda pair: pair[0]):
        arrivals.setdefault(key_of(t, partition), []).append(number)
    return [(bisect_left(arrivals[key_of(t, partition)], number), t) for number, t in placed]


def counts_rows_of_partition(attr: str, partition: Sequence[str]) -> bool:
    """Give whether each partition counts its own rows, so that a tuple's place depends on earlier tuples.

    >>> counts_rows_of_partition("row_num", ("src",)), counts_rows_of_partition("ts", ("src",))
    (True, False)
    """
    return attr == ROW_NUM and bool(partition)


def make_id(k: int, key: Key) -> AxisId:
    """Give the id of the k-th window of a partition, or just k where nothing is partitioned: no key.

    >>> make_id(3, ("a",)), make_id(3, ())
    ((3, ('a',)), 3)
    """
    return (k, key) if key else k


def number_of(w: AxisId) -> int:
    """Give the k of a window id.

    >>> number_of((3, ("a",))), number_of(3)
    (3, 3)
    """
    return w[0] if isinstance(w, tuple) else w


def sorted_ids(ids: Iterable[AxisId]) -> list[AxisId]:
    """Give the distinct ids in order: by number, then by key with NULL first.

    >>> sorted_ids([(1, ("a",)), (0, ("b",)), (0, (None,)), (0, ("b",))])
    [(0, (None,)), (0, ('b',)), (1, ('a',))]
    """

    def order(w: AxisId) -> tuple[int, list[tuple[bool, Any]]]:
        key = w[1] if isinstance(w, tuple) else ()
        return number_of(w), [(value is not None, value) for value in key]

    return sorted(set(ids), key=order)


def check_length(word: str, length: Number, attr: str) -> None:
    """Raise a WindowError unless `length` can be the RANGE or SLIDE of a window over `attr`.

    >>> check_length("SLIDE", 0, "ts")
    Traceback (most recent call last):
    headgate.errors.WindowError: SLIDE of the window over ts is 0: give a length greater than zero
    """
    if length <= 0:
        raise WindowError(f"{word} of the window over {attr} is {length}: give a length greater than zero")
    if attr == ROW_NUM and length.denominator != 1:
        raise WindowError(f"{word} of the window over {attr} is {length}: give a whole number of rows")


def tail(origin: Number, partition: tuple[str, ...]) -> list[str]:
    """Give the parts of a specification that are written only where they say something.

    >>> tail(0, ()), tail(3, ("src", "dst"))
    ([], ['ORIGIN 3', 'PA src, dst'])
    """
    parts = [f"ORIGIN {origin}"] if origin else []
    return [*parts, f"PA {', '.join(partition)}"] if partition else parts
