"""Errors in the text: each names the line and column, what was expected, and what was found."""

from __future__ import annotations

import pytest

from headgate.errors import ParseError
from headgate.lang import parse_query, parse_script

END = "found the end of the text"

BAD_QUERIES = [
    ("", 1, 1, f"expected SELECT, {END}"),
    (" \n ", 1, 1, f"expected SELECT, {END}"),
    (";", 1, 1, "expected SELECT, found ';'"),
    ("SELECT", 1, 7, f"expected a column or an expression, {END}"),
    ("SELECT FROM S", 1, 8, "expected a column or an expression, found 'FROM'"),
    ("SELECT a, FROM S", 1, 11, "expected a column or an expression, found 'FROM'"),
    ("SELECT a AS [RANGE 5] FROM S", 1, 13, "expected an alias, found '['"),
    ("SELECT a + FROM S", 1, 12, "expected an expression, found 'FROM'"),
    ("SELECT (a FROM S", 1, 11, "expected ), found 'FROM'"),
    # from-items
    ("SELECT a FROM", 1, 14, f"expected a stream, {END}"),
    ("SELECT a\nFROM ;", 2, 6, "expected a stream, found ';'"),
    ("SELECT a FROM S,", 1, 17, f"expected a stream, {END}"),
    ("SELECT a FROM FROM S", 1, 15, "expected a stream, found 'FROM'"),
    ("SELECT a FROM A JOIN B ON", 1, 26, f"expected an expression, {END}"),
    ("SELECT a FROM A JOIN B [RANGE 1] JOIN C ON x ON y", 1, 50, "expected ON directly after each JOIN"),
    ("SELECT a FROM (A AS x) AS y", 1, 27, "expected one alias for a stream, found 'y'"),
    ("SELECT a FROM (SELECT b FROM S", 1, 31, f"expected ), {END}"),
    # unions
    ("SELECT a FROM A UNION", 1, 22, f"expected a stream, {END}"),
    ("SELECT a FROM A UNION DISTINCT B", 1, 23, "expected ALL or a stream, found 'DISTINCT'"),
    ("SELECT a FROM A AS x UNION B", 1, 22, "only after the last stream of a union, found 'UNION'"),
    ("SELECT a FROM A [RANGE 5] UNION B", 1, 27, "only after the last stream of a union, found 'UNION'"),
    ("SELECT a FROM A EXCEPT SELECT a FROM B", 1, 17, "expected UNION or the end of the statement"),
    # the window clause
    ("SELECT count(*) [RANGE 10 minutes FROM S", 1, 35, "or PA, or ], found 'FROM'"),
    ("SELECT a FROM S [RANGE 10 minutes", 1, 34, f"or PA, or ], {END}"),
    (
        "SELECT count(*) [RANGE 5, FOO 3] FROM S",
        1,
        27,
        "expected RANGE, SLIDE, WA, RATTR, SATTR or PA, found 'FOO'",
    ),
    (
        "SELECT count(*) [RNGE 10 minutes] FROM S",
        1,
        18,
        "expected RANGE, SLIDE, WA, RATTR, SATTR or PA, found 'RNGE'",
    ),
    ("SELECT a FROM S [FOO]", 1, 18, "expected RANGE, SLIDE, WA, RATTR, SATTR or PA, found 'FOO'"),
    ("SELECT a FROM S []", 1, 18, "expected RANGE, SLIDE, WA, RATTR, SATTR or PA, found ']'"),
    ("SELECT a FROM S [RANGE 5,]", 1, 26, "expected RANGE, SLIDE, WA, RATTR, SATTR or PA, found ']'"),
    ("SELECT count(*) [RANGE minutes] FROM S", 1, 24, "expected a length, such as 10 minutes"),
    ("SELECT count(*) [RANGE, SLIDE 5] FROM S", 1, 23, "expected a length, such as 10 minutes"),
    ("SELECT a FROM S [RANGE]", 1, 23, "expected a length, such as 10 minutes"),
    ("SELECT a FROM A, B [RANGE 5, SLIDE]", 1, 35, "expected a length, such as 10 minutes"),
    ("SELECT count(*) [RANGE 10s] FROM S", 1, 24, "such as 10 minutes or 1000 rows, found '10s'"),
    ("SELECT count(*) [RANGE 10minutes] FROM S", 1, 24, "such as 10 minutes or 1000 rows, found '10minutes'"),
    ("SELECT count(*) [SLIDE 1 minute] FROM S", 1, 32, "expected RANGE in a window clause, found ']'"),
    (
        "SELECT a FROM S [RANGE 5\n SLIDE 1\n SLIDE 2]",
        3,
        2,
        "expected SLIDE only once in a window clause, found",
    ),
    ("SELECT a FROM S [RANGE 5, RANGE ALL]", 1, 27, "expected RANGE only once"),
    ("SELECT a FROM S [RANGE 5 WA x WATTR y]", 1, 31, "expected WATTR only once"),
    ("SELECT a FROM S [RANGE 5 WA]", 1, 28, "expected a column, found ']'"),
    ("SELECT a FROM S [RANGE 5 PA ()]", 1, 30, "expected a column, found ')'"),
    ("SELECT a FROM S [RANGE 5 SATTR rank(x]", 1, 38, "expected ), found ']'"),
    ("SELECT a FROM S [RANGE 5] [RANGE 6]", 1, 27, "expected the end of the statement, found '['"),
    ("SELECT a FROM S HAVING count(*) [RANGE 5] > 3", 1, 33, "expected the end of the statement, found '['"),
    # lengths
    ("SELECT count(*)\n  [RANGE 1 month] FROM S", 2, 12, "expected a unit of fixed length"),
    ("SELECT a FROM S [RANGE 2 years]", 1, 26, "found 'years'"),
    ("SELECT a FROM S [RANGE '1 year']", 1, 24, "expected a unit of fixed length"),
    ("SELECT a FROM S [RANGE 'soon']", 1, 24, "expected a length, such as '10 minutes', found 'soon'"),
    ("SELECT a FROM S [RANGE '1 2 days']", 1, 24, "expected a unit of fixed length"),
    ("SELECT a FROM S [RANGE 1 hour 5]", 1, 32, "expected a unit of fixed length"),
    ("SELECT a FROM S [RANGE 1 hour 5 rows]", 1, 24, "expected either rows or time"),
    # what follows, and what is no query
    ("SELECT a FROM S junk junk", 1, 22, "expected the end of the statement, found 'junk'"),
    ("SELECT a FROM S )", 1, 17, "expected the end of the statement, found ')'"),
    ("SELECT a FROM S; SELECT b FROM S", 1, 18, "expected the end of the text, found 'SELECT'"),
    ("SELECT a FROM S WHERE", 1, 22, f"expected an expression, {END}"),
    ("SELECT a FROM S GROUP BY", 1, 25, f"expected an expression, {END}"),
    ("SELECT a FROM S GROUP BY a,", 1, 28, f"expected an expression, {END}"),
    ("FROM S SELECT a", 1, 1, "expected SELECT, found 'FROM'"),
    ("DROP TABLE x", 1, 1, "expected SELECT, found 'DROP'"),
    ("CREATE QUERY q AS SELECT a FROM S", 1, 1, "expected SELECT, found 'CREATE'"),
    ("WITH q AS (SELECT a FROM S) junk", 1, 33, "expected name AS (SELECT ...) and a SELECT after WITH"),
    # what does not even fall into tokens
    ("SELECT a FROM S\nWHERE b = 'abc\n", 2, 11, f"expected a closing ', {END}"),
    ("SELECT a FROM `S", 1, 15, f"expected a closing `, {END}"),
    ("SELECT a /* b", 1, 10, f"expected a closing */, {END}"),
    ("(" * 5000, 1, 1, "not nested so deeply"),
]

