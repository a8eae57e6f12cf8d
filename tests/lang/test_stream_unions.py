"""UNION between streams after FROM, and where it is the UNION of queries instead."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headgate.lang import StreamUnion, Windowed, parse_query, to_sql


def sources(sql: str) -> list[exp.Expr]:
    query = parse_query(sql)
    assert parse_query(to_sql(query)) == query
    return [query.args["from_"].this, *(join.this for join in query.args.get("joins") or [])]


def names(union: exp.Expr) -> list[str]:
    assert isinstance(union, StreamUnion)
    return [member.name for member in union.expressions]


@pytest.mark.parametrize(
    "text",
    [
        "A UNION B UNION C",
        "A UNION ALL B UNION ALL C",
        "(A UNION (B UNION C))",
        "((A UNION B) UNION C)",
        "(A) UNION (B UNION C)",
    ],
)
def test_a_union_is_flat(text: str) -> None:
    (union,) = sources(f"SELECT a FROM {text} WHERE a > 1")
    assert names(union) == ["A", "B", "C"]
    assert union.alias == ""


def test_an_alias_after_the_last_member_names_the_union() -> None:
    first, second = sources("SELECT a FROM A UNION B AS M1, C UNION D AS M2 [RANGE TUMBLING 10 seconds, WA ts]")
    assert (names(first), first.alias) == (["A", "B"], "M1")
    assert isinstance(second, Windowed)
    assert (names(second.this), second.alias) == (["C", "D"], "M2")
    assert second.clause.tumbling
    assert all(not member.alias for member in first.expressions)


@pytest.mark.parametrize("text", ["A UNION B AS M", "(A UNION B) AS M", "(A UNION B AS M)", "A UNION (B) M"])
def test_parentheses_around_a_union_change_nothing(text: str) -> None:
    (union,) = sources(f"SELECT a FROM {text} [RANGE 5]")
    assert isinstance(union, Windowed)
    assert (names(union.this), union.alias) == (["A", "B"], "M")


def test_members_may_be_nested_queries() -> None:
    (union,) = sources("SELECT a FROM (SELECT a FROM A [RANGE 5]) UNION (SELECT a FROM B) UNION C AS M")
    assert isinstance(union, StreamUnion)
    assert [type(member) for member in union.expressions] == [exp.Subquery, exp.Subquery, exp.Table]
    assert union.alias == "M"


def test_a_union_in_a_join() -> None:
    left, right = sources("SELECT a FROM A UNION B AS l JOIN C UNION D AS r [RANGE 5] ON l.k = r.k")
    assert names(left) == ["A", "B"]
    assert names(right.this) == ["C", "D"]


@pytest.mark.parametrize("word", ["UNION", "UNION ALL"])
def test_union_of_queries_is_not_a_union_of_streams(word: str) -> None:
    query = parse_query(f"SELECT a FROM A {word} SELECT a FROM B")
    assert isinstance(query, exp.Union)
    assert not query.find(StreamUnion)
    assert not query.args["distinct"]  # A union keeps duplicates, with ALL or without.


def test_both_unions_in_one_text() -> None:
    query = parse_query("SELECT a FROM A UNION B UNION ALL SELECT a FROM C [RANGE 5]")
    assert isinstance(query, exp.Union)
    assert names(query.this.args["from_"].this) == ["A", "B"]
    nested = parse_query("SELECT a FROM (SELECT a FROM A UNION SELECT a FROM B)").args["from_"].this
    assert isinstance(nested.this, exp.Union)
