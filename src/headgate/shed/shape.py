"""What a policy is told of the query that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.plan.stream.stages import Continuous, Stage

Answers: TypeAlias = Literal["tuples", "windows", "pairs", "windows of pairs"]
"""What a query answers: tuples as they come, windows, the pairs of a join, or windows over such pairs."""


@dataclass(frozen=True)
class QueryShape:
    """The shape of a query: enough to know what can be left out of it."""

    name: str
    streams: tuple[str, ...]
    answers: Answers
    keys: tuple[str, ...] = ()
    """What the outermost aggregate groups by."""


def shape_of(query: Continuous) -> QueryShape:
    """Give the shape of a query."""
    aggregate = query.stages[-1].aggregate
    keys = tuple(key.name for key in aggregate.keys) if aggregate is not None else ()
    return QueryShape(query.name, query.streams, _answers(query), keys)


def _answers(query: Continuous) -> Answers:
    if pairs_of(query) is not None:
        return "pairs"
    if aggregated_pairs_of(query) is not None:
        return "windows of pairs"
    return "windows" if any(stage.aggregate is not None for stage in query.stages) else "tuples"


def pairs_of(query: Continuous) -> Stage | None:
    """Give the join whose pairs are the answers of a query, if they are."""
    *before, last = query.stages
    return last if last.join is not None and all(stage.looks_up for stage in before) else None


def aggregated_pairs_of(query: Continuous) -> Stage | None:
    """Give the join whose pairs the only aggregate of a query is over, if there is such a join."""
    *before, last = query.stages
    *before, join = before or [last]
    joins = join.join is not None and all(stage.looks_up for stage in before)
    return join if joins and last.aggregate is not None and not last.holds and last.streams == (join.name,) else None
