"""Binding: from the tree of a query's text to a logical plan, every name and type checked on the way."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headgate.errors import BindError
from headgate.lang import StreamUnion, WindowClause, Windowed
from headgate.plan.bind_aggregate import bind_aggregate, is_aggregate
from headgate.plan.bind_distinct import bind_distinct
from headgate.plan.bind_join import Input, bind_join, is_table
from headgate.plan.calls import is_call
from headgate.plan.catalog import Catalog
from headgate.plan.nodes import Filter, Named, Node, Project, Union
from headgate.plan.output import named_columns, star, with_windows
from headgate.plan.scope import Item, Scope, column
from headgate.plan.words import shown

_NOT_IN_LANGUAGE = {
    "order": "ORDER BY: results of a continuous query have no order; sort them where you read them",
    "limit": "LIMIT: a continuous query has no last row",
    "offset": "OFFSET: a continuous query has no first row",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "TABLESAMPLE: sampling is chosen by a query's policy",
}


def bind(query: exp.Expr, catalog: Catalog) -> Node:
    """The logical plan of a parsed query over the streams and tables of the catalog."""
    node = _bind(query, catalog)
    if is_table(node):
        raise BindError("the query reads a table and no stream: join a stream with it")
    return node


def _bind(query: exp.Expr, catalog: Catalog) -> Node:
    match query:
        case exp.Subquery():
            return _bind(query.this, catalog)
        case exp.Union():
            return _union([bind(side, catalog) for side in _sides(query)])
        case exp.Select():
            return _select(query, catalog)
    raise BindError(f"expected a SELECT, found {shown(query)}")


def _select(select: exp.Select, catalog: Catalog) -> Node:
    _check(select)
    if with_ := select.args.get("with_"):
        for cte in with_.expressions:
            catalog = catalog.extended(cte.alias, _bind(cte.this, catalog))
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
        clauses += _window_of_the_only_stream(inputs)
        scope = bind_join(inputs, predicates)
    if (distinct := select.args.get("distinct")) is not None:
        return bind_distinct(select, distinct, scope, _items(select, scope), _one(clauses))
    if is_aggregate(select, clauses):
        answer = bind_aggregate(select, scope, _one(clauses))
        return Project(answer.input, with_windows(answer.columns, answer.input))
    columns = named_columns(_items(select, scope), scope.bind, scope.joined)
    return Project(scope.node, with_windows(columns, scope.node))


def _window_of_the_only_stream(inputs: list[Input]) -> list[WindowClause]:
    """Behind the only stream among tables, a clause is that of the aggregate."""
    streams = [i for i in inputs if not is_table(i.item.node)]
    if not streams:
        names = ", ".join(i.item.alias for i in inputs)
        raise BindError(f"{names} are tables: a query reads a stream, and looks its tuples up in tables")
    return [streams[0].clause] if len(streams) == 1 and streams[0].clause else []


def _items(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """The select items, with * spelt out."""
    return [part for item in select.expressions for part in (star(item, scope) if item.is_star else [item])]


def _inputs(select: exp.Select, catalog: Catalog) -> tuple[list[Input], list[exp.Expr]]:
    from_ = select.args.get("from_")
    if from_ is None:
        raise BindError("a query reads a stream: add FROM and its name")
    inputs, on = [_input(from_.this, catalog)], []
    for join in [*(from_.this.args.get("joins") or []), *(select.args.get("joins") or [])]:
        if join.side not in ("", "LEFT") or join.kind not in ("", "CROSS", "INNER", "OUTER") or join.args.get("using"):
            raise BindError(f"{shown(join)}: only inner joins with a window are possible, with ON or WHERE")
        joined, condition = _input(join.this, catalog), join.args.get("on")
        if join.side and (not is_table(joined.item.node) or condition == exp.true()):
            raise BindError(f"{shown(join)}: a LEFT JOIN is with a table, and has a condition ON")
        inputs.append(replace(joined, outer=True, on=condition) if join.side else joined)
        on += [condition] if condition and not join.side else []
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
            return Input(Item(item.alias or "_", _bind(item.this, catalog)))
        case exp.Table() if item.name:
            node = catalog.relation(item.name)
            return Input(Item(item.alias or item.name, node))
    raise BindError(f"expected a stream or a SELECT in FROM, found {shown(item)}")


def _union_by_name(members: list[Item]) -> Node:
    for member in members:
        if is_table(member.node):
            raise BindError(f"{member.alias} is a table: a UNION is of streams")
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
