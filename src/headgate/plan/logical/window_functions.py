"""The functions in GROUP BY that stand for windows: those that were registered, by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from headgate import given
from headgate.aggregates import aggregate_names
from headgate.errors import Error, WindowError
from headgate.plan.logical.nodes import Field
from headgate.plan.logical.render import shown
from headgate.plan.logical.spark_functions import FUNCTIONS
from headgate.plan.logical.types import UNKNOWN, is_numeric, is_time
from headgate.windows import Called, Cut, OnAxis, WindowType

Maker: TypeAlias = Callable[..., WindowType | Cut]
#: Spark's own, whose lengths are text: it is bound where those are read.
SPARK_WINDOW = "window"
_REGISTRY: dict[str, Maker] = {}


@given.checked("hg.register_window", WindowError)
def register_window(name: str, make: Maker) -> None:
    """Makes windows of a type known to queries, as a function in GROUP BY.

    The constants that follow the column in the call are passed to `make`, which gives a window type, or a cut whose
    panes are the windows.

    >>> from headgate.windows import EqualCut
    >>> register_window("dozens", lambda count=1: WindowType(EqualCut(12), count))
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise WindowError(f"{given.shown(name)} is no name for a window type: use letters, digits and underscores")
    if name.lower() in FUNCTIONS or name.lower() in aggregate_names():
        raise WindowError(f"{name} is a function already: choose another name for the window type")
    if not callable(make):
        raise given.refused(f"window type {name}: make", make, "a function or a class", WindowError)
    _REGISTRY[name.lower()] = make


def window_names() -> frozenset[str]:
    """The names, in lower case, of all functions that stand for windows."""
    return frozenset((SPARK_WINDOW, *_REGISTRY))


def called_window(call: exp.Expr, name: str, arguments: Sequence[exp.Expr], field: Field | None) -> OnAxis:
    """The windows that a call of a registered function stands for, over the field that its first argument is."""
    text = shown(call)
    if field is None:
        raise WindowError(f"{text}: the first argument is the column to window over, such as {name}(ts)")
    constants = [_constant(argument, text) for argument in arguments[1:]]
    try:
        made = _REGISTRY[name](*constants)
    except Error as error:
        raise WindowError(f"{text}: {error}") from None
    except (TypeError, ValueError) as error:
        raise WindowError(f"{text}: {name} does not take these arguments ({error})") from None
    type_ = WindowType(made) if isinstance(made, Cut) else made
    if not isinstance(type_, WindowType):
        raise WindowError(f"{text}: {name} gave {given.shown(made)}: it has to give an hg.WindowType or an hg.Cut")
    _check_axis(type_, field, text)
    return Called(text, type_.coarsest, field.name)


def _check_axis(type_: WindowType, field: Field, text: str) -> None:
    if field.type == UNKNOWN or is_time(field.type):
        return
    if type_.cut.needs_time or not is_numeric(field.type):
        wanted = "a time" if type_.cut.needs_time else "a time or a number"
        raise WindowError(f"{text}: {field.name} is {field.type}: give a column that is {wanted}")


def _constant(argument: exp.Expr, text: str) -> Any:
    """The value of a literal: text, a whole number, any other number exactly, or a boolean."""
    negative = isinstance(argument, exp.Neg)
    literal = argument.this if negative else argument
    if isinstance(literal, exp.Boolean) and not negative:
        return bool(literal.this)
    if not isinstance(literal, exp.Literal) or (negative and literal.is_string):
        raise WindowError(f"{text}: {shown(argument)} is not a constant: write a number, a text, true or false")
    if literal.is_string:
        return literal.this
    number = Fraction(literal.this) * (-1 if negative else 1)
    return int(number) if number.denominator == 1 else number
