"""The components of a join: the tuples of one key on both sides, which meet one another and no others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.errors import FlowError
from headgate.shedding.join_cost import JoinLoad

Floats = NDArray[np.float64]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class KeyRates:
    """The tuples a second of one stream, and of its known keys; None is NULL, which matches nothing."""

    total: float
    known: Mapping[Hashable, float]

    def __post_init__(self) -> None:
        for key, rate in self.known.items():
            if not rate >= 0:
                raise FlowError(f"the rate of key {key!r} is {rate}: give tuples a second, zero or more")
        known = sum(self.known.values())
        if not known <= self.total * (1 + _ROUNDING):
            raise FlowError(
                f"the known keys have {known} tuples a second, the stream has {self.total}: count them anew"
            )

    @property
    def unknown(self) -> float:
        """The tuples a second of all other keys."""
        return max(0.0, self.total - sum(self.known.values()))


@dataclass(frozen=True)
class KeyLoads:
    """The components of a join: the load of each known key, and of all others together."""

    known: Mapping[Hashable, JoinLoad]
    others: JoinLoad

    @property
    def all(self) -> list[JoinLoad]:
        """The components, the others last."""
        return [*self.known.values(), self.others]

    @cached_property
    def rates(self) -> Floats:
        """The rates of all components, left and right."""
        return np.array([[load.left_rate, load.right_rate] for load in self.all])

    @cached_property
    def partners(self) -> Floats:
        """How many tuples to come one of each component and side matches while it is kept."""
        return np.array([[load.left_partners, load.right_partners] for load in self.all])

    @cached_property
    def whole(self) -> JoinLoad:
        """The join as one component, as it looks without regard to keys."""
        left, right = self.rates.sum(axis=0).tolist()
        a, b = self.others.left_window, self.others.right_window
        pairs = float((self.rates * self.partners)[:, 0].sum()) / a
        return JoinLoad(left, right, a, b, min(1.0, pairs / (left * right)) if pairs else 0.0)


def key_loads(
    left: KeyRates, right: KeyRates, left_window: float, right_window: float, keys: int, passing: float = 1.0
) -> KeyLoads:
    """The components of a join by what is known of its keys, of which there are `keys` in all.

    A key that one side does not know has the average rate of those that it does not know. `passing` is the part of the
    pairs with equal keys that passes all further predicates.

    >>> left, right = KeyRates(100, {"a": 60, None: 20}), KeyRates(40, {"a": 30})
    >>> loads = key_loads(left, right, left_window=10, right_window=10, keys=6)
    >>> loads.known["a"].left_rate, loads.others.left_rate, loads.others.selectivity
    (60, 20.0, 0.2)
    """
    known = dict.fromkeys(key for key in (*left.known, *right.known) if key is not None)
    if keys < len(known):
        raise FlowError(f"keys={keys}, but {len(known)} are known: give the number of all keys of the join")

    def load(left_rate: float, right_rate: float, selectivity: float) -> JoinLoad:
        return JoinLoad(left_rate, right_rate, left_window, right_window, selectivity)

    left_average, right_average = _average(left, keys), _average(right, keys)
    others = keys - len(known)
    return KeyLoads(
        {k: load(left.known.get(k, left_average), right.known.get(k, right_average), passing) for k in known},
        load(left_average * others, right_average * others, passing / max(others, 1)),
    )


def _average(side: KeyRates, keys: int) -> float:
    unknown = keys - len(side.known.keys() - {None})
    return side.unknown / unknown if unknown else 0.0
