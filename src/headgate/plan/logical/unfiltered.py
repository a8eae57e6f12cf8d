"""The stream under a plan's filters: a filter hides tuples, but not how far the stream has come."""

from __future__ import annotations

from dataclasses import replace

from headgate.plan.logical.nodes import Filter, Lookup, Node, Project, Union


def unfiltered(node: Node) -> Node:
    """The node without the filters between it and its stream, join or aggregate.

    >>> from sqlglot import exp
    >>> from headgate.plan import Source
    >>> unfiltered(Filter(Source("Main", ()), exp.true())).name
    'Main'
    """
    match node:
        case Filter(input=below):
            return unfiltered(below)
        case Project(input=below, columns=columns):
            return Project(unfiltered(below), columns)
        case Lookup(input=below):
            return replace(node, input=unfiltered(below), outer=True)
        case Union(inputs_=inputs, numbered=numbered):
            return Union(tuple(unfiltered(i) for i in inputs), numbered)
    return node
