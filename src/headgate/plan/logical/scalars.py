"""What an expression over one tuple may hold: all that Spark computes from this tuple alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from headgate.errors import BindError
from headgate.plan.logical.catalog import nearest
from headgate.plan.logical.parts import refused
from headgate.plan.logical.render import shown
from headgate.plan.logical.spark_functions import FUNCTIONS, Kind
from headgate.plan.logical.window_functions import window_names

if TYPE_CHECKING:
    from headgate.plan.logical.catalog import Catalog

#: What may stand in or after the parentheses of an aggregate, and nowhere else.
_OF_AGGREGATES = {
    exp.Distinct: "DISTINCT",
    exp.Filter: "FILTER",
    exp.HavingMax: "HAVING",
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.Limit: "LIMIT",
    exp.Order: "ORDER BY",
    exp.RespectNulls: "RESPECT NULLS",
    exp.WithinGroup: "WITHIN GROUP",
}
_GROUPINGS = (exp.Rollup, exp.Cube, exp.GroupingSets)
#: Functions that are called without parentheses.
_BARE = tuple(SparkParser.NO_PAREN_FUNCTIONS.values())
_WHY = {
    Kind.GENERATOR: "{name} makes several rows of one: not part of the language; do it before the stream",
    Kind.VOLATILE: (
        "{name} depends on more than its arguments: a batch that is run again after a crash would give another answer;"
        " let the stream bring the value as a column"
    ),
    Kind.RANKING: "not part of the language: {name}, which goes with OVER: give the query a window clause instead",
}
_OF_WINDOW = {
    "session_window": "session windows are not part of the language: use RANGE and SLIDE, or window(ts, '1 minute')",
    "window_time": "window_time is not part of the language: an answer has window_start and window_end",
}
_NO_FUNCTION = "Spark has none of this name; register one of your own with spark.udf or hg.register_aggregate"


def check_scalar(expression: exp.Expr, catalog: Catalog) -> None:
    """Raises a BindError for what no expression may hold: subqueries, OVER, unknown functions, and so on."""
    for node in expression.walk():
        if isinstance(node, exp.Query | exp.Exists):
            raise refused("a subquery in an expression: join the streams, or nest a SELECT in FROM")
        if isinstance(node, _GROUPINGS):
            raise refused(f"{shown(node)}: write one query for each grouping")
        if isinstance(node, exp.Window):
            raise refused(f"{shown(node)}: give the query a window clause instead of OVER")
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise refused(f"{shown(node)}: a placeholder: write the value itself")
        if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar) and not node.args.get("variant_extract"):
            raise refused(
                f"{shown(node)}: -> stands inside the parentheses of a function, as in transform(xs, x -> x + 1)"
            )
        if isinstance(node, exp.Aliases):
            raise refused(f"{shown(node)}: several names for one expression")
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
            raise refused(f"{shown(node)}: a database before the name of a function")
        if (name := called(node)) is not None:
            _check_function(node, name, catalog)


def check_within(expression: exp.Expr) -> None:
    """Raises a BindError for what goes with an aggregate, in an expression that has none left."""
    for node in expression.walk():
        for kind, word in _OF_AGGREGATES.items():
            if isinstance(node, kind):
                raise BindError(f"{shown(expression)}: {word} goes with an aggregate function")
        if isinstance(node, exp.Star):
            raise BindError(f"{shown(expression)}: * stands alone, or in count(*); name the columns")
        if (name := called(node)) in window_names():
            raise BindError(
                f"{shown(node)}: {name}() stands in GROUP BY, and in the columns of an answer grouped by it"
            )


def called(node: exp.Expr) -> str | None:
    """The name, in lower case, of the function that a node calls; None if it is no such call.

    >>> from sqlglot import parse_one
    >>> called(parse_one("cuont(x)")), called(parse_one("x + 1"))
    ('cuont', None)
    """
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, _BARE) else None


def _check_function(node: exp.Expr, name: str, catalog: Catalog) -> None:
    if not catalog.has_function(name):
        hint = nearest(name, catalog.functions)
        raise BindError(f"unknown function {node.name}: " + (f"did you mean {hint}?" if hint else _NO_FUNCTION))
    kind = FUNCTIONS.get(name)
    if kind in _WHY:
        raise BindError(f"{shown(node)}: {_WHY[kind].format(name=name)}")
    if name in _OF_WINDOW:
        raise BindError(f"{shown(node)}: {_OF_WINDOW[name]}")
    if name == "unix_timestamp" and not node.expressions:
        raise BindError(f"{shown(node)}: {_WHY[Kind.VOLATILE].format(name=name)}")
