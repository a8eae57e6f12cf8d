"""Aggregates: partial, merge, final, and the properties that the planner needs."""

from headgate.aggregates.aggregator import Aggregator
from headgate.aggregates.builtin import builtin
from headgate.aggregates.function import AggregateFunction, Domain, Kept, Merge, Partial, Scaling
from headgate.aggregates.registry import aggregate_named, aggregate_names, register_aggregate

__all__ = [
    "AggregateFunction",
    "Aggregator",
    "Domain",
    "Kept",
    "Merge",
    "Partial",
    "Scaling",
    "aggregate_named",
    "aggregate_names",
    "builtin",
    "register_aggregate",
]
