"""Lengths, names and expressions as text for people."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.lang import Headgate
from headgate.lang.units import MICROSECONDS, plain
from headgate.plan.logical.nodes import ROW_NUM, Aggregate, Call, Filter, Named, Node, Project
from headgate.plan.logical.types import is_time

if TYPE_CHECKING:
    from headgate.windows import Cut, Number

_LONGEST = 80
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


def length(value: Number, attribute: str, node: Node) -> str:
    """A length on the axis of an attribute of the node, in the largest unit of time that leaves no rest.

    >>> from headgate.plan.logical.nodes import Field, Source
    >>> main = Source("Main", (Field("ts", "timestamp"), Field("seq", "int")), numbered=True)
    >>> length(5_400_000_000, "ts", main), length(60_000_000, "ts", main)
    ('90 minutes', '1 minute')
    >>> length(100, "row_num", main), length(100, "seq", main)
    ('100 rows', '100')
    """
    if is_time(node.types.get(attribute, "")):
        unit = next(u for u in reversed(MICROSECONDS) if value % MICROSECONDS[u] == 0)
        return counted(int(value / MICROSECONDS[unit]), unit)
    return counted(int(value), "rows") if attribute == ROW_NUM else number(value)


def panes(cut: Cut, count: int, attribute: str, node: Node) -> str:
    """The length of so many panes of a cut; panes that differ in length are counted.

    >>> from headgate.plan.logical.nodes import Field, Source
    >>> from headgate.windows import EqualCut
    >>> panes(EqualCut(60_000_000), 5, "ts", Source("Main", (Field("ts", "timestamp"),)))
    '5 minutes'
    """
    if cut.length is not None:
        return length(cut.length * count, attribute, node)
    base, parts = cut.made_of
    return f"{counted(count * parts, 'panes')} of {base}"


def counted(times: int, things: str) -> str:
    """A number of things; one thing is in the singular.

    >>> counted(1, "rows"), counted(2000, "windows")
    ('1 row', '2,000 windows')
    """
    return f"{times:,} {things.removesuffix('s') if times == 1 else things}"


def number(value: Number) -> str:
    """A number as a decimal, or as a fraction where the decimal does not end.

    >>> from fractions import Fraction
    >>> number(5), number(Fraction(1, 2)), number(Fraction(1, 3))
    ('5', '0.5', '1/3')
    """
    with localcontext() as context:
        context.prec = 50
        decimal = Decimal(value.numerator) / value.denominator
        return plain(decimal) if decimal * value.denominator == value.numerator else str(value)


def name(column: str) -> str:
    """The name of a column in SQL. The name of a column of a join keeps its dot.

    >>> name("Main1.ts"), name("count(*)")
    ('Main1.ts', '`count(*)`')
    """
    parts = column.split(".")
    if all(_PLAIN_NAME.fullmatch(part) for part in parts):
        return column
    return "`" + column.replace("`", "``") + "`"


def sql(expression: exp.Expr, below: Node) -> str:
    """A bound expression over the columns of the node below it. Aggregates are spelt out.

    >>> from headgate.plan.logical.nodes import Source
    >>> sql(exp.column("Main1.len", quoted=True) > 100, Source("Main", ()))
    'Main1.len > 100'
    """
    stands_for = _spelt_out(below)

    def readable(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        text, whole = stands_for.get(node.name, (name(node.name), True))
        if not (whole or node.parent is None or isinstance(node.parent, exp.Paren)):
            text = f"({text})"
        return exp.var(text)  # The name is printed as it is.

    return expression.copy().transform(readable).sql("spark", normalize_functions="lower")


def shown(expression: exp.Expr) -> str:
    """Any piece of a query, bound or not, for a message. A long one is cut.

    >>> from headgate.lang import parse_query
    >>> shown(parse_query("SELECT sum(`len`) FROM Main").selects[0])
    'sum(len)'
    """

    def readable(node: exp.Expr) -> exp.Expr:
        return exp.var(name(node.name)) if isinstance(node, exp.Column) and not node.table else node

    text = expression.copy().transform(readable).sql(dialect=Headgate, normalize_functions="lower")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def named(item: Named, below: Node) -> str:
    """A column of a projection: its expression, and its name if that differs.

    >>> from headgate.plan.logical.nodes import Source
    >>> named(Named("n", exp.column("count")), Source("Main", ()))
    'count AS n'
    """
    text, called = sql(item.expression, below), name(item.name)
    return text if called in (text, f"`{text}`") else f"{text} AS {called}"


def call(item: Call, below: Node) -> str:
    """An aggregate as the query wrote it.

    >>> from headgate.aggregates import builtin
    >>> from headgate.plan.logical.nodes import Source
    >>> call(Call("_agg0", builtin("sum"), (exp.column("len"),), where=exp.column("ok")), Source("Main", ()))
    'sum(len) FILTER (WHERE ok)'
    """
    arguments = [sql(a, below) for a in item.arguments] or ["*"]
    if item.parameter is not None:
        arguments.append(sql(item.parameter, below))
    distinct = "DISTINCT " if item.distinct else ""
    where = f" FILTER (WHERE {sql(item.where, below)})" if item.where is not None else ""
    return f"{item.function.name}({distinct}{', '.join(arguments)}){where}"


def _spelt_out(below: Node) -> dict[str, tuple[str, bool]]:
    """What each column named by the planner stands for, and whether it can do without parentheses."""
    while isinstance(below, Filter):
        below = below.input
    if not isinstance(below, Aggregate):
        return {}
    keys = {k.name: (sql(k.expression, below.input), not isinstance(k.expression, exp.Binary)) for k in below.keys}
    return keys | {c.name: (call(c, below.input), True) for c in below.calls}


def renaming(node: Project) -> str | None:
    """The alias that a projection gives to all of its input, as for the side of a join; else None.

    >>> from headgate.plan.logical.nodes import Field, Source
    >>> renaming(Project(Source("Main", (Field("ts"),)), (Named("m.ts", exp.column("ts")),)))
    'm'
    """
    alias, dot, _ = node.columns[0].name.partition(".")
    expected = [(f"{alias}.{field.name}", field.name) for field in node.input.fields]
    found = [(c.name, c.expression.name) for c in node.columns if isinstance(c.expression, exp.Column)]
    return alias if dot and found == expected else None
