"""From the aggregate functions of a query's text to bound calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from sqlglot import exp

from headgate.aggregates import AggregateFunction, Domain, aggregate_named
from headgate.aggregates.builtin import AVG, AVG_DOUBLE, COUNT_ROWS
from headgate.errors import AggregateTypeError, BindError
from headgate.plan.logical.nodes import Call
from headgate.plan.logical.parts import opened
from headgate.plan.logical.render import shown
from headgate.plan.logical.scalars import called, check_within
from headgate.plan.logical.spark_functions import FUNCTIONS, Kind
from headgate.plan.logical.types import UNKNOWN, accepts, is_exact, type_of

#: What may follow an aggregate function; in the tree it stands around the function.
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
#: Those that Spark writes with WITHIN GROUP; the first only so.
_ORDERED = ("percentile_cont", "mode")
#: What others take between the parentheses, after the argument.
_NOT_INSIDE: dict[type[exp.Expr], str] = {exp.Order: "ORDER BY", exp.Limit: "LIMIT", exp.HavingMax: "HAVING"}
#: Repeated values never change an extreme.
_BLIND_TO_DISTINCT = ("min", "max", "bool_and", "bool_or", "min_by", "max_by")
_INSTEAD = {
    "any_value": "min(x) or first(x)",
    "approx_count_distinct": "count(DISTINCT x), which is exact",
    "approx_percentile": "percentile(x, 0.5), which is exact",
    "grouping": "one query for each grouping",
    "grouping_id": "one query for each grouping",
    "percentile_approx": "percentile(x, 0.5), which is exact",
    "percentile_disc": "percentile(x, 0.5)",
    "try_avg": "avg(x)",
    "try_sum": "sum(x)",
}
_NUMBERS = (*exp.DataType.NUMERIC_TYPES, exp.DataType.Type.DECIMAL)
_OWN = "hg.register_aggregate for one of your own"


@dataclass(frozen=True)
class _Written:
    """An aggregate function as it was written, taken apart."""

    text: str
    name: str
    arguments: list[exp.Expr]
    distinct: bool = False
    where: exp.Expr | None = None
    within: exp.Expr | None = None
    """What WITHIN GROUP orders by."""
    ignores_nulls: bool = False


def is_call(node: exp.Expr) -> bool:
    """Whether the node is an aggregate function with all that belongs to it (FILTER, IGNORE NULLS, WITHIN GROUP)."""
    if isinstance(node, _AROUND):
        return is_call(node.this)
    name = called(node)
    if name is None:
        return False
    if aggregate_named(name) is not None:
        return True
    if FUNCTIONS.get(name) is Kind.AGGREGATE:
        raise BindError(
            f"{shown(node)}: {name} is not an aggregate that Headgate knows: use {_INSTEAD.get(name, _OWN)}"
        )
    return False


def bind_call(node: exp.Expr, name: str, types: dict[str, str]) -> Call:
    """The call that a node stands for, its columns already resolved; `types` are those of the input's columns."""
    given = _taken_apart(node)
    for part in (*given.arguments, *(p for p in (given.where, given.within) if p is not None)):
        if nested := next((n for n in part.walk() if is_call(n)), None):
            raise BindError(f"{given.text}: aggregate {shown(nested)} stands inside another; nest a SELECT instead")
        if (word := _NOT_INSIDE.get(type(part))) is not None:
            raise BindError(f"{given.text}: {word} inside of an aggregate function is not part of the language")
        if not isinstance(part, exp.Star):
            check_within(part)
    return _call(given, name, types)


