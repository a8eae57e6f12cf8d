"""Binding: from the tree of a query to a logical plan. Every name and type is checked on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from headgate.errors import BindError
from headgate.lang import StreamUnion, WindowClause, Windowed
from headgate.plan.logical.bind_aggregate import bind_aggregate, is_aggregate
from headgate.plan.logical.bind_distinct import bind_distinct
from headgate.plan.logical.bind_join import Input, bind_join, is_table
from headgate.plan.logical.calls import is_call
from headgate.plan.logical.catalog import Catalog
from headgate.plan.logical.nodes import Field, Filter, Named, Node, Project, Union
from headgate.plan.logical.output import bare, named_columns, star, with_rate, with_windows, without_rate
from headgate.plan.logical.parts import opened, refused, said
from headgate.plan.logical.render import shown
from headgate.plan.logical.scalars import check_within
from headgate.plan.logical.scope import Item, Scope, column
from headgate.plan.logical.select import Clauses, clauses_of, ctes_of
from headgate.plan.logical.windowing import check_axis

#: The name of a nested SELECT without an alias.
_NAMELESS = "_"
#: The sides and kinds of joins that the language has.
_SIDES, _KINDS = ("", "LEFT"), ("", "CROSS", "INNER", "OUTER")


def bind(query: exp.Expr, catalog: Catalog) -> Node:
    """The logical plan of a parsed query over the streams and tables of the catalog."""
    node = _bind(query, catalog)
    if is_table(node):
        raise BindError("the query reads a table and no stream: join a stream with it")
    return node


def _bind(query: exp.Expr, catalog: Catalog) -> Node:
    match query:
        case exp.Subquery():
            query, alias = opened(query, "this", "alias")
            return _renamed(_bind(query, catalog), alias)
        case exp.Union():
            sides, catalog = _sides(query, catalog)
            return _union([bind(side, catalog) for side in sides])
        case exp.Select():
            return _select(query, catalog)
    raise BindError(f"expected a SELECT, found {shown(query)}")


def _select(select: exp.Select, catalog: Catalog) -> Node:
    clauses = clauses_of(select, catalog)
    catalog = _with_ctes(clauses.ctes, catalog)
    inputs, on = _inputs(clauses, catalog)
    if clauses.where is not None and (call := next((n for n in clauses.where.walk() if is_call(n)), None)):
        raise BindError(f"WHERE cannot hold the aggregate {shown(call)}: use HAVING")
    predicates = [*on, *([clauses.where] if clauses.where is not None else [])]
    for predicate in predicates:
        check_within(predicate)
    windows = clauses.windows
    if len(inputs) == 1:
        (only,) = inputs
        scope = Scope(only.item.node, [only.item.alias], joined=False)
        for predicate in predicates:
            bound = scope.bind(predicate)
            scope.node = Filter(scope.node, bound)
        windows += [only.clause] if only.clause else []
    else:
        windows += _window_of_the_only_stream(inputs)
        scope = bind_join(inputs, predicates)
    if clauses.distinct is not None:
        return bind_distinct(clauses, scope, _items(clauses, scope), _one(windows))
    if is_aggregate(clauses, windows):
        answer = bind_aggregate(clauses, scope, _one(windows))
        return Project(answer.input, with_windows(answer.columns, answer.input))
    if clauses.having is not None:
        raise BindError("HAVING goes with an aggregate or GROUP BY: use WHERE")
    items = _items(clauses, scope)
    for item in items:
        check_within(bare(item))
    columns = named_columns(items, scope.bind, scope.joined)
    columns = without_rate(columns) if scope.joined else with_rate(columns, scope.node.types)
    return Project(scope.node, with_windows(columns, scope.node))


def _with_ctes(ctes: Iterable[exp.CTE], catalog: Catalog) -> Catalog:
    named = set[str]()
    for cte in ctes:
        query, alias = opened(cte, "this", "alias")
        if alias.name.lower() in named:
            raise BindError(f"WITH names two queries {alias.name}: give one of them another name")
        named.add(alias.name.lower())
        catalog = catalog.extended(alias.name, _renamed(_bind(query, catalog), alias))
    return catalog


def _renamed(node: Node, alias: exp.TableAlias | None) -> Node:
    """The node with its columns renamed by an alias: `AS s(a, b)`."""
    name, columns = alias_of(alias)
    if not columns:
        return node
    if len({c.lower() for c in columns}) < len(columns):
        raise BindError(f"{name}({', '.join(columns)}) gives two columns one name")
    if len(columns) != len(node.fields):
        raise BindError(f"{name}({', '.join(columns)}) names {len(columns)} columns, and there are {len(node.fields)}")
    return Project(node, tuple(Named(n, column(f.name)) for n, f in zip(columns, node.fields, strict=True)))


def alias_of(alias: exp.TableAlias | None) -> tuple[str, list[str]]:
    """The name of an alias ("" without one), and the names that it gives to columns."""
    if alias is None:
        return "", []
    name, columns = opened(alias, "this", "columns")
    if name is not None and not isinstance(name, exp.Identifier):
        raise BindError(f"expected a name, found {shown(name)}")
    return name.name if name is not None else "", [c.name for c in columns or ()]


def _window_of_the_only_stream(inputs: list[Input]) -> list[WindowClause]:
    """With one stream among tables, the clause after the stream belongs to the aggregate."""
    streams = [i for i in inputs if not is_table(i.item.node)]
    if not streams:
        names = ", ".join(i.item.alias for i in inputs)
        raise BindError(f"{names} are tables: a query reads a stream, and looks its tuples up in tables")
    return [streams[0].clause] if len(streams) == 1 and streams[0].clause else []


def _items(clauses: Clauses, scope: Scope) -> list[exp.Expr]:
    """The select items, each * replaced by its columns."""
    items = [item.this if isinstance(item, Windowed) and item.this.is_star else item for item in clauses.items]
    return [part for item in items for part in (star(item, scope) if item.is_star else [item])]


def _inputs(clauses: Clauses, catalog: Catalog) -> tuple[list[Input], list[exp.Expr]]:
    (first,) = opened(clauses.from_, "this")
    inputs, on = [_input(first, catalog)], []
    for join in clauses.joins:
        item, condition, side, kind, using = opened(join, "this", "on", "side", "kind", "using")
        if using:
            raise refused(said("using", using))
        if (side or "") not in _SIDES or (kind or "") not in _KINDS:
            word = f"{side or ''} {kind or ''}".strip()
            raise BindError(
                f"{word} JOIN is not part of the language: streams have only inner joins with a window, and tuples"
                " are looked up in tables by JOIN or LEFT JOIN"
            )
        joined = _input(item, catalog)
        if side and (not is_table(joined.item.node) or condition is None or condition == exp.true()):
            raise BindError(
                f"{shown(join)}: a LEFT JOIN is with a table, and has a condition ON; outer joins of streams are not"
                " part of the language"
            )
        inputs.append(replace(joined, outer=True, on=condition) if side else joined)
        on += [condition] if condition and not side else []
    aliases = [i.item.alias.lower() for i in inputs]
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise BindError(f"two inputs are named {alias}: give one of them another name with AS")
    return inputs, on


def _input(item: exp.Expr, catalog: Catalog) -> Input:
    match item:
        case Windowed():
            item, clause = opened(item, "this", "clause")
            return Input(_input(item, catalog).item, clause)
        case StreamUnion():
            several, alias = opened(item, "expressions", "alias")
            members = [_input(member, catalog).item for member in several]
            node = _renamed(_union_by_name(members), alias)
            return Input(Item(alias_of(alias)[0] or members[0].alias, node))
        case exp.Subquery():
            return Input(Item(item.alias or _NAMELESS, _bind(item, catalog)))
        case exp.Table(this=exp.Identifier()):
            name, alias = opened(item, "this", "alias")
            return Input(Item(alias_of(alias)[0] or name.name, _renamed(catalog.relation(name.name), alias)))
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
            nested = other.alias == _NAMELESS
            called = "the SELECT after UNION" if nested else other.alias
            hint = "for a union of two queries, put both into parentheses" if nested else "select the common ones first"
            raise BindError(
                f"the streams of a UNION have the same columns, but {first.alias} and {called} differ in"
                f" {', '.join(odd)}: {hint}"
            )
        aligned.append(Project(other.node, tuple(Named(n, column(found[n.lower()])) for n in names)))
    return _on_one_axis(Union(tuple(aligned)), [member.alias for member in members])


def _union(members: list[Node]) -> Node:
    first, *others = members
    for other in others:
        if len(other.fields) != len(first.fields):
            raise BindError(
                f"the sides of a UNION have {len(first.fields)} and {len(other.fields)} columns: select the same number"
            )
    return _on_one_axis(Union(tuple(members)), [f"side {i}" for i in range(1, len(members) + 1)])


def _on_one_axis(union: Union, names: list[str]) -> Union:
    """The union of inputs with these names, if windows over its progress mean the same for each input."""
    for attribute in union.progress:
        inputs = zip(names, union.inputs, strict=True)
        check_axis([Field(f"{name}.{attribute}", node.types[attribute]) for name, node in inputs], "a UNION")
    return union


def _sides(union: exp.Union, catalog: Catalog) -> tuple[list[exp.Expr], Catalog]:
    """The SELECTs of a union, and the catalog with the queries that its WITH names."""
    left, right, with_ = opened(union, "this", "expression", "with_")
    catalog = _with_ctes(ctes_of(with_), catalog)
    if isinstance(left, exp.Union):
        sides, catalog = _sides(left, catalog)
        return [*sides, right], catalog
    return [left, right], catalog


def _one(clauses: list[WindowClause]) -> WindowClause | None:
    if any(clause != clauses[0] for clause in clauses[1:]):
        raise BindError("two different windows in one SELECT: aggregate in a nested SELECT first")
    return clauses[0] if clauses else None
