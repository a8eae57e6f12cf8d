"""Aggregates: partial, merge, final, and the properties that the planner needs."""

from headgate.aggregates.builtin import builtin
from headgate.aggregates.function import AggregateFunction, Domain, Merge, Partial
from headgate.aggregates.user import Aggregator, UserAggregate, aggregate_names, register_aggregate, user_aggregate

__all__ = [
    "AggregateFunction",
    "Aggregator",
    "Domain",
    "Merge",
    "Partial",
    "UserAggregate",
    "aggregate_names",
    "builtin",
    "register_aggregate",
    "user_aggregate",
]
