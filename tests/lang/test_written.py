"""Expressions keep the text that they were written with, also when parts of them are exchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from headgate.lang import parse_query, to_sql
from headgate.lang.generator import WrittenGenerator


def item(text: str) -> exp.Expr:
    found = parse_query(f"SELECT {text} FROM S").selects[0]
    assert isinstance(found, exp.Expr)
    return found


def shown(expression: exp.Expr) -> str:
    return WrittenGenerator(dialect="spark").generate(expression)


def with_columns(expression: exp.Expr, name: str) -> exp.Expr:
    """The expression with another column in the place of each."""
    return expression.copy().transform(lambda node: exp.column(name) if isinstance(node, exp.Column) else node)


COLUMNS = st.sampled_from(["a", "b", "s.f", "`odd name`"])
CONSTANTS = st.sampled_from(
    ["1", "0.50", "'it''s'", "1e3", "DATE '2026-01-01'", "interval 3 days", "NULL", "10L", "X'1F'"]
)


def _expressions(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(parts, st.sampled_from([" + ", "*", " AND ", " <=> ", "||", " DIV ", " >= ", "&", " or "]), parts)
    return st.one_of(
        pairs.map("".join),
        parts.map("( {} )".format),
        st.tuples(st.sampled_from(["log10", "Upper", "to_char", "no_such", "date_trunc"]), parts, parts).map(
            lambda call: f"{call[0]}({call[1]},  {call[2]})"
        ),
        st.tuples(parts, parts, parts).map(lambda p: f"CASE WHEN {p[0]} THEN {p[1]} ELSE {p[2]} END"),
        st.tuples(parts, st.sampled_from([" IS NOT NULL", " NOT IN (1,2)", " not like 'x'", "::int", "[0]"])).map(
            lambda p: f"({p[0]}){p[1]}"
        ),
        parts.map("cast({} AS decimal( 10,2 ))".format),
        parts.map("- {}".format),
        parts.map("transform(xs, x -> x + {})".format),
        parts.map("struct({}  AS x, 1 AS one)".format),
    )


texts = st.recursive(st.one_of(COLUMNS, CONSTANTS), _expressions, max_leaves=8)


@given(texts)
def test_what_is_not_changed_is_as_it_was_written(text: str) -> None:
    assert shown(item(text)) == text


@given(texts)
def test_only_what_is_exchanged_is_another_text(text: str) -> None:
    tree = item(text)
    changed = shown(with_columns(tree, "changed_column"))
    assert changed.count("changed_column") == len(list(tree.find_all(exp.Column)))
    # Reading what was made gives the tree that was meant.
    assert item(changed) == with_columns(tree, "changed_column")


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("a + b * 2", "b * 2", "a + key"),
        ("a IS NOT NULL", "a", "key IS NOT NULL"),
        ("log10( a ) + 1", "log10(a)", "key + 1"),
        ("a + b + c", "a + b", "key + c"),
        ("x.y.z[ 0 ].w", "x.y.z", "key[ 0 ].w"),
        ("to_char(a, '99')", "to_char(a, '999')", "to_char(a, '99')"),
        ("NOT a LIKE 'x'", "a LIKE 'x'", "NOT key"),
    ],
)
def test_any_part_can_be_exchanged(text: str, part: str, expected: str) -> None:
    wanted = item(part)
    changed = item(text).copy().transform(lambda node: exp.column("key") if node == wanted else node)
    assert shown(changed) == expected


def test_what_is_put_in_keeps_together() -> None:
    tree = item("a * 2").copy()
    tree.this.replace(exp.column("b") + exp.column("c"))
    assert shown(tree) == "(b + c) * 2"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Log10( x ) AS n FROM S WHERE a  is not null",
        "SELECT sum( x ) FILTER (WHERE y > 1) [RANGE 5] FROM S GROUP BY date_trunc('HOUR', ts)",
    ],
)
def test_a_query_is_printed_in_the_users_words(sql: str) -> None:
    assert to_sql(parse_query(sql)) == sql
