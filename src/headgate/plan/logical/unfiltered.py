"""The stream below a plan's filters. A filter hides tuples, but not how far the stream has come."""

from __future__ import annotations

from dataclasses import replace

from headgate.plan.logical.nodes import Filter, Lookup, Node, Project, Union


def unfiltered(node: Node) -> Node:
    """The stream, join or aggregate below the filters of a node.

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
