"""Aggregates: partial, merge, final, and the properties that the planner needs."""

from headgate.aggregates.builtin import builtin
from headgate.aggregates.function import AggregateFunction, Domain, Merge, Partial
from headgate.aggregates.user import Aggregator, UserAggregate, register_aggregate, user_aggregate

__all__ = [
    "AggregateFunction",
    "Aggregator",
    "Domain",
    "Merge",
    "Partial",
    "UserAggregate",
    "builtin",
    "register_aggregate",
    "user_aggregate",
]
