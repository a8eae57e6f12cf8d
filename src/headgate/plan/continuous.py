"""A query as a flow runs it: what happens to tuples before its aggregate, and what happens to answers behind it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from headgate.errors import BindError, WindowError
from headgate.plan.feeds import Feed, feeds
from headgate.plan.nodes import ROW_NUM, Aggregate, Filter, Node, Project, Source
from headgate.plan.strategy import Choice, Strategy, choose
from headgate.windows import Sliding

_ANSWERS = "answers"


@dataclass(frozen=True)
class Continuous:
    """A query over streams: its plan, and the parts of it that run apart from one another.

    Tuples come in by the feeds. Without an aggregate they leave at once. With one they are reduced, and the answers
    of closed windows leave by `above`: the columns of the query, and its HAVING, over those of the aggregate.
    """

    name: str
    plan: Node
    feeds: tuple[Feed, ...]
    aggregate: Aggregate | None = None
    above: Feed | None = None
    choice: Choice | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads, each once."""
        return tuple(dict.fromkeys(f.stream for f in self.feeds))

    @property
    def window(self) -> Sliding:
        """The window of the aggregate."""
        assert self.aggregate is not None
        assert isinstance(self.aggregate.window, Sliding)
        return self.aggregate.window


def continuous(
    name: str, plan: Node, strategy: Strategy | None = None, bounded: Collection[str] = frozenset()
) -> Continuous:
    """The parts of a bound query, or an error that says what of it a flow cannot run.

    Over `bounded` streams every window closes at their end, so nothing has to progress.
    """
    aggregate = _topmost_aggregate(plan)
    try:
        if aggregate is None:
            return Continuous(name, plan, feeds(plan))
        _check_window(aggregate)
        below = feeds(aggregate.input)
        _check_progress(aggregate, all(feed.stream in bounded for feed in below))
        (above,) = feeds(_with_source(plan, aggregate))
        return Continuous(name, plan, below, aggregate, above, choose(aggregate, strategy))
    except BindError as error:
        raise type(error)(f"query {name}: {error}") from None


def _topmost_aggregate(node: Node) -> Aggregate | None:
    while isinstance(node, Filter | Project):
        node = node.input
    return node if isinstance(node, Aggregate) else None


def _with_source(node: Node, aggregate: Aggregate) -> Node:
    """The plan above an aggregate, with the answers of the aggregate as a stream."""
    if isinstance(node, Filter | Project):
        return replace(node, input=_with_source(node.input, aggregate))
    return Source(_ANSWERS, aggregate.fields)


def _check_window(aggregate: Aggregate) -> None:
    window = aggregate.window
    if not isinstance(window, Sliding) or window.partition or window.attr == ROW_NUM:
        raise WindowError("only sliding and tumbling windows over the progressing attribute run in a flow yet")


def _check_progress(aggregate: Aggregate, bounded: bool) -> None:
    window = aggregate.window
    assert isinstance(window, Sliding)
    if window.attr not in aggregate.input.progress and not bounded:
        known = ", ".join(aggregate.input.progress)
        hint = f"window over {known}" if known else "give the stream a progress rule, hg.progress(...)"
        raise WindowError(f"{window.attr} does not progress, so no window over it would ever close: {hint}")
