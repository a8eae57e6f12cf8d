"""The columns that a plan needs, from its answer down to its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.plan.logical.nodes import Aggregate, Filter, Join, Lookup, Node, Project, Union

if TYPE_CHECKING:
    from collections.abc import Iterable


def inputs_needed(node: Node, wanted: Iterable[str]) -> tuple[frozenset[str], ...]:
    """For each input of a node, the columns that it must have, so that the node has those wanted of it.

    >>> from headgate.plan.logical.nodes import Field, Source
    >>> main = Source("Main", (Field("ts", "int"), Field("len", "int"), Field("flags", "string")))
    >>> (below,) = inputs_needed(Filter(main, exp.column("len") > 100), {"ts"})
    >>> sorted(below)
    ['len', 'ts']
    """
    wanted = frozenset(wanted)
    match node:
        case Filter(predicate=predicate):
            return (wanted | columns_of([predicate]),)
        case Project(columns=columns):
            return (columns_of(c.expression for c in columns if c.name in wanted),)
        case Union(inputs_=inputs):
            # Inputs are matched by position, and each may have names of its own.
            places = [i for i, field in enumerate(inputs[0].fields) if field.name in wanted]
            return tuple(frozenset(side.fields[i].name for i in places) for side in inputs)
        case Join(left=left, right=right, conditions=conditions, predicate=predicate):
            windowing = {name for c in conditions for name in (c.left, c.right)}
            both = wanted | windowing | columns_of([predicate] if predicate else [])
            return both & left.types.keys(), both & right.types.keys()
        case Lookup(input=below, predicate=predicate):
            return ((wanted | columns_of([predicate] if predicate else [])) & below.types.keys(),)
        case Aggregate():
            return (_of_aggregate(node, wanted),)
    return tuple(frozenset(below.types) for below in node.inputs)


def columns_of(expressions: Iterable[exp.Expr]) -> frozenset[str]:
    """The names of all columns in these bound expressions.

    >>> sorted(columns_of([exp.column("a") + exp.column("b"), exp.column("a")]))
    ['a', 'b']
    """
    return frozenset(column.name for e in expressions for column in e.find_all(exp.Column))


def _of_aggregate(node: Aggregate, wanted: frozenset[str]) -> frozenset[str]:
    calls = [c for c in node.calls if c.name in wanted]
    needed = columns_of(k.expression for k in node.keys)
    needed |= columns_of(part for c in calls for part in (*c.arguments, *([c.where] if c.where else [])))
    return needed if node.window is None else needed | {*node.window.reads}
