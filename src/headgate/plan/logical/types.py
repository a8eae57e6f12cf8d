"""The types of expressions, as far as they can be known without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from headgate.aggregates import AggregateFunction, Domain

UNKNOWN = "unknown"
_INTEGRAL = {"tinyint", "smallint", "int", "integer", "bigint", "long", "short", "byte"}
_FRACTIONAL = {"float", "double", "real"}
#: Where sqlglot and Spark disagree about the type.
_NOT_AS_SPARK = frozenset(
    (
        "array_position", "bit_get", "day", "dayofmonth", "dayofweek", "dayofyear", "getbit", "map", "map_from_arrays",
        "month", "parse_json", "quarter", "trunc", "try_divide", "week", "weekday", "weekofyear", "year",
    )
)  # fmt: skip
_TIME = {"timestamp", "timestamp_ntz", "timestamp_ltz", "date"}


def type_of(expression: exp.Expr, columns: Mapping[str, str]) -> str:
    """The Spark type of an expression over columns of these types, or "unknown".

    >>> from sqlglot import parse_one
    >>> type_of(parse_one("a / 2", dialect="spark"), {"a": "int"})
    'double'
    """
    if isinstance(expression, exp.Column):
        return columns.get(expression.name, UNKNOWN)
    # Names may hold any character, so the annotator gets plain names instead.
    plain: dict[str, str] = {}

    def rename(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in columns:
            return exp.column(plain.setdefault(node.name, f"c{len(plain)}"), table="t")
        return node

    select = exp.select(expression.copy().transform(rename)).from_("t")
    for node in reversed(list(select.walk())):
        if (known := _as_sqlglot_knows_it(node)) is not node:
            node.replace(known)
    schema = {alias: columns[name] for name, alias in plain.items() if columns[name] != UNKNOWN}
    try:
        annotated = annotate_types(select, schema={"t": schema or {"c": "int"}}, dialect="spark").selects[0]
    except SqlglotError:
        return UNKNOWN  # Some types of Spark are unknown to sqlglot.
    if any(map(_is_interval, annotated.find_all(exp.Sub))):
        return UNKNOWN
    found = annotated.type
    if found is None or found.is_type(exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL):
        return UNKNOWN
    spelt = found.sql(dialect="spark").lower().replace(", ", ",").replace(": ", ":")
    # sqlglot does not know how Spark treats the digits of decimals and the units of intervals.
    return "decimal" if spelt.startswith("decimal") else UNKNOWN if spelt.startswith("interval") else spelt


def _as_sqlglot_knows_it(node: exp.Expr) -> exp.Expr:
    """A function as sqlglot's own node, which may have a type. A test compares these types with Spark's."""
    match node:
        case exp.Literal(is_string=False) if "." in node.name and "e" not in node.name.lower():
            return exp.cast(node.copy(), "decimal", copy=False)
        case exp.Extract():
            return exp.Anonymous(this="extract")
        case exp.Round(this=exp.Expr() as rounded):
            return rounded.copy()
        case exp.Coalesce():
            known = [e for e in (node.this, *node.expressions) if not isinstance(e, exp.Null)]
            return exp.Coalesce(this=known[0], expressions=known[1:]) if len(known) > 1 else (*known, exp.null())[0]
        case exp.Anonymous() if node.name.lower() not in _NOT_AS_SPARK:
            try:
                return exp.func(node.name, *node.expressions, dialect="spark")
            except (AttributeError, ValueError, SqlglotError):
                return node  # sqlglot does not know this way to call it.
    return node


def _is_interval(difference: exp.Sub) -> bool:
    """Whether this is the interval between two times. sqlglot takes it for a time."""
    return all(bool(side.is_type(*exp.DataType.TEMPORAL_TYPES)) for side in (difference.left, difference.right))


def is_time(type_: str) -> bool:
    """Whether the type is a time."""
    return type_ in _TIME


def axis(type_: str) -> str:
    """In words, the kind of places that a windowing attribute of this type has. Only places of one kind compare.

    The distance from a wall-clock time to a point in time depends on the zone and on the season.
    """
    if type_ == "timestamp_ntz":
        return "a wall-clock time"
    return "a point in time" if is_time(type_) else "a number"


def is_integral(type_: str) -> bool:
    """Whether the type is a whole number."""
    return type_ in _INTEGRAL


def is_exact(type_: str) -> bool:
    """Whether sums of this type are exact, so that what was added can be taken away again."""
    return is_integral(type_) or type_.startswith("decimal")


def is_numeric(type_: str) -> bool:
    """Whether the type is a number."""
    return is_exact(type_) or type_ in _FRACTIONAL


def accepts(domain: Domain, type_: str) -> bool:
    """Whether an argument of this type is in the domain. An unknown type gets the benefit of the doubt."""
    if type_ == UNKNOWN:
        return True
    match domain:
        case Domain.NUMERIC:
            return is_numeric(type_)
        case Domain.BOOLEAN:
            return type_ == "boolean"
        case Domain.ORDERED:
            return not type_.startswith(("map", "variant"))
        case Domain.ANY:
            return True


def aggregate_type(function: AggregateFunction, arguments: Sequence[str]) -> str:
    """The type of an aggregate's answer over arguments of these types."""
    if function.registered:
        return function.returns
    argument = arguments[0] if arguments else UNKNOWN
    match function.name:
        case "count":
            return "bigint"
        case "sum" if is_integral(argument):
            return "bigint"
        case "sum" if argument in _FRACTIONAL:
            return "double"
        case "sum" | "avg" if argument.startswith("decimal") or argument == UNKNOWN:
            return UNKNOWN
        case "avg" | "median" | "quantile" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return "double"
        case _:
            return argument


def bound_type(attribute: str) -> str:
    """The type of `window_start` and `window_end` over a windowing attribute of this type."""
    if attribute == "date":
        return "timestamp"
    if is_integral(attribute):
        return "bigint"
    if is_numeric(attribute):
        return "double"
    return attribute
