"""Binding of joins: the window conditions between streams, and the tables that tuples are looked up in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headgate.errors import BindError, WindowError
from headgate.lang import WindowClause, to_sql
from headgate.plan.logical.nodes import ROW_NUM, Band, Field, Filter, Join, Lookup, Node, Project, SameWindow, Source
from headgate.plan.logical.render import shown
from headgate.plan.logical.scope import Item, Scope, qualified
from headgate.plan.logical.windowing import check_axis, measure, windowing_attribute
from headgate.windows import Number


@dataclass(frozen=True)
class Input:
    """One input of a FROM, and the window clause after it. With `outer`, it is joined by LEFT JOIN on a condition."""

    item: Item
    clause: WindowClause | None = None
    outer: bool = False
    on: exp.Expr | None = None


@dataclass(frozen=True)
class _Side:
    """An input of a join: its windowing attribute (alias.column) and its range."""

    node: Node
    attribute: Field
    size: Number


def bind_join(inputs: list[Input], predicates: list[exp.Expr]) -> Scope:
    """The scope over the join of all inputs. Each part of a predicate is tested as soon as its columns exist.

    With more than two streams, every pair has to meet the window condition. Tables come after the streams.
    """
    streams, tables = [i for i in inputs if not is_table(i.item.node)], [i for i in inputs if is_table(i.item.node)]
    aliases = [i.item.alias for i in inputs]
    node, steps = _joined(streams)
    for i in tables:
        if i.clause is not None:
            raise WindowError(f"{i.item.alias} is a table and has no window: leave its clause out")
        node = Lookup(node, qualified(i.item).node, outer=i.outer)
        if i.on is not None:
            node = replace(node, predicate=Scope(node, aliases, joined=True).bind(i.on))
        steps.append(node)
    scope = Scope(node, aliases, joined=True)
    parts = [scope.bind(part) for predicate in predicates for part in _conjuncts(predicate)]
    scope.node = _with_predicates(steps, parts)
    return scope


def is_table(node: Node) -> bool:
    """Whether a plan reads a table and no stream."""
    match node:
        case Source(table=table):
            return table
        case Filter(input=below) | Project(input=below):
            return is_table(below)
    return False


def _joined(streams: list[Input]) -> tuple[Node, list[Join | Lookup]]:
    """The join of streams, and its steps. A single stream needs no window."""
    if len(streams) == 1:
        return qualified(streams[0].item).node, []
    streams, tumbling = _clauses(streams)
    first, *others = [_side(i) for i in streams]
    node, joined = first.node, [first]
    steps: list[Join | Lookup] = []
    for other in others:
        conditions = tuple(_condition(side, other, tumbling) for side in (joined[-1:] if tumbling else joined))
        node = Join(node, other.node, conditions)
        steps.append(node)
        joined.append(other)
    return node, steps


def _conjuncts(predicate: exp.Expr) -> list[exp.Expr]:
    if isinstance(predicate, exp.Paren):
        return _conjuncts(predicate.this)
    if isinstance(predicate, exp.And):
        return [*_conjuncts(predicate.left), *_conjuncts(predicate.right)]
    return [predicate]


def _with_predicates(steps: list[Join | Lookup], parts: list[exp.Expr]) -> Node:
    node, rest = steps[0].inputs[0], list(parts)
    if isinstance(steps[0], Lookup):
        node, rest = _filtered(node, rest)
    for step in steps:
        step = replace(step, left=node) if isinstance(step, Join) else replace(step, input=node)
        if isinstance(step, Lookup) and step.outer:
            node = step
            continue
        ready, rest = _ready(step, rest)
        node = replace(step, predicate=exp.and_(*ready) if ready else None)
    return _filtered(node, rest)[0]


def _filtered(node: Node, parts: list[exp.Expr]) -> tuple[Node, list[exp.Expr]]:
    ready, rest = _ready(node, parts)
    return (Filter(node, exp.and_(*ready)) if ready else node), rest


def _ready(node: Node, parts: list[exp.Expr]) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The parts of a predicate whose columns a node has, and the other parts."""
    ready = [p for p in parts if all(c.name in node.types for c in p.find_all(exp.Column))]
    return ready, [p for p in parts if p not in ready]


def _clauses(inputs: list[Input]) -> tuple[list[Input], bool]:
    """The inputs with a clause each, and whether the windows tumble. One TUMBLING at the end serves all inputs."""
    *before, last = inputs
    if last.clause is not None and last.clause.tumbling and not any(i.clause for i in before):
        inputs = [replace(i, clause=last.clause) for i in inputs]
    for i in inputs:
        if i.clause is None:
            raise WindowError(
                f"a join without a window: give {i.item.alias} a range, as in {i.item.alias} [RANGE 1 minute, WA ts],"
                " or end the list of streams with [RANGE TUMBLING 1 minute, WA ts]; what never moves on is a table,"
                f" flow.table('{i.item.alias}', ...)"
            )
        if i.clause.all or i.clause.slide is not None or i.clause.rattr or i.clause.sattr or i.clause.pa:
            raise WindowError(f"the window of {i.item.alias} in a join takes RANGE and WA only")
    tumbling = {bool(i.clause and i.clause.tumbling) for i in inputs}
    if len(tumbling) > 1:
        raise WindowError("a join has sliding windows or TUMBLING ones, not both")
    return inputs, tumbling.pop()


def _side(given: Input) -> _Side:
    scope, clause = Scope(given.item.node, [given.item.alias], joined=False), given.clause
    assert clause is not None
    assert clause.range is not None

    def resolve(reference: exp.Column) -> Field:
        if reference.name.lower() == ROW_NUM:
            raise WindowError("a join is windowed over time or a number: arrival numbers of two streams do not compare")
        found = scope.resolve(reference)
        if not isinstance(found, exp.Column):
            raise BindError(f"WA {shown(reference)} is not a column of {given.item.alias}")
        return scope.field(found.name)

    attribute = windowing_attribute(clause, resolve, given.item.node.progress, given.item.node.types)
    size = measure(clause.range, attribute, "RANGE")
    if size <= 0:
        raise WindowError(f"RANGE {to_sql(clause.range)} of {given.item.alias}: a range is greater than zero")
    return _Side(qualified(given.item).node, Field(f"{given.item.alias}.{attribute.name}", attribute.type), size)


def _condition(left: _Side, right: _Side, tumbling: bool) -> Band | SameWindow:
    check_axis([left.attribute, right.attribute], "a join")
    if not tumbling:
        return Band(left.attribute.name, right.attribute.name, before=right.size, after=left.size)
    if left.size != right.size:
        raise WindowError("the tumbling windows of a join have one size")
    return SameWindow(left.attribute.name, right.attribute.name, left.size)
