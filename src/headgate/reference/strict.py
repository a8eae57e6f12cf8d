"""The operators and functions that are NULL if an argument is, and what computes each of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headgate.reference import functions, values
from headgate.reference.casts import to_text

if TYPE_CHECKING:
    from collections.abc import Callable

_BOTH = ("this", "expression")

STRICT: dict[type[exp.Expr], tuple[Callable[..., Any], tuple[str, ...]]] = {
    exp.Add: (values.add, _BOTH),
    exp.Sub: (values.subtract, _BOTH),
    exp.Mul: (values.multiply, _BOTH),
    exp.Div: (values.divide, _BOTH),
    exp.IntDiv: (values.divide_whole, _BOTH),
    exp.Mod: (values.remainder, _BOTH),
    exp.Neg: (values.negate, ("this",)),
    exp.EQ: (lambda a, b: values.compare(a, b) == 0, _BOTH),
    exp.NEQ: (lambda a, b: values.compare(a, b) != 0, _BOTH),
    exp.LT: (lambda a, b: values.compare(a, b) < 0, _BOTH),
    exp.LTE: (lambda a, b: values.compare(a, b) <= 0, _BOTH),
    exp.GT: (lambda a, b: values.compare(a, b) > 0, _BOTH),
    exp.GTE: (lambda a, b: values.compare(a, b) >= 0, _BOTH),
    exp.Abs: (values.absolute, ("this",)),
    exp.Floor: (functions.floor, ("this",)),
    exp.Ceil: (functions.ceil, ("this",)),
    exp.Round: (functions.round_half_up, ("this", "decimals")),
    exp.Sqrt: (functions.sqrt, ("this",)),
    exp.Pow: (functions.power, _BOTH),
    exp.Ln: (functions.ln, ("this",)),
    exp.Exp: (functions.exponential, ("this",)),
    exp.Sign: (functions.sign, ("this",)),
    exp.DPipe: (functions.concat, _BOTH),
    exp.Upper: (lambda value: to_text(value).upper(), ("this",)),
    exp.Lower: (lambda value: to_text(value).lower(), ("this",)),
    exp.Length: (functions.length, ("this",)),
    exp.Substring: (functions.substring, ("this", "start", "length")),
    exp.UnixMicros: (partial(functions.since_epoch, unit="MICROSECOND"), ("this",)),
    exp.UnixMillis: (partial(functions.since_epoch, unit="MILLISECOND"), ("this",)),
    exp.UnixSeconds: (partial(functions.since_epoch, unit="SECOND"), ("this",)),
}
"""The function of a node, and the parts of the node that are its arguments, in order."""

NAMED: dict[str, Callable[..., Any]] = {
    "timestamp_micros": partial(functions.from_epoch, unit="MICROSECOND"),
    "timestamp_millis": partial(functions.from_epoch, unit="MILLISECOND"),
    "timestamp_seconds": partial(functions.from_epoch, unit="SECOND"),
}
"""Functions that sqlglot knows only by their names."""
