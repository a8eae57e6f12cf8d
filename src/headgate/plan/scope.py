"""Names in a query: which column of the input a name stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from headgate.errors import BindError
from headgate.plan.catalog import did_you_mean
from headgate.plan.nodes import ROW_NUM, Field, Filter, Named, Node, Project, Source, Union
from headgate.plan.words import shown


@dataclass(frozen=True)
class Item:
    """One input of a query, under the name that the query gives it."""

    alias: str
    node: Node


def column(name: str) -> exp.Column:
    """A reference to the column of this very name.

    >>> column("Main1.ts").sql("spark")
    '`Main1.ts`'
    """
    return exp.column(exp.to_identifier(name, quoted=True))


def qualified(item: Item) -> Item:
    """The input with every column renamed to alias.column, so that two sides of a join never clash."""
    renamed = tuple(Named(f"{item.alias}.{f.name}", column(f.name)) for f in item.node.fields)
    return Item(item.alias, Project(item.node, renamed))


class Scope:
    """The columns that the expressions of one SELECT may name.

    With a single input a column keeps its name; in a join it is alias.column.
    """

    def __init__(self, node: Node, aliases: Iterable[str], joined: bool) -> None:
        self.node = node
        self.joined = joined
        self._aliases = {alias.lower(): alias for alias in aliases}

    def resolve(self, reference: exp.Column) -> exp.Expr:
        """The input column (or field of a struct column) that a name stands for, or a BindError."""
        qualifier, name = reference.table, reference.name
        if qualifier and qualifier.lower() not in self._aliases:
            struct = self._find("", qualifier)
            if struct:
                return exp.Dot(this=column(struct), expression=exp.to_identifier(name, quoted=True))
            known = ", ".join(self._aliases.values())
            raise BindError(f"unknown stream {qualifier} in {shown(reference)}: this query reads {known}")
        found = self._find(qualifier, name)
        if not found and name.lower() == ROW_NUM and not self.joined:
            self.node = number(self.node)
            found = ROW_NUM
        if not found:
            columns = self.columns(qualifier)
            raise BindError(f"unknown column {shown(reference)}: {did_you_mean(name, columns)}")
        return column(found)

    def bind(self, expression: exp.Expr) -> exp.Expr:
        """The expression with every name resolved."""

        def resolve(node: exp.Expr) -> exp.Expr:
            return self.resolve(node) if isinstance(node, exp.Column) else node

        return expression.copy().transform(resolve)

    def field(self, name: str) -> Field:
        """The field of a resolved column."""
        return Field(name, self.node.types[name])

    def columns(self, qualifier: str = "") -> list[str]:
        """The names that may stand behind this qualifier; without one, all column names."""
        prefix = f"{qualifier.lower()}." if self.joined and qualifier else ""
        names = [f.name for f in self.node.fields if f.name.lower().startswith(prefix)]
        return [name.split(".", 1)[1] for name in names] if self.joined else names

    def _find(self, qualifier: str, name: str) -> str | None:
        wanted = f"{self._aliases[qualifier.lower()]}.{name}" if self.joined and qualifier else name
        matches = []
        for field in self.node.fields:
            own = field.name if qualifier or not self.joined else field.name.split(".", 1)[1]
            if own.lower() == wanted.lower():
                matches.append(field.name)
        if len(matches) > 1:
            raise BindError(f"column {name} is ambiguous: write {' or '.join(matches)}")
        return matches[0] if matches else None


def number(node: Node) -> Node:
    """The node with its tuples' arrival number as the column `row_num`."""
    match node:
        case Source() | Union():
            return replace(node, numbered=True)
        case Filter(input=below):
            return replace(node, input=number(below))
        case Project(input=below, columns=columns):
            return Project(number(below), (*columns, Named(ROW_NUM, column(ROW_NUM))))
        case _:
            raise BindError(
                f"{ROW_NUM} is the arrival number of a tuple in a stream: the results of a join, an"
                " aggregate or DISTINCT have none; use a window over time there"
            )
