"""The problem of the `estimate` planner: a tree of shared segments for each stream, and the load that they make."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from headgate.errors import FlowError


class Kind(StrEnum):
    """What missing tuples mean to a query."""

    AGGREGATE = "aggregate"
    """The answer is scaled: its error is relative, and bounded by constant / rate."""
    SET = "set"
    """The answer is a set of tuples: its error is the fraction that is missing, 1 - rate."""
    EXACT = "exact"
    """Never shed: nothing on the way to it may be sampled."""


@dataclass(frozen=True)
class Leaf:
    """A leaf: a query, with the cost of each tuple that gets as far as its own part of the work.

    `constant` is that of the a-priori bound (see `error_constant`); 1 says that nothing is known. A higher
    `priority` goes first, and within one priority a higher `weight` makes an error count for more. A query with a
    `rate` of its own is sampled at just that rate, overload or not.
    """

    name: str
    kind: Kind = Kind.AGGREGATE
    cost: float = 0.0
    constant: float = 1.0
    weight: float = 1.0
    priority: int = 0
    rate: float | None = None

    def __post_init__(self) -> None:
        _check(f"query {self.name}: cost", self.cost)
        for word, value in (("constant", self.constant), ("weight", self.weight)):
            if not 0 < value < math.inf:
                raise FlowError(f"query {self.name}: {word}={value}: give a number above 0")
        if self.rate is not None:
            if self.kind is Kind.EXACT:
                raise FlowError(f"query {self.name} is exact and has rate={self.rate}: leave out one of them")
            if not 0 < self.rate <= 1:
                raise FlowError(f"query {self.name}: rate={self.rate}: give a number above 0 and not above 1")

    @property
    def fixed_rate(self) -> float | None:
        """The rate that no plan may change, if there is one."""
        return 1.0 if self.kind is Kind.EXACT else self.rate


@dataclass(frozen=True)
class Segment:
    """Work that all queries below it share: seconds for each tuple that enters, and how many leave for each."""

    name: str
    cost: float
    selectivity: float
    below: tuple[Node, ...]

    def __post_init__(self) -> None:
        _check(f"segment {self.name}: cost", self.cost)
        _check(f"segment {self.name}: selectivity", self.selectivity)
        if not self.below:
            raise FlowError(f"segment {self.name} leads to no query: leave it out")


Node: TypeAlias = Segment | Leaf


@dataclass(frozen=True)
class Stream:
    """A root: a stream, with the tuples that arrive in a batch."""

    name: str
    tuples: float
    below: tuple[Node, ...]

    def __post_init__(self) -> None:
        _check(f"stream {self.name}: tuples", self.tuples)


@dataclass(frozen=True)
class Place:
    """A node, the name of the node or stream above it, and the tuples that come to it if none is shed."""

    node: Node
    above: str
    tuples: float


@dataclass(frozen=True)
class Trees:
    """The trees of all streams of a flow. Each has queries of its own; the machine is one.

    A drop stands on the edge to a node, and is named by that node; it keeps a tuple with some probability. Drops
    decide independently, so the probabilities on a path multiply.

    >>> tcp = Segment("tcp", cost=2e-6, selectivity=0.5, below=(Leaf("n", cost=1e-6), Leaf("bytes", cost=1e-6)))
    >>> trees = Trees((Stream("Main", tuples=1_000_000, below=(tcp,)),))
    >>> trees.rates({"tcp": 0.8, "n": 0.5})
    {'tcp': 0.8, 'n': 0.4, 'bytes': 0.8}
    >>> round(trees.load({"tcp": 0.8, "n": 0.5}), 6)  # 2 * 0.8 + (0.4 + 0.8) * 0.5
    2.2
    """

    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        names = Counter(s.name for s in self.streams) + Counter(p.node.name for p in self.places())
        if twice := [name for name, times in names.items() if times > 1]:
            raise FlowError(
                f"{twice[0]} names two parts of the trees: give each stream, segment and query its own name"
            )

    @property
    def queries(self) -> tuple[Leaf, ...]:
        """All queries, tree by tree."""
        return tuple(p.node for p in self.places() if isinstance(p.node, Leaf))

    def places(self) -> Iterator[Place]:
        """All nodes, each after the node above it."""
        for stream in self.streams:
            for node in stream.below:
                yield from _places(node, stream.name, stream.tuples)

    def rates(self, keep: Mapping[str, float]) -> dict[str, float]:
        """The effective sampling rate at each node, where the drop before a node keeps `keep` of the tuples."""
        found = {s.name: 1.0 for s in self.streams}
        for place in self.places():
            found[place.node.name] = found[place.above] * keep.get(place.node.name, 1.0)
        return {p.node.name: found[p.node.name] for p in self.places()}

    def load(self, keep: Mapping[str, float], drop_cost: float = 0.0) -> float:
        """The seconds that a batch takes: the left side of the load equation.

        A drop costs something for each tuple that comes to it. One that keeps nothing is no drop but a closed
        way: no coin is tossed, because nothing is sent there.
        """
        rates = {s.name: 1.0 for s in self.streams} | self.rates(keep)
        seconds = 0.0
        for place in self.places():
            seconds += place.tuples * rates[place.node.name] * place.node.cost
            if 0 < keep.get(place.node.name, 1.0) < 1:
                seconds += place.tuples * rates[place.above] * drop_cost
        return seconds


def _places(node: Node, above: str, tuples: float) -> Iterator[Place]:
    yield Place(node, above, tuples)
    if isinstance(node, Segment):
        for child in node.below:
            yield from _places(child, node.name, tuples * node.selectivity)


def _check(what: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise FlowError(f"{what}={value}: give a number, zero or more")
