"""All functions of Spark: each is computed as Spark computes it, value and type, or refused by name."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import headgate as hg
from headgate.aggregates import aggregate_names
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.logical.spark_functions import FUNCTIONS, Kind
from headgate.plan.logical.types import UNKNOWN, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")

#: Operators, and what stands between operands, are no calls.
_WORD = re.compile(r"[a-z_0-9]+")
_EXAMPLE = re.compile(r"> SELECT (.*?);\s*\n", re.IGNORECASE | re.DOTALL)
#: Functions with FROM inside of their parentheses.
_WITH_FROM = re.compile(r"(?i)^(extract|trim|substr|substring|overlay|position)\(")
#: Functions that Spark shows only over the result of an aggregate, or not at all, and what to call them with.
_CALLS = {
    **{t: f"{t}('1')" for t in ("bigint", "decimal", "double", "float", "int", "smallint", "string", "tinyint")},
    "between": "one BETWEEN 1 AND 2",
    "binary": "binary('a')",
    "bitmap_count": "bitmap_count(X'1010')",
    "boolean": "boolean('true')",
    "case": "CASE WHEN one = 1 THEN 'a' END",
    "date": "date('2026-01-02')",
    "time": "time('12:30:00')",
    "timestamp": "timestamp('2026-01-02 03:04:05')",
}
#: Spark's own functions that take the state of a sketch, which no expression over one tuple makes.
_OVER_SKETCHES = re.compile(r"(hll|kll|theta|tuple)_\w+|approx_top_k_estimate|(from|to)_(avro|protobuf)")
#: Calls that Spark's grammar knows, and its list of functions does not.
_FORMS = {"timediff", "timestampadd", "timestampdiff"}
_AT_A_TIME = 40

CATALOG = Catalog([Source("S", (Field("one", "int"), Field("ts", "timestamp")))])


def documented(spark: SparkSession) -> dict[str, str]:
    """The functions that Spark lists, with the examples that it gives for each."""
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # type: ignore[union-attr]
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    words = [name for name in names if _WORD.fullmatch(name)]
    return {n: catalog.lookupFunctionInfo(identifier(n)).getExamples() for n in words if n not in _CALLS} | {
        n: "" for n in words if n in _CALLS
    }


def examples(texts: dict[str, str]) -> list[tuple[str, str]]:
    """Expressions over one tuple, each with the function that it is an example of."""
    found = [(name, " ".join(match[1].split())) for name, text in texts.items() for match in _EXAMPLE.finditer(text)]
    alone = [(n, e) for n, e in found if _WITH_FROM.match(e) or not re.search(r"\bFROM\b", e, re.IGNORECASE)]
    return [*alone, *_CALLS.items()]


def refusal(expression: str) -> str | None:
    try:
        bind(parse_query(f"SELECT {expression} AS v FROM S"), CATALOG)
    except hg.Error as error:
        return str(error)
    return None


def test_the_functions_that_are_known_are_those_of_spark(spark: SparkSession) -> None:
    assert documented(spark).keys() == FUNCTIONS.keys() - _FORMS


def test_every_function_is_computed_as_spark_does_or_refused_by_name(spark: SparkSession) -> None:
    texts = documented(spark)
    stream = spark.sql("SELECT 1 AS one, TIMESTAMP'2026-01-01' AS ts")
    given = examples(texts)
    done = [(name, e) for name, e in given if refusal(e) is None]
    compared = Counter(_compared(stream, done))
    missed = [n for n, k in FUNCTIONS.items() if k is Kind.SCALAR and n not in compared and n not in _FORMS]
    assert [name for name in missed if not _OVER_SKETCHES.fullmatch(name)] == []
    for name, kind in ((name, kind) for name, kind in FUNCTIONS.items() if name not in _FORMS):
        if name in compared:
            assert kind is Kind.SCALAR or name == "unix_timestamp", name
        elif kind in (Kind.VOLATILE, Kind.GENERATOR, Kind.RANKING, Kind.WINDOW):
            assert name in (refusal(f"{name}(one)") or ""), name
        elif kind is Kind.AGGREGATE:
            message = refusal(f"{name}(one)") or ""
            assert name in aggregate_names() or f"{name} is not an aggregate" in message, name


def test_types_are_those_of_spark_or_not_known(spark: SparkSession) -> None:
    stream = spark.sql("SELECT 1 AS one, TIMESTAMP'2026-01-01' AS ts")
    told = {}
    for _, expression in examples(documented(spark)):
        if refusal(expression) is None:
            tree = parse_query(f"SELECT {expression} AS v FROM S").selects[0].unalias()
            told[expression] = type_of(tree, {"one": "int", "ts": "timestamp"})
    known = [expression for expression, type_ in told.items() if type_ != UNKNOWN]
    found = {
        expression: answer[0]
        for part in _parts(known)
        for expression, answer in _each(part, lambda part: _plain(stream, part))
        if answer is not None
    }
    assert {e: (told[e], type_) for e, type_ in found.items() if not type_.startswith(told[e])} == {}
    assert len(found) > 300


@pytest.mark.parametrize(
    "expression",
    [
        "log10(x)",
        "x - 1 - 2 * x",
        "to_char(x, '99')",
        "to_json(parse_json(concat('{\"a\":', x, '}')))",
        "unix_date(date(ts))",
        "transform(array(x, 2), (v, i) -> v * x + i)",
        "x BETWEEN 2 AND 30 AND NOT x IN (7, 8)",
        "struct(x, x + 1 AS y)",
        "named_struct('a', x).a + s.`b c`.d",
        "timestampdiff(MINUTE, ts, timestampadd(HOUR, x, ts))",
        "CASE x WHEN 12 THEN 'a' ELSE 'b' END || -x",
        "+ concat(x, '') || 'a' 'b'",
        "x IS NOT NULL AND name NOT LIKE 'a%' ESCAPE '!'",
        "x /* a comment */ * 2 -- and another\n + 1",
        "extract(DAY FROM ts) || substring(name FROM 2 FOR 3) || trim(BOTH 'n' FROM name)",
        "s['b c'].d + array(x, 2)[0] + map('k', x)['k']",
        "x & 4 | 3 ^ ~x",
        "x::string || cast(x AS DECIMAL(10, 2))",
        "CAST(x AS STRING) RLIKE '^1'",
        "interval 3 days + ts",
        "to_json(var:a) || (var:a.b[0]::int + var:['c d']::int)",
        "transform(array(var, var), i -> i:a.b[1]::int + x)",
    ],
)
@pytest.mark.parametrize("columns", ["m.{}", "`{}`"])
def test_expressions_reach_spark_as_they_were_written(spark: SparkSession, expression: str, columns: str) -> None:
    stream = spark.sql(
        "SELECT 12 AS x, 'name' AS name, TIMESTAMP'2026-03-01 10:00:00' AS ts,"
        " named_struct('b c', named_struct('d', 5)) AS s, parse_json('{\"a\": {\"b\": [1, 2]}, \"c d\": 3}') AS var"
    )
    sql = re.sub(r"(?<![\w.'`])(x|name|ts|s|var)(?![\w('])(?!::)", lambda match: columns.format(match[1]), expression)
    ours = hg.evaluate(f"SELECT {sql} AS v FROM (SELECT x AS x, name, ts AS ts, s, var FROM S) AS m", S=stream)
    theirs = stream.selectExpr(f"{expression} AS v")
    assert ours.select("v").schema == theirs.schema
    assert ours.select("v").collect() == theirs.collect()


@pytest.mark.parametrize(
    "query",
    [
        # Fields of structs are called as in Spark, whatever the planner calls what they are made of.
        "SELECT struct(count(*), m.k, upper(k)) AS v {} FROM {} GROUP BY k",
        "SELECT to_json(struct(upper(k))) AS v, count(*) AS n {} FROM {} GROUP BY upper(k)",
        "SELECT (count(*), (k, max(x)), 1) AS v {} FROM {} GROUP BY k",
        "SELECT arrays_zip(xs, array(count(*)), array_sort(xs)) AS v {} FROM {} GROUP BY xs",
        "SELECT arrays_zip(max(m.xs), min(xs)) AS v {} FROM {}",
        "SELECT max((m.x, k)) AS v, max(arrays_zip(m.xs, array(x))) AS w {} FROM {}",
        "SELECT count_if((m.x, k) IN ((12, 'a'))) AS v, count_if(k LIKE ANY (k, 'b%')) AS w {} FROM {}",
        "SELECT s.a + 1 AS v, struct(s.a) AS w {} FROM {} GROUP BY s",
        # An average has the type that it has in Spark, also where only Spark knows of what it is.
        "SELECT avg(try_add(d, 1)) AS v, avg(decimal(x)) AS w, avg(ceil(d)) AS y, avg(half(x)) AS z {} FROM {}",
        "SELECT avg(try_add(x, 1)) AS v, avg(ceil(x)) AS w, avg(try_divide(x, 2)) AS y {} FROM {}",
        "SELECT avg(ts - timestamp'2026-01-01') AS v, sum(ts - timestamp'2026-01-01') AS w {} FROM {}",
        "SELECT percentile(x, 0.25D) AS v, percentile(x, array(0.25BD, 1L)) AS w {} FROM {}",
        # In HAVING, aggregates are over the input.
        "SELECT k AS v, sum(x) AS x {} FROM {} GROUP BY k HAVING sum(x) > 1 AND x < 100",
    ],
)
@pytest.mark.parametrize("joined", [False, True])
def test_what_stands_around_aggregates_is_as_in_spark(spark: SparkSession, query: str, joined: bool) -> None:
    stream = spark.sql(
        "SELECT *, TIMESTAMP'2026-01-01' + id * INTERVAL 1 MINUTE AS ts, array(x, id) AS xs, named_struct('a', x) AS s"
        " FROM VALUES (1, 12, 'a', 2.50), (2, -3, 'b', -0.05), (3, 5, 'a', 1.25) AS t(id, x, k, d)"
    )
    hosts = spark.sql("SELECT * FROM VALUES ('a', 1), ('b', 2) AS t(host, number)")
    spark.udf.register("half", lambda value: Decimal(value) / 2, "decimal(10, 3)")
    stream.createOrReplaceTempView("written_s")
    hosts.createOrReplaceTempView("written_hosts")
    inputs = "{} AS m JOIN {} AS h ON m.k = h.host" if joined else "{} AS m"
    ours = hg.evaluate(
        query.format("[RANGE 100, WA m.id]", inputs.format("S", "hosts")), S=stream, hosts=hg.table(hosts)
    )
    theirs = spark.sql(query.format("", inputs.format("written_s", "written_hosts")))
    ours = ours.select(*theirs.columns)
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))


def _compared(stream: DataFrame, done: Sequence[tuple[str, str]]) -> Iterable[str]:
    """The functions whose examples gave what Spark gives, be it an error."""
    for part in _parts(done):
        expressions = [expression for _, expression in part]
        ours = _each(expressions, lambda part: _evaluated(stream, part))
        theirs = _each(expressions, lambda part: _plain(stream, part))
        for (name, expression), (_, own), (_, other) in zip(part, ours, theirs, strict=True):
            assert own == other, expression
            yield name


def _each(
    part: Sequence[str], asked: Callable[[Sequence[str]], DataFrame]
) -> Iterable[tuple[str, tuple[str, str] | None]]:
    """Each expression with its type and its value as text, or None where it cannot be computed."""
    try:
        df = asked(part)
        (row,) = df.select(*(F.col(c).cast("string") for c in df.columns)).collect()
        return list(zip(part, zip((t for _, t in df.dtypes), map(str, row), strict=True), strict=True))
    except (hg.Error, PySparkException):
        if len(part) == 1:
            return [(part[0], None)]
    half = len(part) // 2
    return [*_each(part[:half], asked), *_each(part[half:], asked)]


def _evaluated(stream: DataFrame, expressions: Sequence[str]) -> DataFrame:
    items = ", ".join(f"{expression} AS v{i}" for i, expression in enumerate(expressions))
    return hg.evaluate(f"SELECT {items} FROM S", S=stream).drop("sampling_rate")


def _plain(stream: DataFrame, expressions: Sequence[str]) -> DataFrame:
    return stream.selectExpr(*(f"{expression} AS v{i}" for i, expression in enumerate(expressions)))


def _parts(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[i : i + _AT_A_TIME] for i in range(0, len(items), _AT_A_TIME))
