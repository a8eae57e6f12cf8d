"""A plan without the columns that nobody needs. They are neither read nor kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headgate.plan.logical.needed import inputs_needed
from headgate.plan.logical.nodes import Aggregate, Named, Node, Project, Source, Union, over
from headgate.plan.logical.scope import column


def pruned(node: Node, wanted: Iterable[str] | None = None) -> Node:
    """The plan without columns that the wanted ones do not need. By default, all of its own columns are wanted.

    >>> from headgate.plan.logical.nodes import Field
    >>> main = Source("Main", (Field("ts"), Field("len"), Field("flags")), progressing="ts")
    >>> [f.name for f in pruned(Project(main, (Named("bits", column("len")),))).input.fields]
    ['ts', 'len']
    """
    # An aggregate makes all of its answer in one go, wanted or not.
    names = frozenset(node.types) if wanted is None or isinstance(node, Aggregate) else frozenset(wanted)
    if isinstance(node, Project):
        names = names.union(node.progress)  # Without these, nothing after it would progress.
    below = [pruned(i, needed) for i, needed in zip(node.inputs, inputs_needed(node, names), strict=True)]
    match node:
        case Source(columns=columns, progress=progress):
            return replace(node, columns=tuple(c for c in columns if c.name in names or c.name in progress))
        case Project(columns=columns):
            return replace(node, input=below[0], columns=tuple(c for c in columns if c.name in names))
        case Union(inputs_=inputs):
            # Inputs are matched by position, so each must have these columns and no others.
            places = [i for i, field in enumerate(node.inputs_[0].fields) if field.name in names]
            sides = ([side.fields[i].name for i in places] for side in inputs)
            return replace(node, inputs_=tuple(_only(b, own) for b, own in zip(below, sides, strict=True)))
    return over(node, tuple(below))


def _only(node: Node, names: list[str]) -> Node:
    if [field.name for field in node.fields] == names:
        return node
    return Project(node, tuple(Named(name, column(name)) for name in names))
