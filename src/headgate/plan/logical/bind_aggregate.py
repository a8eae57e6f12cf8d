"""Binding of a SELECT that aggregates: its window, its keys, its calls, and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from headgate.errors import BindError, WindowError
from headgate.lang import WindowClause, Windowed
from headgate.plan.logical.calls import bind_call, is_call
from headgate.plan.logical.nodes import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Call,
    Field,
    Filter,
    Named,
    Node,
    Project,
)
from headgate.plan.logical.output import bare, name_of, named_columns, without_rate
from headgate.plan.logical.parts import opened
from headgate.plan.logical.render import shown
from headgate.plan.logical.scalars import called, check_within
from headgate.plan.logical.scope import Scope, as_field, column
from headgate.plan.logical.select import Clauses
from headgate.plan.logical.window_functions import SPARK_WINDOW, called_window, window_names
from headgate.plan.logical.windowing import bind_window, spark_window
from headgate.windows import Window

#: What has names that are not those of variables.
_NAMED = (exp.Alias, exp.Column, exp.Dot, exp.PropertyEQ)


def is_aggregate(clauses: Clauses, windows: list[WindowClause]) -> bool:
    """Whether a SELECT aggregates: it has a window for it, a GROUP BY, or an aggregate function."""
    parts = [*clauses.items, *([clauses.having] if clauses.having is not None else [])]
    return bool(windows or clauses.group is not None) or any(is_call(n) for part in parts for n in part.walk())


def bind_aggregate(clauses: Clauses, scope: Scope, clause: WindowClause | None) -> Project:
    """The plan of an aggregating SELECT over the bound input of `scope`."""
    return _Binder(clauses, scope, clause).bind()


@dataclass
class _Binder:
    clauses: Clauses
    scope: Scope
    clause: WindowClause | None
    keys: list[Named] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    window: Window | None = None
    window_call: exp.Expr | None = None
    """The function in GROUP BY that stands for the window."""

    def bind(self) -> Project:
        self._window_and_keys()
        items = list(self.clauses.items)
        for item in items:
            if item.is_star and not is_call(bare(item)):
                raise BindError("SELECT * and aggregates do not go together: name the columns of GROUP BY")
        columns = without_rate(named_columns(items, self._rewrite, self.scope.joined))
        having = self.clauses.having
        condition = self._rewrite(self._with_aliases(having)) if having is not None else None
        if not self.calls and self.clauses.group is None and not (self.window and self.window_keys):
            raise WindowError("a window without an aggregate: add one, such as count(*), or drop the window")
        node: Node = Aggregate(self.scope.node, self.window, tuple(self.keys), tuple(self.calls))
        if condition is not None:
            node = Filter(node, condition)
        return Project(node, columns)

    @property
    def window_keys(self) -> tuple[str, ...]:
        return () if self.window is None else self.window.partition

    def _window_and_keys(self) -> None:
        found: list[Window] = []
        for expression in map(self._meant, _ungrouped(self.clauses.group or ())):
            if (name := called(expression)) in window_names():
                found.append(self._window(expression, str(name)))
                self.window_call = expression
            else:
                self._key(self._group_expression(expression))
        if self.clause is not None:
            node = self.scope.node
            found.append(bind_window(self.clause, self._resolve, node.progress, node.types))
        if len(found) > 1:
            raise WindowError("two windows for one aggregate: keep the window clause or window(), not both")
        self.window = found[0] if found else None
        for name in self.window_keys:
            self._key(column(name))
        for name in (k.name for k in self.keys if self.window is not None and k.name in (WINDOW_START, WINDOW_END)):
            raise BindError(
                f"GROUP BY {name}: an answer has a column {name} of its own; give that of the input another name first,"
                f" FROM (SELECT {name} AS another, ... FROM ...)"
            )
        if self.window is None and not any(
            isinstance(k.expression, exp.Column) and k.expression.name in self.scope.node.progress for k in self.keys
        ):
            raise WindowError(
                "an aggregate without a window never ends: add a window clause, such as"
                " [RANGE 1 minute, SLIDE 1 minute, WA ts], or group by a progressing attribute"
            )

    def _window(self, call: exp.Expr, name: str) -> Window:
        """The window that a function in GROUP BY stands for."""
        arguments = opened(call, "this", "expressions")[1]
        if name == SPARK_WINDOW:
            return spark_window(arguments, self._resolve)
        column = arguments[0] if arguments else None
        field = self._resolve(column) if isinstance(column, exp.Column) else None
        return called_window(call, name, arguments, field)

    def _meant(self, expression: exp.Expr) -> exp.Expr:
        """What a GROUP BY item means: an ordinal or an alias of the select list, or an expression over the input."""
        items = self.clauses.items
        number = expression.this if isinstance(expression, exp.Neg) else expression
        if isinstance(number, exp.Literal) and not number.is_string:
            place = shown(expression)
            if not place.isdigit() or not 1 <= int(place) <= len(items):
                raise BindError(
                    f"GROUP BY {place}: the SELECT has {len(items)} columns, which are counted from 1; group by the"
                    " name of a column, or by its number"
                )
            return bare(items[int(place) - 1])
        if isinstance(expression, exp.Column) and not expression.table:
            known = {name.lower() for name in self.scope.columns()}
            if expression.name.lower() not in known:
                return self._with_aliases(expression)
        return expression

    def _group_expression(self, expression: exp.Expr) -> exp.Expr:
        """The key that a GROUP BY item is, over the input."""
        if call := next((n for n in expression.walk() if is_call(n)), None):
            raise BindError(f"GROUP BY cannot hold the aggregate {shown(call)}")
        check_within(expression)
        return self.scope.bind(expression)

    def _key(self, expression: exp.Expr) -> None:
        if any(k.expression == expression for k in self.keys):
            return
        name = expression.name if isinstance(expression, exp.Column) else self._new("_key", len(self.keys))
        self.keys.append(Named(name, expression))

    def _new(self, prefix: str, number: int) -> str:
        """A name for a key or a call, which no column of the input has."""
        taken = {name.lower() for name in self.scope.node.types}
        taken |= {key.name for key in self.keys} | {call.name for call in self.calls}
        return next(n for i in count(number) if (n := f"{prefix}{i}") not in taken)

    def _resolve(self, reference: exp.Column) -> Field:
        found = self.scope.resolve(reference)
        if not isinstance(found, exp.Column):
            raise BindError(f"{shown(reference)} is not a column of the input")
        return self.scope.field(found.name)

    def _with_aliases(self, expression: exp.Expr) -> exp.Expr:
        """The expression with the names of select items replaced by what they stand for."""
        expression = expression.copy()
        named = {name_of(i).lower(): bare(i) for i in self.clauses.items if isinstance(i, exp.Alias | Windowed)}
        # An aggregate is over columns of the input, whatever columns of the answer are called.
        within = {id(n) for call in expression.find_all(exp.Expr) if is_call(call) for n in call.walk()}

        def stands_for(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.table or id(node) in within or node.name.lower() not in named:
                return node
            found = named[node.name.lower()].copy()
            return found if node.parent is None or isinstance(found, exp.Column) else exp.paren(found, copy=False)

        return expression.transform(stands_for, copy=False)

    def _rewrite(self, expression: exp.Expr) -> exp.Expr:
        """An expression of the SELECT or HAVING, over the columns that the aggregate gives."""
        rewritten = expression.copy().transform(self._rewrite_node)
        check_within(rewritten)
        return rewritten

    def _rewrite_node(self, node: exp.Expr) -> exp.Expr:
        if node == self.window_call:
            return _window_struct()
        if is_call(node):
            return as_field(node, column(self._call(node).name))
        if isinstance(node, exp.Column) and self.window is not None:
            own = self._window_reference(node)
            if own is not None:
                return own
        key = self._key_for(node)
        if key is not None:
            return as_field(node, key)
        if isinstance(node, exp.Column):
            self.scope.resolve(node)  # An unknown column is the better message.
            raise BindError(f"{shown(node)} is neither in GROUP BY nor inside an aggregate")
        return node

    def _call(self, node: exp.Expr) -> Call:
        if variable := _variable_in(node):
            raise BindError(f"{shown(node)}: {variable} is what the function goes through, and no column of the input")
        bound = self.scope.bind(node)
        call = bind_call(bound, self._new("_agg", len(self.calls)), self.scope.node.types)
        if self.window is None and call.function.name in ("first", "last"):
            raise BindError(f"{shown(node)}: the first and last by time need a window")
        for known in self.calls:
            if replace(known, name=call.name) == call:
                return known
        self.calls.append(call)
        return call

    def _key_for(self, node: exp.Expr) -> exp.Expr | None:
        """The key that an expression is, or the field of a key; None for any other."""
        if isinstance(node, exp.Identifier | exp.Literal):
            return None
        try:
            bound = self.scope.bind(node)
        except BindError:
            return None  # It may still be made of keys and calls below.
        for key in self.keys:
            if key.expression == bound:
                return column(key.name)
        if isinstance(bound, exp.Dot) and isinstance(node, exp.Column):
            base = bound.find(exp.Column)
            return bound if any(k.expression == base for k in self.keys) else None
        return None

    def _window_reference(self, node: exp.Column) -> exp.Expr | None:
        """Outside of aggregates, window_start, window_end and Spark's window column speak of the query's own window."""
        name, qualifier = node.name.lower(), node.table.lower()
        if qualifier == "window" and name in ("start", "end"):
            return column(f"window_{name}")
        if not qualifier and name in (WINDOW_START, WINDOW_END):
            return column(name)
        if not qualifier and name == "window" and "window" not in (c.lower() for c in self.scope.columns()):
            return _window_struct()
        return None


def _variable_in(call: exp.Expr) -> str | None:
    """A variable of a function around an aggregate that it is made of: x of transform(xs, x -> max(x))."""
    variables, around = set[str](), call.find_ancestor(exp.Lambda)
    while around is not None:
        variables |= {e.name.lower() for e in around.expressions}
        around = around.find_ancestor(exp.Lambda)
    names = (n.name for n in call.find_all(exp.Identifier) if not isinstance(n.parent, _NAMED))
    return next((name for name in names if name.lower() in variables), None)


def _ungrouped(items: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """The items of a GROUP BY, without parentheses around one."""
    for item in items:
        if isinstance(item, exp.Tuple):
            instead = "leave the parentheses out" if item.expressions else "leave it out"
            raise BindError(f"GROUP BY {shown(item)}: {instead}")
        yield item.unnest()


def _window_struct() -> exp.Expr:
    """What Spark's window() gives."""
    start, end = ((exp.Literal.string(n), column(f"window_{n}")) for n in ("start", "end"))
    return exp.func("named_struct", *start, *end, dialect="spark")
