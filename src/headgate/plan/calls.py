"""From the aggregate functions of a query's text to bound calls."""

from __future__ import annotations

from sqlglot import exp

from headgate.aggregates import AggregateFunction, Domain, UserAggregate, builtin, user_aggregate
from headgate.aggregates.builtin import AVG, AVG_DOUBLE, COUNT_ROWS
from headgate.errors import AggregateTypeError, BindError
from headgate.plan.nodes import Call
from headgate.plan.types import accepts, is_integral, type_of
from headgate.plan.words import shown

_NODES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.VariancePop: "var_pop",
    exp.Variance: "var_samp",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.First: "first",
    exp.FirstValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Median: "median",
    exp.Mode: "mode",
    exp.Quantile: "quantile",
    exp.PercentileCont: "quantile",
    exp.ArgMin: "min_by",
    exp.ArgMax: "max_by",
    exp.CountIf: "count_if",
}


def is_call(node: exp.Expr) -> bool:
    """Whether the node is an aggregate function with all that belongs to it (FILTER, IGNORE NULLS, WITHIN GROUP)."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        return is_call(node.this)
    if isinstance(node, exp.Anonymous):
        return builtin(node.name) is not None or user_aggregate(node.name) is not None
    if type(node) in _NODES or (isinstance(node, exp.Any) and isinstance(node.this, exp.Paren)):
        return True
    if isinstance(node, exp.AggFunc):
        raise BindError(f"{shown(node)}: {node.sql_name().lower()} is not an aggregate that Headgate knows")
    return False


def bind_call(node: exp.Expr, name: str, types: dict[str, str]) -> Call:
    """The call that a node stands for, its columns already resolved; `types` are those of the input's columns."""
    text, where, within = shown(node), None, None
    if isinstance(node, exp.Filter):
        where, node = node.expression.this, node.this
    if isinstance(node, exp.WithinGroup):
        within, node = node.expression.expressions[0], node.this
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        ignore, node = isinstance(node, exp.IgnoreNulls), node.this
        if ignore:
            where = exp.and_(where, exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null())))
    arguments, distinct = _arguments(node)
    function, parameter = _function(node, arguments), None
    if within is not None:
        if within.args.get("desc"):
            raise BindError(f"{text}: order the group upwards, and take 1 minus the fraction")
        arguments, parameter = [within.this], arguments[0]
    elif isinstance(node, exp.CountIf):
        where = exp.and_(where, arguments.pop().copy())
    elif isinstance(function, AggregateFunction) and function.parameters:
        parameter = arguments.pop() if len(arguments) > 1 else None
        if parameter is None:
            raise BindError(f"{text} needs a fraction between 0 and 1 as its second argument")
    if nested := next((n for a in arguments for n in a.walk() if is_call(n)), None):
        raise BindError(f"{text}: aggregate {shown(nested)} stands inside another; nest a SELECT instead")
    if isinstance(function, AggregateFunction):
        function = _typed(function, arguments, types, text)
        if distinct and function.name in ("min", "max", "bool_and", "bool_or", "min_by", "max_by"):
            distinct = False  # Repeated values never change an extreme.
        if distinct and len(arguments) > 1 and function.name != "count":
            raise BindError(f"{text}: DISTINCT takes one argument")
    elif distinct:
        raise BindError(f"{text}: a user-defined aggregate takes no DISTINCT")
    return Call(name, function, tuple(arguments), distinct, where, _fraction(parameter, text))


def _arguments(node: exp.Expr) -> tuple[list[exp.Expr], bool]:
    if isinstance(node, exp.Anonymous):
        arguments = list(node.expressions)
    elif isinstance(node, exp.Any):
        arguments = [node.this.this]
    else:
        present = [node.args.get(key) for key in ("this", "expression", "quantile")]
        arguments = [a for a in present if isinstance(a, exp.Expr)] + list(node.expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return list(arguments[0].expressions), True
    return arguments, False


def _function(node: exp.Expr, arguments: list[exp.Expr]) -> AggregateFunction | UserAggregate:
    if isinstance(node, exp.CountIf):
        return COUNT_ROWS
    if isinstance(node, exp.Count) and (not arguments or isinstance(arguments[0], exp.Star | exp.Literal)):
        arguments.clear()
        return COUNT_ROWS
    name = node.name if isinstance(node, exp.Anonymous) else _NODES.get(type(node), "bool_or")
    function = builtin(name) or user_aggregate(name)
    assert function is not None, "is_call lets only known names pass"
    return function


def _typed(
    function: AggregateFunction, arguments: list[exp.Expr], types: dict[str, str], text: str
) -> AggregateFunction:
    several = function.name == "count" and len(arguments) > 1
    if len(arguments) != function.arity and not several:
        raise BindError(f"{text}: {function.name} takes {function.arity} argument{'s' * (function.arity != 1)}")
    for argument in arguments[:1]:
        found = type_of(argument, types)
        if not accepts(function.domain, found):
            kind = {Domain.NUMERIC: "a number", Domain.BOOLEAN: "a boolean"}.get(
                function.domain, "a type with an order"
            )
            raise AggregateTypeError(f"{text}: {function.name} needs {kind}, but {shown(argument)} is {found}")
        if function is AVG and (found in ("bigint", "long") or not (is_integral(found) or found.startswith("dec"))):
            return AVG_DOUBLE
    return function


def _fraction(parameter: exp.Expr | None, text: str) -> exp.Expr | None:
    if parameter is None:
        return None
    literals = parameter.expressions if isinstance(parameter, exp.Array) else [parameter]
    for literal in literals:
        if not (isinstance(literal, exp.Literal) and not literal.is_string and 0 <= float(literal.name) <= 1):
            raise BindError(f"{text}: {shown(literal)} is not a fraction between 0 and 1")
    return parameter
