"""The components of a join: the tuples of one key on both sides. They meet each other and no others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.errors import FlowError
from headgate.shed.join.cost import JoinLoad

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


@dataclass(frozen=True, eq=False)
class KeyLoads:
    """The components of a join: those of the known keys, and last the one of all others together."""

    keys: tuple[Hashable, ...]
    rates: Floats
    """Tuples a second of each component, left and right."""
    windows: tuple[float, float]
    selectivity: Floats
    """The part of the pairs of each component, within the windows, that match."""

    def __post_init__(self) -> None:
        _ = self.others  # Fails where windows make no sense.

    @cached_property
    def known(self) -> Mapping[Hashable, JoinLoad]:
        """The loads of the known keys."""
        return {key: self._load(number) for number, key in enumerate(self.keys)}

    @cached_property
    def others(self) -> JoinLoad:
        """The load of all other keys."""
        return self._load(-1)

    def _load(self, number: int) -> JoinLoad:
        left, right = self.rates[number].tolist()
        return JoinLoad(left, right, *self.windows, float(self.selectivity[number]))

    @cached_property
    def coming(self) -> Floats:
        """By component and side, how many tuples a second come that match one."""
        return self.selectivity[:, None] * self.rates[:, ::-1]

    @cached_property
    def partners(self) -> Floats:
        """By component and side, the number of later tuples that one matches while it is kept."""
        return self.coming * self.windows

    @cached_property
    def whole(self) -> JoinLoad:
        """The join as one component, whatever the keys."""
        left, right = self.rates.sum(axis=0).tolist()
        pairs = float((self.rates * self.partners)[:, 0].sum()) / self.windows[0]
        return JoinLoad(left, right, *self.windows, min(1.0, pairs / (left * right)) if pairs else 0.0)

    def passing(self, part: float) -> KeyLoads:
        """The same with so many times as many pairs."""
        return replace(self, selectivity=np.minimum(1.0, self.selectivity * part))


def key_loads(
    left: KeyRates, right: KeyRates, left_window: float, right_window: float, keys: int, passing: float = 1.0
) -> KeyLoads:
    """The components of a join by what is known of its keys. There are `keys` of them in all.

    A key that one side does not know has the average rate of those that it does not know. `passing` is the part of the
    pairs with equal keys that passes all further predicates.

    >>> left, right = KeyRates(100, {"a": 60, None: 20}), KeyRates(40, {"a": 30})
    >>> loads = key_loads(left, right, left_window=10, right_window=10, keys=6)
    >>> loads.known["a"].left_rate, loads.others.left_rate, loads.others.selectivity
    (60.0, 20.0, 0.2)
    """
    known = dict.fromkeys(key for key in (*left.known, *right.known) if key is not None)
    if keys < len(known):
        raise FlowError(f"keys={keys}, but {len(known)} are known: give the number of all keys of the join")
    averages, others = (_average(left, keys), _average(right, keys)), keys - len(known)
    rates = [[side.known.get(k, average) for k in known] for side, average in zip((left, right), averages, strict=True)]
    return KeyLoads(
        tuple(known),
        np.array([[*own, average * others] for own, average in zip(rates, averages, strict=True)]).T,
        (left_window, right_window),
        np.array([passing] * len(known) + [passing / max(others, 1)]),
    )


def _average(side: KeyRates, keys: int) -> float:
    unknown = keys - len(side.known.keys() - {None})
    return side.unknown / unknown if unknown else 0.0