def _taken_apart(node: exp.Expr) -> _Written:
    """All that belongs to an aggregate function, whatever stands around what."""
    text, around = shown(node), {}
    while isinstance(node, _AROUND):
        kind = exp.IgnoreNulls if isinstance(node, exp.RespectNulls) else type(node)
        if kind in around:
            raise BindError(f"{text}: {shown(node)} says the same thing twice")
        around[kind], node = node, node.this
    name, arguments = opened(node, "this", "expressions")
    given = _Written(text, str(name.name if isinstance(name, exp.Identifier) else name).lower(), list(arguments or []))
    if (where := around.get(exp.Filter)) is not None:
        _, clause = opened(where, "this", "expression")
        given = replace(given, where=opened(clause, "this")[0])
    if (within := around.get(exp.WithinGroup)) is not None:
        given = replace(given, within=_ordered_by(given, opened(within, "this", "expression")[1]))
    return _with_nulls(_with_distinct(given), isinstance(around.get(exp.IgnoreNulls), exp.IgnoreNulls))


def _ordered_by(given: _Written, order: exp.Order) -> exp.Expr:
    if given.name not in _ORDERED:
        raise BindError(f"{given.text}: {given.name} takes no WITHIN GROUP")
    (several,) = opened(order, "expressions")
    if len(several) != 1:
        raise BindError(f"{given.text}: WITHIN GROUP orders by one expression")
    # NULLs do not count, wherever they come.
    by, descending, _ = opened(several[0], "this", "desc", "nulls_first")
    if descending:
        instead = "order the group upwards, and take 1 minus the fraction" if given.arguments else "leave DESC out"
        raise BindError(f"{given.text}: {instead}")
    assert isinstance(by, exp.Expr)
    return by


def _with_distinct(given: _Written) -> _Written:
    if len(given.arguments) == 1 and isinstance(given.arguments[0], exp.Distinct):
        (arguments,) = opened(given.arguments[0], "expressions")
        return replace(given, arguments=list(arguments), distinct=True)
    return given


def _with_nulls(given: _Written, ignores: bool) -> _Written:
    """With IGNORE NULLS inside the parentheses, after them, or as Spark's second argument."""
    arguments = given.arguments
    if arguments and isinstance(arguments[0], exp.IgnoreNulls | exp.RespectNulls):
        ignores = ignores or isinstance(arguments[0], exp.IgnoreNulls)
        arguments = [opened(arguments[0], "this")[0], *arguments[1:]]
    elif _function(given.name).name in ("first", "last") and len(arguments) == 2:
        flag = arguments.pop()
        if not isinstance(flag, exp.Boolean):
            raise BindError(f"{given.text}: whether to ignore NULLs is true or false, not {shown(flag)}")
        ignores = ignores or bool(flag.this)
    if ignores and _function(given.name).name not in ("first", "last"):
        raise BindError(f"{given.text}: IGNORE NULLS goes with first and last; other aggregates ignore them anyway")
    return replace(given, arguments=arguments, ignores_nulls=ignores)


def _function(name: str) -> AggregateFunction:
    function = aggregate_named(name)
    assert function is not None, "is_call lets only known names pass"
    return function


def _call(given: _Written, name: str, types: dict[str, str]) -> Call:
    function, arguments, where, parameter = _function(given.name), list(given.arguments), given.where, None
    if given.distinct and function.registered:
        raise BindError(f"{given.text}: a user-defined aggregate takes no DISTINCT")
    if given.name == "count_if":
        if len(arguments) != 1 or given.distinct:
            raise BindError(f"{given.text}: count_if takes one condition")
        where, arguments = exp.and_(where, arguments[0].copy()), []
    elif given.name == "count" and not given.distinct and len(arguments) == 1 and _is_every(arguments[0]):
        function, arguments = COUNT_ROWS, []
    elif given.name == "count" and not arguments:
        raise BindError(f"{given.text}: write count(*)")
    if any(isinstance(a, exp.Star) for a in arguments) and given.name == "count":
        raise BindError(f"{given.text}: name the columns; * stands alone, in count(*)")
    if any(isinstance(a, exp.Star) for a in arguments):
        raise BindError(f"{given.text}: * goes with count alone; name the columns")
    if given.ignores_nulls:
        where = exp.and_(where, exp.Not(this=exp.Is(this=exp.paren(arguments[0].copy()), expression=exp.Null())))
    if function.parameters or given.within is not None:
        arguments, parameter = _with_parameter(given, function, arguments)
    function = _typed(function, arguments, types, given)
    distinct = given.distinct and function.name not in _BLIND_TO_DISTINCT
    if distinct and len(arguments) > 1 and function.name != "count":
        raise BindError(f"{given.text}: DISTINCT takes one argument")
    return Call(name, function, tuple(arguments), distinct, where, parameter)


