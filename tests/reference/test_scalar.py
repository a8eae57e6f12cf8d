"""Scalar expressions: a table of SQL texts and the values that Spark gives for them."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sqlglot

from headgate.errors import BindError, Error
from headgate.reference.scalar import evaluate, truth

ROW: dict[str, Any] = {
    "i": 7,
    "n": None,
    "x": 2.5,
    "d": Decimal("1.25"),
    "s": "Headgate",
    "b": True,
    "ts": datetime(2024, 5, 1, 12, 34, 56, 789_000),
    "day": date(2024, 5, 1),
    "old": datetime(1969, 12, 31, 23, 59, 59, 999_999),
    "nan": math.nan,
    "inf": math.inf,
    "st": {"a": 1, "in": {"b": 2}},
    "no": None,
}

LITERALS = [
    ("1", 1),
    ("0.05", Decimal("0.05")),
    ("1e3", 1000.0),
    ("2.5D", 2.5),
    ("3L", 3),
    ("'text'", "text"),
    (r"'it\'s'", "it's"),
    ("NULL", None),
    ("TRUE", True),
    ("FALSE", False),
    ("TIMESTAMP '2024-05-01 12:00:05'", datetime(2024, 5, 1, 12, 0, 5)),
    ("TIMESTAMP '2024-05-01T12:00:05.25Z'", datetime(2024, 5, 1, 12, 0, 5, 250_000)),
    ("TIMESTAMP '2024-05-01 12:00:05+02:00'", datetime(2024, 5, 1, 10, 0, 5)),
    ("DATE '2024-05-01'", datetime(2024, 5, 1)),
]

COLUMNS = [
    ("i", 7),
    ("n", None),
    ("(i)", 7),
    ("i AS other", 7),
    ("st.a", 1),
    ("st.in.b", 2),
    ("(st).a", 1),
    ("no.a", None),
    ("named_struct('p', i, 'q', s)", {"p": 7, "q": "Headgate"}),
    ("struct(i, s AS name)", {"i": 7, "name": "Headgate"}),
    ("named_struct('p', i).p", 7),
]

ARITHMETIC = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("-i", -7),
    ("7 / 2", 3.5),
    ("6 / 2", 3.0),
    ("d + 1", Decimal("2.25")),
    ("d * 2", Decimal("2.50")),
    ("d / 0.5", Decimal("2.5")),
    ("d - x", -1.25),
    ("i / d", Decimal("5.6")),
    ("0.1 + 0.2", Decimal("0.3")),
    ("1e-1 + 2e-1", 0.1 + 0.2),
    ("-7 % 3", -1),
    ("7 % -3", 1),
    ("-7.5 % 2", Decimal("-1.5")),
    ("-7.5D % 2", -1.5),
    ("mod(7, 3)", 1),
    ("7 DIV 2", 3),
    ("-7 DIV 2", -3),
    ("7 DIV -2", -3),
    ("'3' + 4", 7),
    ("n + 1", None),
    ("1 - n", None),
    ("n * n", None),
    ("n / 0", None),
    ("-n", None),
    ("n % 2", None),
]

COMPARISONS = [
    ("i = 7", True),
    ("i == 7.0", True),
    ("i <> 7", False),
    ("i != 8", True),
    ("i < 7", False),
    ("i <= 7", True),
    ("d > 1", True),
    ("d >= x", False),
    ("i = '7'", True),
    ("x > '2.4'", True),
    ("'b' > 'a'", True),
    ("ts > '2024-05-01'", True),
    ("day = TIMESTAMP '2024-05-01 00:00:00'", True),
    ("day < ts", True),
    ("n = n", None),
    ("n <> 1", None),
    ("1 < n", None),
    ("n <=> NULL", True),
    ("n <=> 1", False),
    ("i <=> 7", True),
    ("n IS DISTINCT FROM 1", True),
    ("nan = nan", True),
    ("nan > inf", True),
    ("nan <= 1", False),
    ("1 < nan", True),
    ("0.0D = -0.0D", True),
]

LOGIC = [
    (f"{a} {word} {b}", value)
    for word, table in {
        "AND": [True, False, None, False, False, False, None, False, None],
        "OR": [True, True, True, True, False, None, True, None, None],
    }.items()
    for (a, b), value in zip(
        [(a, b) for a in ("TRUE", "FALSE", "NULL") for b in ("TRUE", "FALSE", "NULL")], table, strict=True
    )
] + [
    ("NOT TRUE", False),
    ("NOT FALSE", True),
    ("NOT NULL", None),
    ("FALSE AND 1 / 0 > 1", False),
    ("n IS NULL", True),
    ("i IS NULL", False),
    ("i IS NOT NULL", True),
    ("CAST(n AS BOOLEAN) IS TRUE", False),
    ("b IS TRUE", True),
    ("b IS FALSE", False),
    ("CAST(n AS BOOLEAN) IS NOT FALSE", True),
]

CHOICES = [
    ("i IN (1, 7)", True),
    ("i IN (1, 2)", False),
    ("i IN (1, NULL)", None),
    ("i IN (7, NULL)", True),
    ("n IN (1)", None),
    ("i NOT IN (1, 2)", True),
    ("i NOT IN (1, NULL)", None),
    ("i BETWEEN 7 AND 8", True),
    ("i BETWEEN 1 AND 6", False),
    ("i BETWEEN NULL AND 6", False),
    ("i BETWEEN NULL AND 8", None),
    ("i NOT BETWEEN 1 AND 6", True),
    ("CASE WHEN i > 10 THEN 'big' WHEN i > 5 THEN 'fair' ELSE 'small' END", "fair"),
    ("CASE WHEN n > 10 THEN 'big' END", None),
    ("CASE i WHEN 1 THEN 'one' WHEN 7 THEN 'seven' END", "seven"),
    ("CASE n WHEN NULL THEN 'null' ELSE 'other' END", "other"),
    ("IF(i > 5, 'y', 'n')", "y"),
    ("IF(n > 5, 'y', 'n')", "n"),
    ("COALESCE(n, NULL, i, 1 DIV 0)", 7),
    ("COALESCE(n, NULL)", None),
    ("nvl(n, 3)", 3),
    ("NULLIF(i, 7)", None),
    ("NULLIF(i, 8)", 7),
    ("NULLIF(i, NULL)", 7),
    ("GREATEST(1, NULL, 3, 2)", 3),
    ("GREATEST(1.5D, nan, inf)", math.nan),
    ("LEAST(NULL, 2, 1)", 1),
    ("LEAST(nan, 2.0D)", 2.0),
    ("LEAST(n, NULL)", None),
]

TEXTS = [
    ("s LIKE 'Head%'", True),
    ("s LIKE 'head%'", False),
    ("s ILIKE 'head%'", True),
    ("s LIKE 'Head'", False),
    ("s LIKE 'H_adgat_'", True),
    ("s NOT LIKE '%gate'", False),
    ("n LIKE 'a'", None),
    ("n NOT LIKE 'a'", None),
    ("'a%b' LIKE 'a!%b' ESCAPE '!'", True),
    ("'axb' LIKE 'a!%b' ESCAPE '!'", False),
    ("'axb' NOT LIKE 'a!%b' ESCAPE '!'", True),
    ("'a.b' LIKE 'a.b'", True),
    ("'axb' LIKE 'a.b'", False),
    (r"'a\nb' LIKE 'a%b'", True),
    ("CONCAT(s, '-', i)", "Headgate-7"),
    ("CONCAT(s, n)", None),
    ("s || '!' || i", "Headgate!7"),
    ("UPPER(s)", "HEADGATE"),
    ("LOWER(s)", "headgate"),
    ("LENGTH(s)", 8),
    ("LENGTH('')", 0),
    ("SUBSTRING(s, 1, 4)", "Head"),
    ("SUBSTRING(s, 5)", "gate"),
    ("SUBSTRING(s, -4, 2)", "ga"),
    ("SUBSTRING(s, 0, 2)", "He"),
    ("SUBSTRING(s, 20, 2)", ""),
    ("SUBSTRING(s, -10, 4)", "He"),
    ("SUBSTRING(s, 2, -1)", ""),
    ("TRIM('  a b ')", "a b"),
    ("LTRIM('  a ')", "a "),
    ("RTRIM('  a ')", "  a"),
    ("TRIM(BOTH 'x' FROM 'xxaxbx')", "axb"),
    ("UPPER(n)", None),
]

MATHS = [
    ("ABS(-3)", 3),
    ("ABS(-1.5)", Decimal("1.5")),
    ("FLOOR(-2.5D)", -3),
    ("FLOOR(-2.5)", Decimal(-3)),
    ("CEIL(2.1D)", 3),
    ("CEIL(i)", 7),
    ("ROUND(2.5)", Decimal(3)),
    ("ROUND(2.5D)", 3.0),
    ("ROUND(-2.5D)", -3.0),
    ("ROUND(2.675D, 2)", 2.68),
    ("ROUND(1250, -2)", 1300),
    ("ROUND(nan, 2)", math.nan),
    ("SQRT(16)", 4.0),
    ("SQRT(-1)", math.nan),
    ("POWER(2, 10)", 1024.0),
    ("POWER(10.0D, 400)", math.inf),
    ("POWER(-8, 0.5D)", math.nan),
    ("POWER(0, -1)", math.inf),
    ("LN(1)", 0.0),
    ("LN(0)", None),
    ("LN(-1)", None),
    ("EXP(0)", 1.0),
    ("EXP(1000)", math.inf),
    ("SIGN(-4)", -1.0),
    ("SIGN(0)", 0.0),
    ("SQRT(n)", None),
    ("ROUND(n, 2)", None),
]

CASTS = [
    ("CAST('12' AS INT)", 12),
    ("CAST(' 12 ' AS BIGINT)", 12),
    ("CAST(-2.7D AS INT)", -2),
    ("CAST(2.7 AS INT)", 2),
    ("CAST(TRUE AS INT)", 1),
    ("CAST('1.5' AS DOUBLE)", 1.5),
    ("CAST('NaN' AS DOUBLE)", math.nan),
    ("CAST('-Infinity' AS DOUBLE)", -math.inf),
    ("CAST(1 AS DOUBLE)", 1.0),
    ("CAST(0.1D AS FLOAT)", 0.10000000149011612),
    ("CAST(2.345 AS DECIMAL(10, 2))", Decimal("2.35")),
    ("CAST('7' AS DECIMAL(10, 1))", Decimal("7.0")),
    ("CAST(2.5 AS DECIMAL)", Decimal(3)),
    ("CAST(1 AS BOOLEAN)", True),
    ("CAST('no' AS BOOLEAN)", False),
    ("CAST(i AS STRING)", "7"),
    ("CAST(x AS STRING)", "2.5"),
    ("CAST(1e10 AS STRING)", "1.0E10"),
    ("CAST(1.25e-5 AS STRING)", "1.25E-5"),
    ("CAST(b AS STRING)", "true"),
    ("CAST(d AS STRING)", "1.25"),
    ("CAST(ts AS STRING)", "2024-05-01 12:34:56.789"),
    ("CAST(day AS STRING)", "2024-05-01"),
    ("CAST('2024-05-01 10:00:00' AS TIMESTAMP)", datetime(2024, 5, 1, 10)),
    ("CAST(day AS TIMESTAMP)", datetime(2024, 5, 1)),
    ("CAST(90 AS TIMESTAMP)", datetime(1970, 1, 1, 0, 1, 30)),
    ("CAST(ts AS BIGINT)", 1_714_566_896),
    ("CAST(old AS BIGINT)", -1),
    ("CAST(ts AS DOUBLE)", 1_714_566_896.789),
    ("CAST(n AS INT)", None),
    ("TRY_CAST('x' AS INT)", None),
    ("TRY_CAST('12' AS INT)", 12),
    ("TRY_CAST(300 AS TINYINT)", None),
    ("TRY_CAST('2024-99-99' AS TIMESTAMP)", None),
    ("TRY_CAST(1000 AS DECIMAL(3, 1))", None),
]

TIMES = [
    ("ts + INTERVAL '5' MINUTE", datetime(2024, 5, 1, 12, 39, 56, 789_000)),
    ("ts - INTERVAL 1 DAY", datetime(2024, 4, 30, 12, 34, 56, 789_000)),
    ("INTERVAL '90' SECONDS + ts", datetime(2024, 5, 1, 12, 36, 26, 789_000)),
    ("ts + INTERVAL '1 day 2 hours'", datetime(2024, 5, 2, 14, 34, 56, 789_000)),
    ("ts + INTERVAL 1 HOUR 30 MINUTES", datetime(2024, 5, 1, 14, 4, 56, 789_000)),
    ("ts + INTERVAL '0.5' SECOND", datetime(2024, 5, 1, 12, 34, 57, 289_000)),
    ("ts - TIMESTAMP '2024-05-01 12:34:56'", timedelta(milliseconds=789)),
    ("ts - old > INTERVAL 1 DAY", True),
    ("INTERVAL 1 MINUTE * 2", timedelta(minutes=2)),
    ("CAST(n AS TIMESTAMP) + INTERVAL 1 DAY", None),
    ("unix_micros(ts)", 1_714_566_896_789_000),
    ("unix_millis(ts)", 1_714_566_896_789),
    ("unix_seconds(ts)", 1_714_566_896),
    ("unix_micros(old)", -1),
    ("unix_seconds(old)", -1),
    ("timestamp_micros(-1)", datetime(1969, 12, 31, 23, 59, 59, 999_999)),
    ("timestamp_millis(1500)", datetime(1970, 1, 1, 0, 0, 1, 500_000)),
    ("timestamp_seconds(60)", datetime(1970, 1, 1, 0, 1)),
    ("date_trunc('second', ts)", datetime(2024, 5, 1, 12, 34, 56)),
    ("date_trunc('MINUTE', ts)", datetime(2024, 5, 1, 12, 34)),
    ("date_trunc('hour', ts)", datetime(2024, 5, 1, 12)),
    ("date_trunc('day', old)", datetime(1969, 12, 31)),
    ("unix_micros(CAST(n AS TIMESTAMP))", None),
]

TABLE = [
    *LITERALS,
    *COLUMNS,
    *ARITHMETIC,
    *COMPARISONS,
    *LOGIC,
    *CHOICES,
    *TEXTS,
    *MATHS,
    *CASTS,
    *TIMES,
]


def value_of(sql: str, row: dict[str, Any] = ROW) -> Any:
    return evaluate(sqlglot.parse_one(sql, dialect="spark"), row)


@pytest.mark.parametrize(("sql", "expected"), TABLE, ids=[sql for sql, _ in TABLE])
def test_the_value_and_its_type(sql: str, expected: Any) -> None:
    value = value_of(sql)
    assert type(value) is type(expected)
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(value)
    else:
        assert value == expected


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("i / 0", "division by zero in i / 0: guard the divisor with nullif(0, 0)"),
        ("x / 0.0D", "division by zero"),
        ("0.0 / 0.0", "division by zero"),
        ("i % (i - 7)", "division by zero in i % (i - 7)"),
        ("i DIV 0", "division by zero"),
        ("s + 1", "cannot evaluate s + 1 for 'Headgate', 1: not a whole number"),
        ("s + s", "cannot evaluate s + s"),
        ("b + b", "cannot evaluate b + b"),
        ("-s", "cannot evaluate -s"),
        ("st = st", "cannot evaluate st = st"),
        ("i AND b", "i is 7: a condition must be true, false or NULL"),
        ("CAST('x' AS INT)", "cannot cast 'x' to INT: not a whole number"),
        ("CAST('1.5' AS INT)", "cannot cast '1.5' to INT"),
        ("CAST(3000000000 AS INT)", "out of the range of 32 bits"),
        ("CAST(nan AS INT)", "cannot cast nan to INT"),
        ("CAST(1000 AS DECIMAL(3, 1))", "more digits than a decimal(3, 1) holds"),
        ("CAST('maybe' AS BOOLEAN)", "neither true nor false"),
        ("CAST(i AS ARRAY<INT>)", "cannot evaluate a cast to ARRAY<INT>"),
        ("TRY_CAST(i AS ARRAY<INT>)", "cannot evaluate a cast to ARRAY<INT>"),
        ("ts + INTERVAL 1 MONTH", "cannot evaluate INTERVAL '1' MONTH"),
        ("ts + INTERVAL '1 month 2 days'", "month is not a unit of fixed length"),
        ("date_trunc('week', ts)", "WEEK"),
        ("ceil(x, 1)", "cannot evaluate CEIL(x, 1): the reference does not support Ceil"),
        ("i IN (SELECT 1)", "cannot evaluate i IN (SELECT 1)"),
        ("sum(i)", "cannot evaluate SUM(i): the reference does not support Sum"),
        ("levenstein(s)", "the reference has no function levenstein"),
    ],
)
def test_what_cannot_be_evaluated_says_why(sql: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        value_of(sql)
    assert message in str(caught.value)


def test_a_column_or_field_that_is_not_there() -> None:
    with pytest.raises(BindError, match="there is no column q: the row has a, b"):
        value_of("q + 1", {"a": 1, "b": 2})
    with pytest.raises(BindError, match="there is no field z"):
        value_of("st.z")


def test_a_predicate_that_is_unknown_does_not_hold() -> None:
    predicate = sqlglot.parse_one("i > 5 AND n = 1", dialect="spark")
    assert [truth(predicate, {"i": 7, "n": n}) for n in (1, 2, None)] == [True, False, False]


def test_a_condition_that_is_no_condition_is_an_error() -> None:
    with pytest.raises(Error, match="i is 7: a condition must be"):
        truth(sqlglot.parse_one("i", dialect="spark"), ROW)


def test_the_expression_is_left_as_it_was() -> None:
    # nodes know their parent: to build new nodes around old ones would break the tree of the caller
    sql = "CASE i WHEN 7 THEN i BETWEEN 1 AND 9 ELSE NULLIF(i, 7) IS NULL END"
    tree = sqlglot.parse_one(sql, dialect="spark")
    parents = [(id(node), id(node.parent)) for node in tree.walk()]
    evaluate(tree, ROW)
    assert [(id(node), id(node.parent)) for node in tree.walk()] == parents


def test_decimals_keep_the_digits_that_spark_keeps() -> None:
    wide = Decimal("12345678901234567890123456789012345.678")
    row = {"w": wide}
    assert value_of("-w", row) == wide.copy_negate()
    assert value_of("ABS(w)", row) == wide
    assert value_of("w + 0", row) == wide
    assert value_of("ROUND(w, 2)", row) == Decimal("12345678901234567890123456789012345.68")
    assert value_of("w > 12345678901234567890123456789012345.677", row) is True
