"""The parser of scalar expressions. Each knows its text, and functions keep the names that the user wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from headgate.lang.reading import Reader
from headgate.lang.written import keep_text, spans, start_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.parser import Parser
    from sqlglot.tokenizer_core import Token

E = TypeVar("E", bound=exp.Expr)

#: The functions that have a node of their own, because the reference evaluator defines them by it. All others are calls
#: by their names: sqlglot would turn them into what it takes for their meaning, and drop arguments on the way.
_WITH_NODES = (
    "ABS", "ARRAY", "CEIL", "CEILING", "COALESCE", "CONCAT", "DATE_TRUNC", "EXP", "FLOOR", "GREATEST", "IF", "LCASE",
    "LEAST", "LENGTH", "LN", "LOWER", "NAMED_STRUCT", "NULLIF", "POW", "POWER", "ROUND", "SIGN", "SQRT", "STRUCT",
    "UCASE", "UNIX_MICROS", "UNIX_MILLIS", "UNIX_SECONDS", "UPPER",
)  # fmt: skip
#: The functions for which Spark's grammar has a form of its own.
_FORMS = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "TRY_CAST")
#: With three arguments, the first one is a unit of time and not a column.
_BY_UNIT = ("DATEADD", "DATE_ADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF", "TIMEDIFF")
_UNITS = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
)  # fmt: skip


def _plain(name: str, parse: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Makes the node of a function, or a plain call where the arguments do not fit: then Spark says what is wrong."""

    def function(args: list[exp.Expr], **dialect: Any) -> exp.Expr:
        node = parse(args, **dialect)
        return exp.Anonymous(this=name.lower(), expressions=args) if node.error_messages(args) else node

    return function


def _date_trunc(args: list[exp.Expr]) -> exp.Expr:
    """A node, if the unit is written out. A unit that differs from row to row is one more argument of a plain call."""
    if len(args) == 2 and args[0].is_string:
        return exp.TimestampTrunc(this=args[1], unit=exp.var(args[0].name))
    return exp.Anonymous(this="date_trunc", expressions=args)


class ExpressionParser(Reader):
    """Spark's expressions, each with its place in the text."""

    # v:a.b is a path into a VARIANT in Spark 4.
    COLON_IS_VARIANT_EXTRACT = True

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        **{name: _plain(name, parse) for name, parse in SparkParser.FUNCTIONS.items() if name in _WITH_NODES},
        "DATE_TRUNC": _date_trunc,
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _FORMS
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: parse for name, parse in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name in ("CASE", "IF")
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.UNARY_PARSERS,
        # It turns a text into a number.
        TokenType.PLUS: lambda self: self.expression(exp.Anonymous(this="positive", expressions=[self._parse_unary()])),
    }

    def _parse(
        self,
        parse_method: Callable[[Parser], exp.Expr | None],
        raw_tokens: list[Token],
        sql: str | None = None,
    ) -> list[exp.Expr | None]:
        statements = super()._parse(parse_method, raw_tokens, sql)
        for statement in statements:
            if statement is not None:
                for kind in statement.find_all(exp.DataType):
                    if isinstance(collation := kind.args.get("collate"), exp.Column):  # This names no column.
                        collation.replace(exp.var(collation.name))
                keep_text(statement, self.sql)
        return statements

    def expression(self, instance: E, token: Token | None = None, comments: list[str] | None = None) -> E:
        node = super().expression(instance, token, comments)
        # For a + b + c a method of the parser gives only the whole, but a + b may be a key of its own.
        if isinstance(node, exp.Binary) and isinstance(node.this, exp.Expr) and self._prev:
            start = start_of(node.this)
            if start is not None:
                spans(node, start, self._prev.end + 1)
        if isinstance(node, exp.Anonymous) and node.name.upper() in _BY_UNIT and len(node.expressions) == 3:
            unit = node.expressions[0]
            if isinstance(unit, exp.Column) and len(unit.parts) == 1 and unit.name.upper() in _UNITS:
                unit.replace(exp.var(unit.name))
        return node


def _placed(name: str) -> Callable[..., Any]:
    """A method of the parser that also notes where its result stands in the text."""

    def method(self: ExpressionParser, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first, given = self._curr, next((a for a in args if isinstance(a, exp.Expr)), None)
        parse = getattr(super(ExpressionParser, self), name)
        node = cast("exp.Expr | None", parse(*args, **kwargs))
        if isinstance(node, exp.Expr) and self._prev:
            start = first.start if given is None else start_of(given)
            if start is not None:
                spans(node, start, self._prev.end + 1)
        return node

    method.__name__ = name
    return method


for _name in (
    "_parse_assignment", "_parse_atom", "_parse_at_time_zone", "_parse_bitwise", "_parse_bracket", "_parse_column",
    "_parse_column_ops", "_parse_column_reference", "_parse_comparison", "_parse_conjunction", "_parse_disjunction",
    "_parse_equality", "_parse_exponent", "_parse_factor", "_parse_function", "_parse_interval", "_parse_lambda_arg",
    "_parse_paren", "_parse_primary", "_parse_range", "_parse_term", "_parse_type", "_parse_types", "_parse_unary",
):  # fmt: skip
    setattr(ExpressionParser, _name, _placed(_name))