def _is_every(argument: exp.Expr) -> bool:
    """Whether an argument of count has a value for every tuple."""
    if isinstance(argument, exp.Star):
        opened(argument)
        return True
    return isinstance(argument, exp.Literal)


def _with_parameter(
    given: _Written, function: AggregateFunction, arguments: list[exp.Expr]
) -> tuple[list[exp.Expr], exp.Expr | None]:
    """What the values are made of, and the fraction of a quantile: before WITHIN GROUP, else the second argument."""
    if given.within is not None:
        if len(arguments) != function.parameters:
            wants = "one fraction" if function.parameters else "nothing"
            raise BindError(f"{given.text}: with WITHIN GROUP, {given.name} takes {wants} in its parentheses")
        return [given.within], _fraction(arguments[0], given.text) if arguments else None
    if given.name in _ORDERED and function.parameters:
        raise BindError(f"{given.text}: write {given.name}(0.5) WITHIN GROUP (ORDER BY x)")
    if len(arguments) == 1:
        raise BindError(f"{given.text} needs a fraction between 0 and 1 as its second argument")
    if len(arguments) > 2:
        raise BindError(f"{given.text}: {given.name} takes a value and a fraction, and no frequency")
    return arguments[:1], _fraction(arguments[1], given.text) if arguments else None


def _typed(
    function: AggregateFunction, arguments: list[exp.Expr], types: dict[str, str], given: _Written
) -> AggregateFunction:
    several = function.name == "count" and len(arguments) > 1
    if function.arity is not None and len(arguments) != function.arity and not several:
        _refuse_arity(given, function)
    for argument in arguments[:1]:
        found = type_of(argument, types)
        if not accepts(function.domain, found):
            kind = {Domain.NUMERIC: "a number", Domain.BOOLEAN: "a boolean"}.get(
                function.domain, "a type with an order"
            )
            raise AggregateTypeError(f"{given.text}: {given.name} needs {kind}, but {shown(argument)} is {found}")
        # Of a type that cannot be told here, Spark makes the average that the type has: of decimals, of intervals.
        if function is AVG and (found in ("bigint", "long") or not (is_exact(found) or found == UNKNOWN)):
            return AVG_DOUBLE
    return function


def _refuse_arity(given: _Written, function: AggregateFunction) -> NoReturn:
    raise BindError(f"{given.text}: {given.name} takes {function.arity} argument{'s' * (function.arity != 1)}")


def _fraction(parameter: exp.Expr, text: str) -> exp.Expr:
    several = isinstance(parameter, exp.Array)
    fractions = [_number(f) for f in (parameter.expressions if several else [parameter])]
    for fraction in fractions:
        if not (isinstance(fraction, exp.Literal) and not fraction.is_string and 0 <= float(fraction.name) <= 1):
            raise BindError(f"{text}: {shown(fraction)} is not a fraction between 0 and 1, such as 0.5")
    return exp.Array(expressions=fractions) if several else fractions[0]


def _number(written: exp.Expr) -> exp.Expr:
    """A literal without the type that may be part of it: 0.5D and 0.5BD are 0.5."""
    if isinstance(written, exp.Cast) and isinstance(written.this, exp.Literal) and written.to.is_type(*_NUMBERS):
        return exp.Literal.number(written.this.name)
    return written
