"""A query as a flow runs it: cut into stages, each of which gives a stream to the next.

Aggregates, joins, lookups and DISTINCT have a stage each. What happens to tuples between two of them belongs to the
later one, as part of how they come in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from headgate.aggregates import Kept
from headgate.errors import BindError, WindowError
from headgate.plan.logical.nodes import (
    ROW_NUM,
    Aggregate,
    Distinct,
    Filter,
    Join,
    Lookup,
    Node,
    Project,
    Source,
    Union,
    over,
)
from headgate.plan.logical.pruned import pruned
from headgate.plan.logical.strategy import Choice, Strategy, choose
from headgate.plan.stream.feeds import Feed, feeds
from headgate.windows import OnAxis, Sliding

ANSWERS = "answers"
#: What a stage can be there for.
Own = Aggregate | Join | Distinct | Lookup


@dataclass(frozen=True)
class Stage:
    """A part of a query that runs on its own.

    Tuples come in by the feeds. With an aggregate they are reduced, and the answers of closed windows leave by `above`:
    the columns of the query, and its HAVING, over those of the aggregate. With a join, pairs leave as soon as they
    meet; without duplicates, tuples leave when their place is past. With a lookup, or with nothing of its own, they
    leave at once.
    """

    name: str
    """That of the query, or of the stream that the next stage reads."""
    query: str
    plan: Node
    feeds: tuple[Feed, ...]
    depth: int = 0
    """How many stages come before it, at most."""
    own: Own | None = None
    """What it is there for."""
    above: Feed | None = None
    choice: Choice | None = None

    @property
    def aggregate(self) -> Aggregate | None:
        """Its aggregate, if that is what it is there for."""
        return self.own if isinstance(self.own, Aggregate) else None

    @property
    def join(self) -> Join | None:
        """Its join, if that is what it is there for."""
        return self.own if isinstance(self.own, Join) else None

    @property
    def looks_up(self) -> bool:
        """Whether it is there to look tuples up in a table: what it gives is made as it is read, and never kept."""
        return isinstance(self.own, Lookup)

    @property
    def holds(self) -> bool:
        """Whether it needs the tuples themselves: to find duplicates, for windows by tuple or by rows of partitions."""
        if isinstance(self.own, Distinct):
            return True
        window = self.aggregate.window if self.aggregate is not None else None
        return window is not None and window.holds

    @property
    def after(self) -> Node:
        """What happens to what it gives, as a plan over `ANSWERS`."""
        assert self.own is not None
        return _with_source(self.plan, self.own, ANSWERS)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads, each once: those of the flow, and those of other stages."""
        return tuple(dict.fromkeys(f.stream for f in self.feeds))

    @property
    def window(self) -> OnAxis:
        """The window of the aggregate. Groups by a key that progresses are windows of one value of it."""
        assert self.aggregate is not None
        if self.aggregate.window is None:
            return Sliding(1, 1, _progressing_key(self.aggregate))
        assert self.aggregate.window.by == "axis", "windows of tuples have no numbers"
        return self.aggregate.window


@dataclass(frozen=True)
class Continuous:
    """A query over streams, and its stages: each comes after those that it reads, and the last one gives the answer."""

    name: str
    plan: Node
    stages: tuple[Stage, ...]
    strategy: Strategy | None = None
    """That which was asked for, if any was."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the flow that the query reads, each once."""
        own = {stage.name for stage in self.stages}
        return tuple(dict.fromkeys(s for stage in self.stages for s in stage.streams if s not in own))

    @property
    def numbered(self) -> frozenset[str]:
        """The streams whose tuples it needs the arrival numbers of."""
        return _numbered(self.plan)


def continuous(
    name: str, plan: Node, strategy: Strategy | None = None, bounded: Collection[str] = frozenset()
) -> Continuous:
    """A bound query in stages, or an error that says what of it a flow cannot run.

    Over `bounded` streams every window closes at their end, so nothing has to progress.
    """
    try:
        return Continuous(name, plan, _Cutter(name, strategy, bounded).cut(pruned(plan)), strategy)
    except BindError as error:
        raise type(error)(f"query {name}: {error}") from None