BAD_SCRIPTS = [
    ("", 1, 1, f"expected a statement, {END}"),
    (" ;; -- nothing", 1, 15, f"expected a statement, {END}"),
    ("SELECT a FROM S", 1, 1, "expected CREATE QUERY name AS before a query in a script, found 'SELECT'"),
    ("CREATE", 1, 7, f"expected STREAM, TABLE, QUERY or SINK, {END}"),
    ("CREATE TABLE x (a INT)", 1, 16, "expected FROM, found '('"),
    ("CREATE VIEW x AS SELECT 1", 1, 8, "expected STREAM, TABLE, QUERY or SINK, found 'VIEW'"),
    ("CREATE TABLE x FROM csv 'x' PROGRESS ON a ORDERED", 1, 29, "expected OPTIONS, SCHEMA or the end"),
    ("DROP QUERY q", 1, 1, "expected CREATE STREAM, TABLE, QUERY or SINK, found 'DROP'"),
    # streams
    ("CREATE STREAM Main kafka", 1, 20, "expected FROM, found 'kafka'"),
    ("CREATE STREAM FROM kafka", 1, 15, "expected the name of a stream, found 'FROM'"),
    ("CREATE STREAM Main FROM 'x'", 1, 25, "expected a format, such as kafka or parquet, found 'x'"),
    (
        "CREATE STREAM S FROM kafka FOO",
        1,
        28,
        "expected OPTIONS, SCHEMA, PROGRESS or the end of the statement",
    ),
    ("CREATE STREAM S FROM kafka SCHEMA (a INT) SCHEMA (b INT)", 1, 43, "expected SCHEMA only once"),
    ("CREATE STREAM S FROM kafka SCHEMA (a)", 1, 37, "expected the type of column a, found ')'"),
    ("CREATE STREAM S FROM kafka SCHEMA (a FOO)", 1, 38, "expected the type of column a, found 'FOO'"),
    ("CREATE STREAM S FROM kafka SCHEMA ()", 1, 36, "expected a column, found ')'"),
    ("CREATE STREAM S FROM kafka OPTIONS (a = 1, a = 2)", 1, 44, "expected a only once"),
    ("CREATE STREAM S FROM kafka OPTIONS (a 1)", 1, 39, "expected =, found '1'"),
    (
        "CREATE STREAM S FROM kafka OPTIONS (a = b)",
        1,
        41,
        "expected a text in quotes, a number, true or false",
    ),
    ("CREATE STREAM S FROM kafka OPTIONS (a = 'b)", 1, 41, f"expected a closing ', {END}"),
    # progress
    ("CREATE STREAM S FROM kafka PROGRESS ts", 1, 37, "expected ON, found 'ts'"),
    ("CREATE STREAM S FROM kafka PROGRESS ON ts", 1, 42, "expected WITHIN, ORDERED, SLACK or PUNCTUATED BY"),
    ("CREATE STREAM S FROM kafka PROGRESS ON ts WITHIN 5 s", 1, 52, "expected a unit of fixed length"),
    ("CREATE STREAM S FROM kafka PROGRESS ON ts WITHIN 5 ORDERED", 1, 52, "expected only one of WITHIN"),
    ("CREATE STREAM S FROM kafka PROGRESS ON ts ORDERED BY a BY b", 1, 56, "expected BY only once"),
    ("CREATE STREAM S FROM kafka PROGRESS ON ts SLACK 1.5 ROWS", 1, 49, "expected a whole number of rows"),
    ("CREATE STREAM S FROM kafka PROGRESS ON ts SLACK 5 days", 1, 51, "expected ROWS, found 'days'"),
    ("CREATE STREAM S FROM kafka PROGRESS ON ts PUNCTUATED is_p", 1, 54, "expected BY, found 'is_p'"),
    # queries and sinks
    ("CREATE QUERY q SELECT a FROM S", 1, 16, "expected WITH or AS, found 'SELECT'"),
    ("CREATE QUERY q WITH (a = 1 AS SELECT a FROM S", 1, 28, "expected , or ), found 'AS'"),
    ("CREATE QUERY q AS;\nCREATE QUERY r AS SELECT a FROM S", 1, 18, "expected SELECT, found ';'"),
    (
        "CREATE QUERY q AS SELECT a FROM S;\n\nCREATE QUERY r AS SELECT b FROM",
        3,
        32,
        f"expected a stream, {END}",
    ),
    ("CREATE SINK talkers INTO parquet", 1, 13, "expected FOR, found 'talkers'"),
    ("CREATE SINK FOR q parquet", 1, 19, "expected LATE, SHED, BAD or INTO, found 'parquet'"),
    ("CREATE SINK FOR q LATE LATE INTO parquet", 1, 24, "expected INTO, found 'LATE'"),
    ("CREATE SINK FOR q INTO parquet 'x' y", 1, 36, "expected the end of the statement, found 'y'"),
]


@pytest.mark.parametrize(("sql", "line", "column", "fragment"), BAD_QUERIES, ids=[case[0][:60] for case in BAD_QUERIES])
def test_bad_queries(sql: str, line: int, column: int, fragment: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_query(sql)
    check(caught.value, line, column, fragment)


@pytest.mark.parametrize(("sql", "line", "column", "fragment"), BAD_SCRIPTS, ids=[case[0][:60] for case in BAD_SCRIPTS])
def test_bad_scripts(sql: str, line: int, column: int, fragment: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_script(sql)
    check(caught.value, line, column, fragment)


def check(error: ParseError, line: int, column: int, fragment: str) -> None:
    message = str(error)
    assert fragment in message
    assert (error.line, error.column) == (line, column)
    assert message.startswith(f"line {line}, column {column}: expected ")
    assert "\033" not in message
    assert "\n" not in message
