"""The columns of a query's answer, and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from sqlglot import exp

from headgate.errors import BindError
from headgate.lang import Windowed
from headgate.plan.logical.nodes import SAMPLING_RATE, WINDOW_END, WINDOW_START, Named, Node
from headgate.plan.logical.parts import opened
from headgate.plan.logical.render import shown
from headgate.plan.logical.scope import Scope, column


def bare(item: exp.Expr) -> exp.Expr:
    """The expression of a select item, without its alias and window clause."""
    return item.unalias() if not isinstance(item, Windowed) else bare(item.this)


def name_of(item: exp.Expr) -> str:
    """The name of a select item: its alias, its column's name, or its text.

    >>> from sqlglot import parse_one
    >>> name_of(parse_one("count(*)"))
    'count(*)'
    """
    if isinstance(item, Windowed):
        return name_of(item.this)
    if isinstance(item, exp.Alias | exp.Column | exp.Dot):
        return item.alias or item.name
    return item.sql("spark", normalize_functions="lower")


def star(item: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """All columns that a * (or stream.*) stands for, except those that EXCEPT names."""
    whole, qualifier = item, ""
    if isinstance(item, exp.Column):
        whole, qualifier = opened(item, "this", "table")
        qualifier = qualifier.name if qualifier is not None else ""
    columns = scope.all_columns(qualifier)
    (excluded,) = opened(whole, "except_")
    for name in excluded or []:
        reference = name if isinstance(name, exp.Column) else exp.column(name.copy())
        if qualifier and not reference.table:
            reference = exp.column(reference.this.copy(), table=qualifier)
        found = scope.resolve(reference)
        kept = [c for c in columns if scope.resolve(c) != found]
        if len(kept) == len(columns):
            raise BindError(f"* EXCEPT ({shown(name)}): there is no such column in {shown(item)}")
        columns = kept
    if not columns:
        raise BindError(f"{shown(item)} leaves no column")
    return [*columns]


def named_columns(items: list[exp.Expr], bind: Callable[[exp.Expr], exp.Expr], joined: bool) -> tuple[Named, ...]:
    """The output columns. Where two sides of a join share a name, they are called alias_name."""
    names = [name_of(item) for item in items]
    clashes = {name for name, times in Counter(n.lower() for n in names).items() if times > 1}
    columns = []
    for item, name in zip(items, names, strict=True):
        expression = bare(item)
        if joined and name.lower() in clashes and isinstance(expression, exp.Column) and expression.table:
            name = f"{expression.table}_{name}"
        columns.append(Named(name, bind(expression)))
    for name, times in Counter(c.name.lower() for c in columns).items():
        if times > 1:
            raise BindError(f"two columns of the answer are named {name}: give one of them another name with AS")
    return tuple(columns)


def without_rate(columns: tuple[Named, ...]) -> tuple[Named, ...]:
    """The columns, none of which may have the name of the sampling rate that each answer gets."""
    if any(c.name.lower() == SAMPLING_RATE for c in columns):
        raise BindError(
            f"an answer has a column {SAMPLING_RATE} of its own: give yours another name with AS, or leave it out,"
            f" * EXCEPT ({SAMPLING_RATE})"
        )
    return columns


def with_rate(columns: tuple[Named, ...], types: Mapping[str, str]) -> tuple[Named, ...]:
    """The columns of tuples that are passed on. The rate that they were sampled at before is part of their own rate."""
    rate = Named(SAMPLING_RATE, column(SAMPLING_RATE))
    return columns if rate in columns and types[SAMPLING_RATE] == "double" else without_rate(columns)


def with_windows(columns: tuple[Named, ...], below: Node) -> tuple[Named, ...]:
    """The columns with those of the window. An answer names its window, even where a query only passes it on."""
    if not below.windowed:
        return columns
    named = {c.name.lower(): c for c in columns}
    for name in (WINDOW_START, WINDOW_END):
        if name in named and named[name].expression != column(name):
            raise BindError(
                f"an answer has a column {name} of its own, which says where its window is: give yours another name"
                " with AS"
            )
    return (*columns, *(Named(name, column(name)) for name in (WINDOW_START, WINDOW_END) if name not in named))
