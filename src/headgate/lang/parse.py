"""Text to tree and back: all other packages read queries and scripts through these functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar, cast

from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from headgate.errors import ParseError
from headgate.lang.dialect import Headgate
from headgate.lang.generator import NormalGenerator
from headgate.lang.statements import HeadgateParser
from headgate.lang.wording import position

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.tokenizer_core import Token

    from headgate.lang.nodes import Length, Statement

T = TypeVar("T", bound=exp.Expr)

_DIALECT = Headgate()
_UNCLOSED = re.compile(r"Missing (.+) from \d+:(\d+)")
_NO_NUMBER = re.compile(r"Numeric string contains invalid characters from \d+:(\d+)")


def parse_query(sql: str) -> exp.Query:
    """The tree of one query: a SELECT or a UNION of SELECTs. A semicolon may follow it.

    >>> parse_query("SELECT max(price) FROM bids [RANGE 4 minutes SLIDE 1 minute WA ts]").key
    'select'
    >>> parse_query("SELECT a FROM S [RANGE 1 month]")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    headgate.errors.ParseError: line 1, column 26: expected a unit of fixed length ..., found 'month'
    """
    return parse_fragment(sql, HeadgateParser.parse_query_statement)


def parse_script(sql: str) -> list[Statement]:
    """The statements of a script, in order.

    >>> script = "CREATE QUERY q AS SELECT a FROM S; CREATE SINK FOR q INTO parquet 'out';"
    >>> [statement.key for statement in parse_script(script)]
    ['createquery', 'createsink']
    """
    statements = [
        statement for statement in _parse(sql, HeadgateParser.parse_script_statement) if statement is not None
    ]
    if not statements:
        end = position(sql, len(sql.rstrip()))
        raise ParseError("expected a statement, found the end of the text", *end)
    return cast("list[Statement]", statements)


def to_sql(node: exp.Expr, pretty: bool = False) -> str:
    """The text of a tree. It reads back as an equal tree.

    >>> to_sql(parse_query("select count(*) [slide 1 min range 5 min] as n from S"))
    'SELECT count(*) AS n [RANGE 5 minutes, SLIDE 1 minutes] FROM S'
    """
    return _DIALECT.generate(node, pretty=pretty)


def normal_text(query: exp.Query) -> str:
    """The text of a query in one form, however it was spelt. Two queries are the same if these texts are.

    >>> normal_text(parse_query("select Count( * ) [slide 1 min range 5 min] from S"))
    'SELECT COUNT(*) [RANGE 5 minutes, SLIDE 1 minutes] FROM S'
    """
    return NormalGenerator(dialect=_DIALECT, normalize_functions="upper").generate(query)


def parse_length(text: str) -> Length:
    """The length that a text such as '10 minutes' stands for.

    >>> parse_length("1 hour 30 minutes").microseconds
    Decimal('5400000000')
    """
    return parse_fragment(text, HeadgateParser.parse_length)


def parse_fragment(sql: str, method: Callable[[HeadgateParser], T]) -> T:
    """The tree that one method of the parser makes of the whole text.

    >>> to_sql(parse_fragment("1 hour 30 minutes", HeadgateParser.parse_length))
    '90 minutes'
    """
    found: list[T] = []

    def once(parser: HeadgateParser) -> T:
        if found:
            parser.raise_error("expected the end of the text")
        found.append(method(parser))
        return found[0]

    _parse(sql, once, strip=True)
    return found[0]


def _parse(sql: str, method: Callable[[HeadgateParser], exp.Expr | None], strip: bool = False) -> list[exp.Expr | None]:
    """What a method of the parser makes of each statement. `strip` removes the semicolons at the end."""
    parser = HeadgateParser(dialect=_DIALECT)
    try:
        tokens = _DIALECT.tokenize(sql)
        while strip and tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        _check_hints(tokens, sql)
        return parser.parse_with(method, tokens, sql)
    except SqlglotParseError as error:
        place = error.errors[0]
        raise ParseError(place["description"], place["line"], place["col"]) from None
    except TokenError as error:
        raise _token_error(sql, error) from None
    except RecursionError:
        raise ParseError("expected a text that is not nested so deeply", 1, 1) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # Where a part of the text is missing, sqlglot fails with an error of Python's.
        raise ParseError(*parser.stuck_at(sql)) from error


def _check_hints(tokens: list[Token], sql: str) -> None:
    """Raises an error for a hint. sqlglot takes hints for comments wherever Spark would not read them."""
    for comment in (comment for token in tokens for comment in token.comments):
        at = sql.find(f"/*+{comment}*/")
        if at >= 0:
            message = "a hint, /*+ ... */, is not part of the language: how a query is run is up to the planner"
            raise ParseError(message, *position(sql, at))


def _token_error(sql: str, error: TokenError) -> ParseError:
    """The error for text that has no tokens: a literal that is no number, a quote or a comment left open."""
    if match := _NO_NUMBER.match(str(error.__cause__)):
        return ParseError("expected digits from 0 to F between the quotes of X''", *position(sql, int(match[1])))
    if match := _UNCLOSED.match(str(error.__cause__)):
        closing, offset = match[1], int(match[2])
    else:
        closing, offset = "*/", sql.rfind("/*")
    line, column = position(sql, max(offset, 0))
    return ParseError(f"expected a closing {closing}, found the end of the text", line, column)
