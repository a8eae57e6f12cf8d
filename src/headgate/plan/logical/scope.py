"""Names in a query: which column of the input each stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from headgate.errors import BindError
from headgate.lang.written import is_named
from headgate.plan.logical.catalog import did_you_mean
from headgate.plan.logical.nodes import ROW_NUM, Field, Filter, Named, Node, Project, Source, Union
from headgate.plan.logical.render import shown


@dataclass(frozen=True)
class Item:
    """One input of a query, with the name that the query gives it."""

    alias: str
    node: Node


def column(name: str) -> exp.Column:
    """A reference to the column with exactly this name.

    >>> column("Main1.ts").sql("spark")
    '`Main1.ts`'
    """
    return exp.column(exp.to_identifier(name, quoted=True))


def qualified(item: Item) -> Item:
    """The input with each column renamed to alias.column, so that two sides of a join never clash."""
    renamed = tuple(Named(f"{item.alias}.{f.name}", column(f.name)) for f in item.node.fields)
    return Item(item.alias, Project(item.node, renamed))


class Scope:
    """The columns that the expressions of one SELECT may name.

    With a single input, a column keeps its name. In a join it is called alias.column.
    """

    def __init__(self, node: Node, aliases: Iterable[str], joined: bool) -> None:
        self.node = node
        self.joined = joined
        self._aliases = {alias.lower(): alias for alias in aliases}

    def resolve(self, reference: exp.Column) -> exp.Expr:
        """The input column, or the field of a struct column, that a name stands for; else a BindError."""
        first, *rest = (part.name for part in reference.parts)
        if rest and first.lower() in self._aliases and (found := self._find(first, rest[0])):
            return _with_fields(found, rest[1:])
        if found := self._find("", first):
            return _with_fields(found, rest)
        if not rest or (first.lower() in self._aliases and reference.name.lower() == ROW_NUM and not self.joined):
            return column(self._row_num(reference))
        if first.lower() in self._aliases:
            raise BindError(f"unknown column {shown(reference)}: {did_you_mean(rest[0], self.columns(first))}")
        known = ", ".join(self._aliases.values())
        raise BindError(f"unknown stream {first} in {shown(reference)}: this query reads {known}")

    def _row_num(self, reference: exp.Column) -> str:
        """The arrival number. A stream has it if someone asks for it."""
        if reference.name.lower() != ROW_NUM or self.joined:
            raise BindError(f"unknown column {shown(reference)}: {did_you_mean(reference.name, self.columns())}")
        self.node = number(self.node)
        return ROW_NUM

    def bind(self, expression: exp.Expr) -> exp.Expr:
        """The expression with all names resolved."""

        def resolve(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return node
            return as_field(node, self.resolve(node))

        return expression.copy().transform(resolve)

    def field(self, name: str) -> Field:
        """The field that a resolved column is."""
        return Field(name, self.node.types[name])

    def columns(self, qualifier: str = "") -> list[str]:
        """The names that may follow this qualifier; without a qualifier, all column names."""
        prefix = f"{qualifier.lower()}." if self.joined and qualifier else ""
        names = [f.name for f in self.node.fields if f.name.lower().startswith(prefix)]
        return [name.split(".", 1)[1] for name in names] if self.joined else names

    def all_columns(self, qualifier: str = "") -> list[exp.Column]:
        """References to all columns, or to those of one input, in order."""
        if qualifier and qualifier.lower() not in self._aliases:
            known = ", ".join(self._aliases.values())
            raise BindError(f"unknown stream {qualifier} in {qualifier}.*: this query reads {known}")
        if not self.joined:
            return [column(f.name) for f in self.node.fields]
        sides = (f.name.split(".", 1) for f in self.node.fields)
        return [
            exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))
            for alias, name in sides
            if not qualifier or alias.lower() == qualifier.lower()
        ]

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


def as_field(written: exp.Expr, found: exp.Expr) -> exp.Expr:
    """The expression to put in place of a name, key or aggregate. A field of a struct keeps its name.

    >>> from headgate.lang import parse_query
    >>> (x,) = parse_query("SELECT struct(m.len) FROM Main AS m").find_all(exp.Column)
    >>> as_field(x, column("m.len")).sql("spark")
    '`m.len` AS `len`'
    """
    if isinstance(found, exp.Column) and isinstance(written, exp.Column) and found.name == written.name:
        return found
    match written.parent:
        case exp.PropertyEQ(parent=exp.Struct()) as field if not is_named(field):
            return exp.alias_(found, _field_name(written, f"col{(field.index or 0) + 1}"), quoted=True)
        case exp.Tuple() as row if not isinstance(row.parent, exp.Any | exp.All):
            return exp.alias_(found, _field_name(written, f"col{(written.index or 0) + 1}"), quoted=True)
        case exp.Anonymous() as call if call.name.lower() == "arrays_zip":
            # This function takes no aliases: it goes by the names of columns and of fields.
            name = _field_name(written, str(written.index or 0))
            struct = exp.func("named_struct", exp.Literal.string(name), found, dialect="spark")
            return exp.Dot(this=struct, expression=exp.to_identifier(name, quoted=True))
    return found


def _field_name(written: exp.Expr, otherwise: str) -> str:
    """The name that Spark gives to a field made of an expression."""
    return written.name if isinstance(written, exp.Column) else otherwise


def _with_fields(name: str, fields: Iterable[str]) -> exp.Expr:
    node: exp.Expr = column(name)
    for field in fields:
        node = exp.Dot(this=node, expression=exp.to_identifier(field, quoted=True))
    return node


def number(node: Node) -> Node:
    """The node with the arrival number of its tuples as the column `row_num`."""
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
