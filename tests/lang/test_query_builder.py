"""The builder: each tree it makes is the tree of the same text."""

from __future__ import annotations

import pytest

from headgate.errors import BindError, ParseError
from headgate.lang import Query, parse_query, select, stream, union, window

PAIRS = [
    (
        select("srcIP", "count(*) AS n")
        .window(range="10 minutes", slide="1 minute", wa="ts")
        .from_("Main")
        .group_by("srcIP"),
        "SELECT srcIP, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main GROUP BY srcIP",
    ),
    (
        select("max(price)").from_(stream("bids", window=window(range="4 minutes", slide="1 minute", wa="ts"))),
        "SELECT max(price) FROM bids [RANGE 4 minutes SLIDE 1 minute WA ts]",
    ),
    (
        select("a")
        .from_(
            stream("Main1", window(range="3 minutes", wa="ts"), alias="l"),
            ("Main2 [RANGE 2 minutes]", "r"),
        )
        .where("l.srcIP = r.destIP")
        .where("l.len > 1 OR r.len > 1"),
        "SELECT a FROM Main1 AS l [RANGE 3 minutes, WA ts], Main2 AS r [RANGE 2 minutes] "
        "WHERE l.srcIP = r.destIP AND (l.len > 1 OR r.len > 1)",
    ),
    (
        select("count(*)").window(range="1 minute", slide="1 minute").from_(union("Control", "Main1", "Main2")),
        "SELECT count(*) [RANGE 1 minute, SLIDE 1 minute] FROM Control UNION Main1 UNION Main2",
    ),
    (
        select("a").from_(
            union("A", union("B", "C"), alias="M1"),
            stream(union("D", select("a").from_("E")), window(range="10 seconds", wa="ts", tumbling=True), "M2"),
        ),
        "SELECT a FROM A UNION B UNION C AS M1, D UNION (SELECT a FROM E) AS M2 [RANGE TUMBLING 10 seconds, WA ts]",
    ),
    (
        select("count(*)")
        .window(range="1 hour", slide="1 hour")
        .from_(select("max(p) - min(p) AS d").window(range="5 minutes", wa="ts").from_("Stocks"))
        .where("d > 5"),
        "SELECT count(*) [RANGE 1 hour, SLIDE 1 hour] FROM "
        "(SELECT max(p) - min(p) AS d [RANGE 5 minutes, WA ts] FROM Stocks) WHERE d > 5",
    ),
    (
        select("count(*)").from_("S").group_by("window(ts, '10 minutes')", "a").group_by("b").having("count(*) > 1"),
        "SELECT count(*) FROM S GROUP BY window(ts, '10 minutes'), a, b HAVING count(*) > 1",
    ),
    (
        select("max(p) AS m").window(range="all", slide="1 hour", pa=("a", "S.b")).from_("S"),
        "SELECT max(p) AS m [RANGE ALL, SLIDE 1 hour, PA (a, S.b)] FROM S",
    ),
    (
        select("max(p)").window(range=10.5, rattr="x", slide="5 rows", sattr="rank(x)", pa="k").from_("S"),
        "SELECT max(p) [RANGE 10.5, RATTR x, SLIDE 5 rows, SATTR rank(x), PA k] FROM S",
    ),
    (
        select("max(p)").window(range=100, wa="row-num", slide=1, sattr="row_num").from_("S"),
        "SELECT max(p) [RANGE 100, WA row_num, SLIDE 1, SATTR row_num] FROM S",
    ),
]


@pytest.mark.parametrize(("query", "sql"), PAIRS)
def test_the_tree_is_that_of_the_text(query: Query, sql: str) -> None:
    assert query.ast == parse_query(sql)
    assert parse_query(query.sql()) == query.ast
    assert parse_query(query.sql(pretty=True)) == query.ast


def test_a_query_never_changes() -> None:
    clause = window(range="5 minutes")
    base = select("a").from_("S")
    before = base.sql()
    base.where("a > 1"), base.group_by("a"), base.having("a > 1"), base.window(range=5), base.from_("T")
    base.ast.set("from_", None)
    assert base.sql() == before
    first, second = select("a").from_(stream("A", clause)), select("a").from_(stream("B", clause))
    assert first.sql() == "SELECT a FROM A [RANGE 5 minutes]"
    assert second.sql() == "SELECT a FROM B [RANGE 5 minutes]"


def test_text_that_does_not_parse() -> None:
    with pytest.raises(ParseError, match="line 1, column 3: expected a unit"):
        window(range="1 month")
    with pytest.raises(ParseError, match="column 3: expected the end"):
        select("a").from_("S").where("a ) OR 1 = 1")
    with pytest.raises(ParseError, match="column 1: expected a stream"):
        select("a").from_("")
    with pytest.raises(ParseError, match="expected a column"):
        window(range=5, wa="1 + 1")


def test_calls_that_make_no_query() -> None:
    with pytest.raises(BindError, match="at least one item"):
        select()
    with pytest.raises(BindError, match="at least one source"):
        select("a").from_()
    with pytest.raises(BindError, match="at least two"):
        union("A")
    with pytest.raises(BindError, match="window already"):
        select("a [RANGE 5]").window(range=5)
    with pytest.raises(BindError, match="window already"):
        stream("S [RANGE 5]", window(range=5))
    with pytest.raises(BindError, match="alias already"):
        stream("S AS a", alias="b")
    with pytest.raises(BindError, match="in a union"):
        union("A", stream("B", alias="b"))
