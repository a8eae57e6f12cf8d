"""The value of a scalar SQL expression for one row, by Spark's rules in ANSI mode. It walks the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, TypeAlias

from sqlglot import exp

from headgate.errors import BindError, Error
from headgate.reference import functions, values
from headgate.reference.casts import cast
from headgate.reference.strict import NAMED, STRICT

Row: TypeAlias = Mapping[str, Any]


def evaluate(expression: exp.Expr, row: Row) -> Any:
    """Give the value of an expression, None for NULL.

    Times are datetimes without a zone, in UTC; a date is its midnight; a struct is a dict. Whole numbers have
    no largest value here, and decimals keep up to 38 digits rather than the scale that Spark derives.

    >>> import sqlglot
    >>> evaluate(sqlglot.parse_one("if(price > 10, price * 0.5, NULL)", dialect="spark"), {"price": 30})
    Decimal('15.0')
    """
    if type(expression) in STRICT:
        return _strict(expression, row)
    if type(expression) in FORMS:
        return FORMS[type(expression)](expression, row)
    raise _unsupported(expression)


def truth(expression: exp.Expr, row: Row) -> bool:
    """Give whether a predicate holds for a row. If it is unknown, it does not.

    >>> import sqlglot
    >>> [truth(sqlglot.parse_one("n > 1", dialect="spark"), {"n": n}) for n in (2, 1, None)]
    [True, False, False]
    """
    return _logical(expression, row) is True


def _unsupported(node: exp.Expr) -> Error:
    return Error(f"cannot evaluate {node.sql('spark')}: the reference does not support {type(node).__name__}")


def _strict(node: exp.Expr, row: Row) -> Any:
    function, names = STRICT[type(node)]
    if any(isinstance(arg, exp.Expr) and name not in names for name, arg in node.args.items()):
        raise _unsupported(node)
    args = [evaluate(node.args[name], row) for name in names if node.args.get(name) is not None]
    return _call(node, function, *args)


def _call(node: exp.Expr, function: Callable[..., Any], *args: Any) -> Any:
    """Give function(*args), or NULL if an argument is NULL. Errors of Python become ours, about this node."""
    if any(arg is None for arg in args):
        return None
    try:
        return function(*args)
    except ZeroDivisionError:
        hint = f"guard the divisor with nullif({node.expression.sql('spark')}, 0)"
        raise Error(f"division by zero in {node.sql('spark')}: {hint}") from None
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        given = ", ".join(map(repr, args))
        raise Error(f"cannot evaluate {node.sql('spark')} for {given}: {error}") from error


# Each of these forms decides which of its parts it evaluates, and what NULL means.


def _literal(node: exp.Literal, _row: Row) -> Any:
    text = node.name
    if node.is_string:
        return text
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _column(node: exp.Column, row: Row) -> Any:
    """Give the value of a column. `a.b` is the field b of the struct a: columns have no qualifiers here."""
    first, *fields = (part.name for part in node.parts)
    if first not in row:
        raise BindError(f"there is no column {first}: the row has {', '.join(row)}")
    value = row[first]
    for field in fields:
        value = _field(value, field)
    return value


def _field(struct: Any, name: str) -> Any:
    if struct is None:
        return None
    if not isinstance(struct, Mapping) or name not in struct:
        raise BindError(f"there is no field {name} in {struct!r}")
    return struct[name]


def _logical(node: exp.Expr, row: Row) -> bool | None:
    value = evaluate(node, row)
    if value is not None and not isinstance(value, bool):
        raise Error(f"{node.sql('spark')} is {value!r}: a condition must be true, false or NULL")
    return value


def _and(node: exp.And, row: Row) -> bool | None:
    left = _logical(node.left, row)
    right = False if left is False else _logical(node.right, row)
    return False if right is False else None if left is None else right


def _or(node: exp.Or, row: Row) -> bool | None:
    left = _logical(node.left, row)
    right = True if left is True else _logical(node.right, row)
    return True if right is True else None if left is None else right


def _not(node: exp.Not, row: Row) -> bool | None:
    value = _logical(node.this, row)
    return None if value is None else not value


def _is(node: exp.Is, row: Row) -> bool:
    value, asked = evaluate(node.this, row), evaluate(node.expression, row)
    return value is asked


def _null_safe_equal(node: exp.NullSafeEQ | exp.NullSafeNEQ, row: Row) -> bool:
    a, b = evaluate(node.left, row), evaluate(node.right, row)
    return a is b if a is None or b is None else bool(_call(node, values.compare, a, b) == 0)


def _in(node: exp.In, row: Row) -> bool | None:
    if not node.expressions:
        raise _unsupported(node)
    value = evaluate(node.this, row)
    found = [_call(node, values.compare, value, evaluate(choice, row)) for choice in node.expressions]
    return True if 0 in found else None if None in found else False


def _between(node: exp.Between, row: Row) -> bool | None:
    if node.args.get("symmetric"):
        raise _unsupported(node)
    value, low, high = (evaluate(node.args[name], row) for name in ("this", "low", "high"))
    below, above = _call(node, values.compare, value, low), _call(node, values.compare, value, high)
    if below == -1 or above == 1:
        return False
    return None if below is None or above is None else True


def _like(node: exp.Like | exp.ILike, row: Row, escape: str = "\\") -> bool | None:
    match_ = partial(functions.like, escape=escape, ignore_case=isinstance(node, exp.ILike))
    fits = _call(node, match_, evaluate(node.this, row), evaluate(node.expression, row))
    return not fits if node.args.get("negate") and fits is not None else fits


def _escape(node: exp.Escape, row: Row) -> bool | None:
    return _like(node.this, row, evaluate(node.expression, row))


def _case(node: exp.Case, row: Row) -> Any:
    for branch in node.args["ifs"]:
        if truth(branch.this, row) if node.this is None else _equal(node.this, branch.this, row):
            return evaluate(branch.args["true"], row)
    return evaluate(node.args["default"], row) if node.args.get("default") is not None else None


def _equal(left: exp.Expr, right: exp.Expr, row: Row) -> bool:
    return bool(_call(left, values.compare, evaluate(left, row), evaluate(right, row)) == 0)


def _if(node: exp.If, row: Row) -> Any:
    chosen = node.args["true"] if truth(node.this, row) else node.args.get("false")
    return None if chosen is None else evaluate(chosen, row)


def _coalesce(node: exp.Coalesce, row: Row) -> Any:
    found = (evaluate(choice, row) for choice in (node.this, *node.expressions))
    return next((value for value in found if value is not None), None)


def _nullif(node: exp.Nullif, row: Row) -> Any:
    return None if _equal(node.this, node.expression, row) else evaluate(node.this, row)


def _extreme(node: exp.Greatest | exp.Least, row: Row) -> Any:
    """Give the greatest or least of the values, without the NULLs."""
    sign = 1 if isinstance(node, exp.Greatest) else -1
    best = None
    for choice in (node.this, *node.expressions):
        value = evaluate(choice, row)
        if best is None or (value is not None and _call(node, values.compare, value, best) == sign):
            best = value
    return best


def _cast(node: exp.Cast | exp.TryCast, row: Row) -> Any:
    # This dialect parses CAST as a TryCast too. Only `safe` tells that TRY_CAST was written.
    value = evaluate(node.this, row)
    if value is None:
        return None
    try:
        return cast(value, node.to)
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        if node.args.get("safe"):
            return None
        raise Error(f"cannot cast {value!r} to {node.to.sql('spark')}: {error}") from error


def _interval(node: exp.Interval, row: Row) -> Any:
    unit = node.args.get("unit")
    if unit is None:
        return _call(node, functions.intervals, evaluate(node.this, row))
    if unit.name.upper().removesuffix("S") not in functions.UNITS:
        raise _unsupported(node)
    count = evaluate(node.this, row)
    return _call(node, functions.interval, None if count is None else str(count), unit.name)


def _trim(node: exp.Trim, row: Row) -> Any:
    characters = " " if node.expression is None else evaluate(node.expression, row)
    return _call(node, functions.trim, evaluate(node.this, row), node.args.get("position") or "BOTH", characters)


def _date_trunc(node: exp.TimestampTrunc, row: Row) -> Any:
    unit = node.args["unit"].name.upper()
    if unit not in ("SECOND", "MINUTE", "HOUR", "DAY"):
        raise _unsupported(node)
    return _call(node, functions.truncate_time, evaluate(node.this, row), unit)


def _concat(node: exp.Concat, row: Row) -> Any:
    return _call(node, functions.concat, *(evaluate(part, row) for part in node.expressions))


def _named(node: exp.Anonymous, row: Row) -> Any:
    function = NAMED.get(node.name.lower())
    if function is None:
        raise Error(f"cannot evaluate {node.sql('spark')}: the reference has no function {node.name}")
    return _call(node, function, *(evaluate(arg, row) for arg in node.expressions))


FORMS: dict[type[exp.Expr], Callable[[Any, Row], Any]] = {
    exp.Literal: _literal,
    exp.Null: lambda _node, _row: None,
    exp.Boolean: lambda node, _row: bool(node.this),
    exp.Column: _column,
    exp.Dot: lambda node, row: _field(evaluate(node.this, row), node.expression.name),
    exp.Struct: lambda node, row: {p.name: evaluate(p.expression, row) for p in node.expressions},
    exp.Paren: lambda node, row: evaluate(node.this, row),
    exp.Alias: lambda node, row: evaluate(node.this, row),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeEQ: _null_safe_equal,
    exp.NullSafeNEQ: lambda node, row: not _null_safe_equal(node, row),
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Interval: _interval,
    exp.Trim: _trim,
    exp.TimestampTrunc: _date_trunc,
    exp.Concat: _concat,
    exp.Anonymous: _named,
}
