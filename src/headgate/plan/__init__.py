"""Plans: what a query computes, with names and types checked, and how it is best computed."""

from headgate.plan.logical.bind import bind
from headgate.plan.logical.catalog import Catalog
from headgate.plan.logical.nodes import (
    Aggregate,
    Band,
    Call,
    Distinct,
    Field,
    Filter,
    Join,
    Lookup,
    Named,
    Node,
    Project,
    SameWindow,
    Source,
    Union,
)
from headgate.plan.logical.strategy import Choice, Strategy, choose

__all__ = [
    "Aggregate",
    "Band",
    "Call",
    "Catalog",
    "Choice",
    "Distinct",
    "Field",
    "Filter",
    "Join",
    "Lookup",
    "Named",
    "Node",
    "Project",
    "SameWindow",
    "Source",
    "Strategy",
    "Union",
    "bind",
    "choose",
]
