"""Feeds: how the tuples of each stream come into an aggregate, in terms of the stream's own columns.

Selections, projections and unions below an aggregate only say which tuples count and what their columns are called.
Written out as expressions over the stream, they need no operator of their own, and queries that read a stream by
different ways can share one pass over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from headgate.errors import BindError
from headgate.plan.logical.nodes import Filter, Node, Project, Source, Union
from headgate.plan.logical.scope import column


@dataclass(frozen=True)
class Feed:
    """A way from a stream to an aggregate: which tuples, and what each column of the aggregate's input is."""

    stream: str
    where: exp.Expr | None
    columns: Mapping[str, exp.Expr]

    def of(self, expression: exp.Expr) -> exp.Expr:
        """An expression over the aggregate's input as one over the stream.

        >>> from sqlglot import parse_one
        >>> Feed("Main", None, {"bits": parse_one("len * 8")}).of(parse_one("bits / 2")).sql()
        '(len * 8) / 2'
        """

        def replaced(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            if node.name not in self.columns:
                raise BindError(f"{node.name} cannot be used in a flow yet")
            found = self.columns[node.name]
            return found.copy() if isinstance(found, exp.Column | exp.Literal) else exp.paren(found.copy())

        return expression.transform(replaced)


def feeds(node: Node) -> tuple[Feed, ...]:
    """The feeds of the plan below an aggregate, one for each stream that it reads.

    >>> from headgate.plan.logical.nodes import Field, Named
    >>> from sqlglot import parse_one
    >>> main = Source("Main", (Field("ts"), Field("len")))
    >>> large = Filter(Project(main, (Named("bits", parse_one("len * 8")),)), parse_one("bits > 800"))
    >>> [(f.stream, f.where.sql("spark")) for f in feeds(large)]
    [('Main', '(`len` * 8) > 800')]
    """
    match node:
        case Source(name=name, fields=fields, numbered=False):
            return (Feed(name, None, {f.name: column(f.name) for f in fields}),)
        case Filter(input=below, predicate=predicate):
            return tuple(
                Feed(f.stream, f.of(predicate) if f.where is None else exp.and_(f.where, f.of(predicate)), f.columns)
                for f in feeds(below)
            )
        case Project(input=below, columns=columns):
            return tuple(Feed(f.stream, f.where, {c.name: f.of(c.expression) for c in columns}) for f in feeds(below))
        case Union(inputs_=inputs, numbered=False):
            # Columns are matched by position, and called as the first input calls them.
            names = [field.name for field in inputs[0].fields]
            return tuple(
                Feed(f.stream, f.where, {n: f.columns[own.name] for n, own in zip(names, side.fields, strict=True)})
                for side in inputs
                for f in feeds(side)
            )
    raise BindError(f"{type(node).__name__.lower()} below an aggregate cannot run in a flow yet")
