"""Window clauses: where they may stand, what their words give, and what is no clause."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headgate.lang import Length, Rank, WindowClause, Windowed, parse_query, to_sql

DESIGN_EXAMPLES = [
    "SELECT srcIP, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main GROUP BY srcIP",
    "SELECT max(price) FROM bids [RANGE 4 minutes SLIDE 1 minute WA ts]",
    "SELECT Main1.ts FROM Main1 [RANGE 3 minutes, WA ts], Main2 [RANGE 2 minutes, WA ts] "
    "WHERE Main1.srcIP = Main2.destIP",
    "SELECT Main1.ts FROM Main1, Main2 [RANGE TUMBLING 5 minutes, WA ts] WHERE Main1.srcIP = Main2.destIP",
    "SELECT count(*) [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM Control UNION Main1 UNION Main2",
    "SELECT count(*) [RANGE 1 hour, SLIDE 1 hour] FROM (SELECT max(p) - min(p) AS d "
    "[RANGE 5 minutes, SLIDE 5 minutes, WA ts] FROM Stocks) WHERE d > 5",
    "SELECT srcIP, count(*) FROM Main GROUP BY window(ts, '10 minutes', '1 minute'), srcIP",
]


def clause_of(text: str) -> WindowClause:
    clause = parse_query(f"SELECT count(*) [{text}] FROM S").expressions[0].clause
    assert isinstance(clause, WindowClause)
    return clause


def length(number: int, unit: str | None = None) -> Length:
    return Length(this=exp.Literal.number(number), unit=exp.var(unit) if unit else None)


@pytest.mark.parametrize("sql", DESIGN_EXAMPLES)
def test_examples_of_the_design_read_and_print(sql: str) -> None:
    query = parse_query(sql)
    assert parse_query(to_sql(query)) == query
    assert parse_query(to_sql(query, pretty=True)) == query


def test_all_words() -> None:
    clause = clause_of("RANGE 10 minutes, SLIDE 1 minute, WA S.ts, RATTR x, SATTR rank(y), PA (a, S.b)")
    assert clause == WindowClause(
        range=length(10, "minutes"),
        slide=length(1, "minutes"),
        wa=exp.column("ts", "S"),
        rattr=exp.column("x"),
        sattr=Rank(this=exp.column("y")),
        pa=[exp.column("a"), exp.column("b", "S")],
    )
    assert (clause.tumbling, clause.all) == (False, False)


@pytest.mark.parametrize(
    "text",
    [
        "RANGE 10 minutes, SLIDE 1 minute, WA ts, PA key",
        "RANGE 10 minutes SLIDE 1 minute WA ts PA key",
        "PA (key) WATTR ts, SLIDE 1 minute RANGE 10 minutes",
        "range 10 Minutes, slide 1 MINUTE, wattr ts, pa (key)",
        "WA ts\n,\tRANGE '10 minutes' -- as Spark writes it\n, SLIDE INTERVAL 1 minute PA key",
    ],
)
def test_order_commas_and_case_mean_nothing(text: str) -> None:
    expected = WindowClause(
        range=length(10, "minutes"),
        slide=length(1, "minutes"),
        wa=exp.column("ts"),
        pa=[exp.column("key")],
    )
    assert clause_of(text) == expected


def test_range_all_and_tumbling() -> None:
    landmark = clause_of("RANGE ALL, SLIDE 1 hour")
    assert (landmark.all, landmark.range, landmark.slide) == (True, None, length(1, "hours"))
    tumbling = clause_of("RANGE TUMBLING 5 minutes")
    assert (tumbling.tumbling, tumbling.range, tumbling.slide) == (True, length(5, "minutes"), None)


@pytest.mark.parametrize("name", ["row_num", "row-num", "ROW-NUM"])
def test_row_num_as_the_papers_write_it(name: str) -> None:
    clause = clause_of(f"RANGE 100 rows WA {name} SLIDE 1 row SATTR {name}")
    assert clause.wa is not None
    assert clause.sattr is not None
    assert (clause.wa.name.lower(), clause.sattr.name.lower()) == ("row_num", "row_num")


def test_a_clause_before_or_after_the_alias_is_the_same() -> None:
    after = parse_query("SELECT count(*) AS n [RANGE 5 minutes] FROM S")
    before = parse_query("SELECT count(*) [RANGE 5 minutes] AS n FROM S")
    item = after.expressions[0]
    assert after == before
    assert isinstance(item, Windowed)
    assert isinstance(item.this, exp.Alias)
    assert (item.alias_or_name, after.named_selects) == ("n", ["n"])


@pytest.mark.parametrize("source", ["S AS m [RANGE 5 minutes]", "S [RANGE 5 minutes] AS m", "S m [RANGE 5 minutes]"])
def test_the_alias_of_a_stream_is_inside(source: str) -> None:
    item = parse_query(f"SELECT a FROM {source}").args["from_"].this
    assert isinstance(item, Windowed)
    assert isinstance(item.this, exp.Table)
    assert (item.this.name, item.alias) == ("S", "m")


def test_a_clause_after_each_stream_of_a_join() -> None:
    query = parse_query("SELECT 1 FROM A [RANGE 3] x JOIN B AS y [RANGE 4] ON x.k = y.k, C [RANGE 5]")
    items = [query.args["from_"].this, *(join.this for join in query.args["joins"])]
    assert [item.clause.range.number for item in items] == [3, 4, 5]
    assert query.args["joins"][0].args["on"] == parse_query("SELECT x.k = y.k").expressions[0]


def test_a_clause_after_a_nested_query() -> None:
    item = parse_query("SELECT a FROM (SELECT a FROM S [RANGE 5]) AS inner [RANGE 6]").args["from_"].this
    assert isinstance(item.this, exp.Subquery)
    assert item.this.alias == "inner"
    assert [clause.range.number for clause in item.find_all(WindowClause) if clause.range] == [6, 5]


def test_a_clause_after_filter_subscripts_and_arithmetic() -> None:
    query = parse_query(
        "SELECT count(*) FILTER (WHERE x > 1) [RANGE 1], collect_list(x)[0] AS f [RANGE 2], "
        "max(p) - min(p) AS d [RANGE 3] FROM S"
    )
    assert [type(item) for item in query.expressions] == [Windowed] * 3
    assert isinstance(query.expressions[1].this.this, exp.Bracket)


def test_the_words_remain_names_elsewhere() -> None:
    query = parse_query(
        "SELECT range, slide, all, wa, pa, p[range], p[slide + 1], p[range - 1], p[pa(x)], p[wa IS NULL] "
        "FROM rattr AS range WHERE range.slide > 1"
    )
    assert not list(query.find_all(Windowed))
    assert [item.name for item in query.expressions[:5]] == ["range", "slide", "all", "wa", "pa"]
    assert all(isinstance(item, exp.Bracket) for item in query.expressions[5:])


def test_a_first_word_in_parentheses_is_told_from_a_call() -> None:
    assert clause_of("PA (a, b), RANGE 5").pa == [exp.column("a"), exp.column("b")]
    assert clause_of("RANGE -5 minutes").range == Length(
        this=exp.Literal(this="-5", is_string=False), unit=exp.var("minutes")
    )


@pytest.mark.parametrize("call", ["window(ts, '10 minutes', '1 minute')", "window(ts, '1 day', '1 day', '1 hour')"])
def test_window_as_spark_writes_it_keeps_its_arguments(call: str) -> None:
    query = parse_query(f"SELECT window.start, window.end, window, count(*) FROM Main GROUP BY {call}, srcIP")
    function = query.args["group"].expressions[0]
    assert isinstance(function, exp.Anonymous)
    assert function.name == "window"
    assert len(function.expressions) == call.count(",") + 1
    assert query.expressions[:3] == [
        exp.column("start", "window"),
        exp.column("end", "window"),
        exp.column("window"),
    ]
    assert parse_query(to_sql(query)) == query


def test_cast_is_strict_and_try_cast_is_not() -> None:
    strict, lenient = parse_query("SELECT CAST(a AS INT), TRY_CAST(a AS INT) FROM S").expressions
    assert (type(strict), type(lenient)) == (exp.Cast, exp.TryCast)
