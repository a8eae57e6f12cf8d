"""Binding: from the tree of a query's text to a logical plan, every name and type checked on the way."""

from __future__ import annotations

from sqlglot import exp

from headgate.errors import BindError
from headgate.lang import StreamUnion, WindowClause, Windowed
from headgate.plan.bind_aggregate import bind_aggregate, is_aggregate
from headgate.plan.bind_join import Input, bind_join
from headgate.plan.calls import is_call
from headgate.plan.catalog import Catalog
from headgate.plan.nodes import WINDOW_END, WINDOW_START, Filter, Named, Node, Project, Union
from headgate.plan.output import named_columns, star
from headgate.plan.scope import Item, Scope, column
from headgate.plan.words import shown

_NOT_IN_LANGUAGE = {
    "order": "ORDER BY: results of a continuous query have no order; sort them where you read them",
    "limit": "LIMIT: a continuous query has no last row",
    "offset": "OFFSET: a continuous query has no first row",
    "distinct": "SELECT DISTINCT: write GROUP BY with a window",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "TABLESAMPLE: sampling is chosen by a query's policy",
}


def bind(query: exp.Expr, catalog: Catalog) -> Node:
    """The logical plan of a parsed query over the streams of the catalog."""
    match query:
        case exp.Subquery():
            return bind(query.this, catalog)
        case exp.Union():
            return _union([bind(side, catalog) for side in _sides(query)])
        case exp.Select():
            return _select(query, catalog)
    raise BindError(f"expected a SELECT, found {shown(query)}")


def _select(select: exp.Select, catalog: Catalog) -> Node:
    _check(select)
    if with_ := select.args.get("with_"):
        for cte in with_.expressions:
            catalog = catalog.extended(cte.alias, bind(cte.this, catalog))
    inputs, on = _inputs(select, catalog)
    where = select.args.get("where")
    if where is not None and (call := next((n for n in where.walk() if is_call(n)), None)):
        raise BindError(f"WHERE cannot hold the aggregate {shown(call)}: use HAVING")
    predicates = [*on, *([where.this] if where else [])]
    clauses = [item.args["clause"] for item in select.expressions if isinstance(item, Windowed)]
    if len(inputs) == 1:
        (only,) = inputs
        scope = Scope(only.item.node, [only.item.alias], joined=False)
        for predicate in predicates:
            bound = scope.bind(predicate)
            scope.node = Filter(scope.node, bound)
        clauses += [only.clause] if only.clause else []
    else:
        scope = bind_join(inputs, predicates)
    if is_aggregate(select, clauses):
        return _passing_windows(bind_aggregate(select, scope, _one(clauses)))
    return _passing_windows(Project(scope.node, named_columns(_items(select, scope), scope.bind, scope.joined)))


def _passing_windows(project: Project) -> Node:
    # An answer says which window it is for, also when a query above only filters or renames.
    named = {c.name.lower() for c in project.columns}
    missing = [n for n in (WINDOW_START, WINDOW_END) if n not in named] if project.input.windowed else []
    return Project(project.input, (*project.columns, *(Named(n, column(n)) for n in missing)))


def _items(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """The select items, with * spelt out."""
    return [part for item in select.expressions for part in (star(item, scope) if item.is_star else [item])]


def _inputs(select: exp.Select, catalog: Catalog) -> tuple[list[Input], list[exp.Expr]]:
    from_ = select.args.get("from_")
    if from_ is None:
        raise BindError("a query reads a stream: add FROM and its name")
    inputs, on = [_input(from_.this, catalog)], []
    for join in [*(from_.this.args.get("joins") or []), *(select.args.get("joins") or [])]:
        if join.side or join.kind not in ("", "CROSS", "INNER") or join.args.get("using"):
            raise BindError(f"{shown(join)}: only inner joins with a window are possible, with ON or WHERE")
        inputs.append(_input(join.this, catalog))
        on += [join.args["on"]] if join.args.get("on") else []
    aliases = [i.item.alias.lower() for i in inputs]
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise BindError(f"two inputs are named {alias}: give one of them another name with AS")
    return inputs, on


def _input(item: exp.Expr, catalog: Catalog) -> Input:
    match item:
        case Windowed():
            inner = _input(item.this, catalog)
            return Input(inner.item, item.args["clause"])
        case StreamUnion():
            members = [_input(member, catalog).item for member in item.expressions]
            return Input(Item(item.alias or members[0].alias, _union_by_name(members)))
        case exp.Subquery():
            return Input(Item(item.alias or "_", bind(item.this, catalog)))
        case exp.Table() if item.name:
            node = catalog.relation(item.name)
            return Input(Item(item.alias or item.name, node))
    raise BindError(f"expected a stream or a SELECT in FROM, found {shown(item)}")


def _union_by_name(members: list[Item]) -> Node:
    first, *others = members
    names = [f.name for f in first.node.fields]
    aligned: list[Node] = [first.node]
    for other in others:
        found = {f.name.lower(): f.name for f in other.node.fields}
        if {n.lower() for n in names} != found.keys():
            odd = sorted({n.lower() for n in names} ^ found.keys())
            raise BindError(
                f"the streams of a UNION have the same columns, but {first.alias} and {other.alias} differ in"
                f" {', '.join(odd)}: select the common ones first"
            )
        aligned.append(Project(other.node, tuple(Named(n, column(found[n.lower()])) for n in names)))
    return Union(tuple(aligned))


def _union(members: list[Node]) -> Node:
    first, *others = members
    for other in others:
        if len(other.fields) != len(first.fields):
            raise BindError(
                f"the sides of a UNION have {len(first.fields)} and {len(other.fields)} columns: select the same number"
            )
    return Union(tuple(members))


def _sides(union: exp.Union) -> list[exp.Expr]:
    left = union.this
    return [*(_sides(left) if isinstance(left, exp.Union) else [left]), union.expression]


def _check(select: exp.Select) -> None:
    for key, why in _NOT_IN_LANGUAGE.items():
        if select.args.get(key):
            raise BindError(f"not part of the language: {why}")
    if over := select.find(exp.Window):
        raise BindError(f"not part of the language: {shown(over)}: give the query a window clause instead of OVER")


def _one(clauses: list[WindowClause]) -> WindowClause | None:
    if any(clause != clauses[0] for clause in clauses[1:]):
        raise BindError("two different windows in one SELECT: aggregate in a nested SELECT first")
    return clauses[0] if clauses else None
