"""The clauses of a SELECT, taken out of its tree. The functions in them are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.errors import BindError
from headgate.lang import WindowClause, Windowed
from headgate.plan.logical.parts import opened
from headgate.plan.logical.scalars import check_scalar

if TYPE_CHECKING:
    from headgate.plan.logical.catalog import Catalog


@dataclass(frozen=True)
class Clauses:
    """The parts of a SELECT."""

    items: tuple[exp.Expr, ...]
    from_: exp.From
    joins: tuple[exp.Join, ...] = ()
    ctes: tuple[exp.CTE, ...] = ()
    where: exp.Expr | None = None
    group: tuple[exp.Expr, ...] | None = None
    having: exp.Expr | None = None
    distinct: exp.Distinct | None = None

    @property
    def windows(self) -> list[WindowClause]:
        """The window clauses after its items."""
        return [item.args["clause"] for item in self.items if isinstance(item, Windowed)]


def clauses_of(select: exp.Select, catalog: Catalog) -> Clauses:
    """The parts of a SELECT. All functions are known, and expressions hold nothing that they may not hold."""
    keys = ("with_", "expressions", "from_", "joins", "where", "group", "having", "distinct")
    with_, items, from_, joins, where, group, having, distinct = opened(select, *keys)
    if from_ is None:
        raise BindError("a query reads a stream: add FROM and its name")
    found = Clauses(
        tuple(items),
        from_,
        tuple(joins or ()),
        ctes_of(with_),
        opened(where, "this")[0] if where else None,
        tuple(opened(group, "expressions")[0] or ()) if group else None,
        opened(having, "this")[0] if having else None,
        distinct,
    )
    conditions = (found.where, found.having, *(join.args.get("on") for join in found.joins))
    expressions = (*found.items, *(found.group or ()), *(c for c in conditions if c is not None))
    for expression in expressions:
        check_scalar(expression, catalog)
    return found


def ctes_of(with_: exp.With | None) -> tuple[exp.CTE, ...]:
    """The queries of the WITH, by name."""
    return tuple(opened(with_, "expressions")[0]) if with_ is not None else ()
