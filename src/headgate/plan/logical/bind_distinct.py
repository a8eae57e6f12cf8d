"""Binding of duplicate elimination: SELECT DISTINCT ON (keys) ... FROM stream [RANGE 1 minute, WA ts]."""

from __future__ import annotations

from sqlglot import exp

from headgate.errors import BindError, WindowError
from headgate.lang import WindowClause, to_sql
from headgate.plan.logical.bind_aggregate import is_aggregate
from headgate.plan.logical.nodes import ROW_NUM, Distinct, Field, Named, Node, Project
from headgate.plan.logical.output import bare, named_columns, with_windows, without_rate
from headgate.plan.logical.parts import opened
from headgate.plan.logical.render import shown
from headgate.plan.logical.scalars import check_within
from headgate.plan.logical.scope import Scope, column
from headgate.plan.logical.select import Clauses
from headgate.plan.logical.windowing import measure, windowing_attribute
from headgate.windows import Number

_KEY, _AT = "_hg_key", "_hg_at"


def bind_distinct(clauses: Clauses, scope: Scope, items: list[exp.Expr], clause: WindowClause | None) -> Node:
    """The plan of a SELECT DISTINCT ON, over the scope of its input."""
    assert clauses.distinct is not None
    (on,) = opened(clauses.distinct, "on")
    if on is None:
        raise BindError(
            "SELECT DISTINCT: say by which keys, and within which range, as in"
            " SELECT DISTINCT ON (id) * FROM Main [RANGE 1 minute, WA ts]"
        )
    if is_aggregate(clauses, []) or clauses.having is not None:
        raise BindError("DISTINCT ON does not go with an aggregate: nest one SELECT in the other")
    for part in (*map(bare, items), *_keys(on)):
        check_within(part)
    attribute, length = _range(clause, scope)
    columns = with_windows(without_rate(named_columns(items, scope.bind, scope.joined)), scope.node)
    keys = [Named(f"{_KEY}{i}", scope.bind(key)) for i, key in enumerate(_keys(on))]
    # The place has the name that the answer gives it, so that the answer progresses too.
    place = next((c.name for c in columns if c.expression == column(attribute)), None)
    hidden = keys if place else [*keys, Named(_AT, column(attribute))]
    below = Project(scope.node, (*columns, *hidden))
    node = Distinct(below, tuple(key.name for key in keys), place or _AT, length)
    return Project(node, tuple(Named(c.name, column(c.name)) for c in columns))


def _keys(on: exp.Expr) -> list[exp.Expr]:
    return on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]


def _range(clause: WindowClause | None, scope: Scope) -> tuple[str, Number]:
    """What the range is measured on, and how long it is."""
    if clause is None or clause.range is None:
        raise WindowError("DISTINCT ON needs a range after its stream, as in FROM Main [RANGE 1 minute, WA ts]")
    if clause.slide is not None or clause.tumbling or clause.rattr or clause.sattr or clause.pa:
        raise WindowError("the window of DISTINCT ON takes RANGE and WA only")

    def resolve(reference: exp.Column) -> Field:
        found = scope.resolve(reference)
        if not isinstance(found, exp.Column):
            raise BindError(f"WA {shown(reference)} is not a column of the input")
        return scope.field(found.name)

    attribute = windowing_attribute(clause, resolve, scope.node.progress, scope.node.types)
    if attribute.name == ROW_NUM:
        raise WindowError("DISTINCT ON looks back over time or a number, and not over rows, whose order means nothing")
    length = measure(clause.range, attribute, "RANGE")
    if length <= 0:
        raise WindowError(f"RANGE {to_sql(clause.range)} of DISTINCT ON: a range is greater than zero")
    return attribute.name, length