class _Cutter:
    """Cuts one query into stages."""

    def __init__(self, name: str, strategy: Strategy | None, bounded: Collection[str]) -> None:
        self._name, self._strategy = name, strategy
        self._bounded = set(bounded)
        self._stages: dict[str, Stage] = {}

    def cut(self, plan: Node) -> tuple[Stage, ...]:
        topmost = _topmost(plan)
        if topmost is None:
            self._add(self._name, self._without_stages(plan), None)
        else:
            own = over(topmost, tuple(self._without_stages(below) for below in topmost.inputs))
            assert isinstance(own, Own)
            self._add(self._name, _with(plan, own), own)
        return tuple(self._stages.values())

    def _without_stages(self, node: Node) -> Node:
        """The plan with the streams of earlier stages in the place of aggregates and joins."""
        if isinstance(node, Source) and node.numbered:
            # Tuples are numbered once, as they come in, and progress by that number too.
            return replace(node, columns=node.fields, numbered=False, also=(*node.also, ROW_NUM))
        if isinstance(node, Union) and node.numbered:
            raise WindowError("rows of a union are not counted in a flow yet: count those of each stream")
        node = over(node, tuple(self._without_stages(below) for below in node.inputs))
        if not isinstance(node, Own):
            return node
        name = f"{self._name}.{len(self._stages) + 1}"
        self._add(name, node, node)
        return Source(name, node.fields, also=node.progress)

    def _add(self, name: str, plan: Node, own: Own | None) -> None:
        below = tuple(feed for i in own.inputs for feed in feeds(i)) if own is not None else feeds(plan)
        stage = Stage(name, self._name, plan, below, own=own)
        bounded = all(feed.stream in self._bounded for feed in below)
        if isinstance(own, Aggregate):
            _check_window(own)
            _check_progress(own, bounded)
            (above,) = feeds(_with_source(plan, own, ANSWERS))
            stage = replace(stage, above=above, choice=choose(own, self._strategy))
        elif isinstance(own, Join):
            _check_bounds(own, bounded)
        elif isinstance(own, Distinct):
            _check_progressing(own.attribute, own.input, bounded, "no tuple would ever be known to be the first")
        before = [self._stages[s] for s in stage.streams if s in self._stages]
        depth = max((b.depth + (not b.looks_up) for b in before), default=0)
        self._stages[name] = replace(stage, depth=depth)
        if set(stage.streams) <= self._bounded:
            self._bounded.add(name)


def _numbered(node: Node) -> frozenset[str]:
    own = [node.name] if isinstance(node, Source) and node.numbered else []
    return frozenset(own).union(*(_numbered(below) for below in node.inputs))


def origins(stream: str, stages: Mapping[str, Stage]) -> frozenset[str]:
    """The streams that the tuples of a stream come from: those looked up in a table are still those of before."""
    stage = stages.get(stream)
    if stage is None or not stage.looks_up:
        return frozenset((stream,))
    return frozenset[str]().union(*(origins(s, stages) for s in stage.streams))


def tables_of(node: Node) -> frozenset[str]:
    """The tables that tuples are looked up in, anywhere in a plan."""
    if isinstance(node, Source):
        return frozenset((node.name,)) if node.table else frozenset()
    looked_into = (node.table,) if isinstance(node, Lookup) else ()
    return frozenset[str]().union(*(tables_of(below) for below in (*node.inputs, *looked_into)))


def _topmost(node: Node) -> Aggregate | Join | Distinct | None:
    while isinstance(node, Filter | Project):
        node = node.input
    return node if isinstance(node, Aggregate | Join | Distinct) else None


def _with(node: Node, topmost: Node) -> Node:
    """The plan with another node in the place of its topmost aggregate or join."""
    if isinstance(node, Filter | Project):
        return replace(node, input=_with(node.input, topmost))
    return topmost


def _with_source(node: Node, topmost: Node, name: str) -> Node:
    """The plan above its topmost aggregate or join, with what that gives as a stream."""
    return _with(node, Source(name, topmost.fields))


def _progressing_key(aggregate: Aggregate) -> str:
    """The column that the first progressing key is."""
    for key in aggregate.keys:
        if isinstance(key.expression, exp.Column) and key.expression.name in aggregate.input.progress:
            return key.expression.name
    keys = ", ".join(key.name for key in aggregate.keys)
    raise WindowError(f"none of the keys ({keys}) progresses, so no group would ever close: add a window")


def _check_window(aggregate: Aggregate) -> None:
    window = aggregate.window
    if window is None:
        _progressing_key(aggregate)
    elif window.growing and window.holds:
        raise WindowError("a landmark window over the rows of a partition does not run in a flow yet")
    elif window.growing and any(c.kept is Kept.STATE for c in aggregate.calls):
        raise WindowError("a user-defined aggregate over a landmark window does not run in a flow yet")


def _check_progress(aggregate: Aggregate, bounded: bool) -> None:
    window = aggregate.window
    if window is None:
        return
    _check_progressing(window.attribute, aggregate.input, bounded, "no window over it would ever close")


def _check_progressing(attribute: str, node: Node, bounded: bool, otherwise: str) -> None:
    if not bounded and attribute not in node.progress:
        known = ", ".join(node.progress)
        hint = f"window over {known}" if known else "give its stream a progress rule, hg.progress(...)"
        raise WindowError(f"{attribute} does not progress, so {otherwise}: {hint}")


def _check_bounds(join: Join, bounded: bool) -> None:
    """A tuple is let go when the other side has come far enough, so both have to progress."""
    for condition in join.conditions:
        for name, side in ((condition.left, join.left), (condition.right, join.right)):
            _check_progressing(name, side, bounded, "the join would keep its tuples for ever")
