"""Any tree that the parser gives is printed as text that reads as an equal tree."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import ParseError
from headgate.lang import parse_query, to_sql

UNITS = [
    "microseconds",
    "millisecond",
    "Seconds",
    "sec",
    "minute",
    "MINS",
    "hours",
    "day",
    "weeks",
    "rows",
    "tuple",
]
NAMES = st.sampled_from(["ts", "srcIP", "price", "range", "slide", "wa", "timestamp", "`odd name`", "rank"])
STREAMS = st.sampled_from(["Main", "bids", "S1", "rows", "`my stream`"])

columns = st.one_of(NAMES, st.tuples(STREAMS, NAMES).map(".".join))
numbers = st.one_of(st.integers(-5, 10**6).map(str), st.decimals(0, 1000, places=3).map(str))
lengths = st.one_of(
    numbers,
    st.tuples(numbers, st.sampled_from(UNITS)).map(" ".join),
    st.tuples(st.integers(0, 9), st.integers(0, 99)).map(lambda pair: f"{pair[0]} hours {pair[1]} minutes"),
    st.integers(1, 99).map(lambda number: f"'{number} minutes'"),
)


@st.composite
def clauses(draw: st.DrawFn) -> str:
    ranges = st.one_of(st.just("ALL"), lengths, lengths.map("TUMBLING {}".format))
    words = [f"RANGE {draw(ranges)}"]
    optional = {
        "SLIDE": lengths,
        "WA": columns,
        "RATTR": columns,
        "SATTR": st.one_of(st.just("row_num"), columns.map("rank({})".format)),
        "PA": st.one_of(columns, st.lists(columns, min_size=1, max_size=3).map(lambda some: f"({', '.join(some)})")),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    words += [f"{word} {draw(optional[word])}" for word in sorted(chosen)]
    return f"[{draw(st.sampled_from([', ', ' '])).join(draw(st.permutations(words)))}]"


def windowed(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(texts, st.tuples(texts, clauses()).map(" ".join))


calls = st.tuples(st.sampled_from(["count(*)", "sum({})", "max({}) - min({})", "mine({}, 1)"]), columns).map(
    lambda pair: pair[0].replace("{}", pair[1])
)
aliased = st.tuples(st.one_of(columns, calls), st.sampled_from(["", " AS n", " AS total"])).map("".join)
items = st.lists(windowed(aliased), min_size=1, max_size=3).map(", ".join)
unions = st.lists(STREAMS, min_size=1, max_size=3).map(" UNION ".join)
aliases = st.sampled_from(["", " AS m", " AS m2"])


def selects(sources: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    from_items = st.lists(windowed(st.tuples(sources, aliases).map("".join)), min_size=1, max_size=2).map(", ".join)
    tails = st.sampled_from(["", " WHERE price > 1 AND range < 2", " GROUP BY window(ts, '1 day'), srcIP"])
    return st.tuples(items, from_items, tails).map(lambda parts: f"SELECT {parts[0]} FROM {parts[1]}{parts[2]}")


queries = selects(st.recursive(unions, lambda sources: selects(sources).map("({})".format), max_leaves=3))


@given(queries)
@settings(max_examples=60)
def test_print_and_read_again(sql: str) -> None:
    query = parse_query(sql)
    assert parse_query(to_sql(query)) == query
    assert parse_query(to_sql(query, pretty=True)) == query
    assert to_sql(parse_query(to_sql(query))) == to_sql(query)


@given(st.tuples(queries, queries).map(" UNION ALL ".join), st.data())
@settings(max_examples=40)
def test_damaged_text_reads_or_says_where_it_does_not(sql: str, data: st.DataObject) -> None:
    tokens = re.findall(r"\w+|\s+|[^\w\s]", sql)
    place = data.draw(st.integers(0, len(tokens) - 1))
    damage = data.draw(st.sampled_from(["", "[", "]", "(", ")", ",", " RANGE ", " UNION ", "'", "-", " 5 "]))
    damaged = "".join([*tokens[:place], damage, *tokens[place + 1 :]])
    error = error_of(damaged)
    assert error is None or (error.line == 1 and 1 <= error.column <= len(damaged) + 1)


def error_of(sql: str) -> ParseError | None:
    try:
        parse_query(sql)
    except ParseError as error:
        return error
    return None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT timestamp '2020-01-01', ts + INTERVAL 5 minutes, a IS NOT NULL, a <=> b FROM S",
        "WITH q AS (SELECT a [RANGE 5] FROM S) SELECT b FROM q ORDER BY b LIMIT 3",
        "SELECT DISTINCT a FROM S WHERE a IN (SELECT b FROM T) AND EXISTS (SELECT 1 FROM U)",
        "SELECT * FROM A LEFT JOIN B [RANGE 5] USING (k)",
        "SELECT transform(xs, x -> x + 1), m['k'], s.a.b.c FROM S LATERAL VIEW explode(xs) t AS x",
        "(SELECT a FROM A) UNION (SELECT a FROM B)",
    ],
)
def test_the_rest_of_spark_sql(sql: str) -> None:
    query = parse_query(sql)
    assert parse_query(to_sql(query)) == query
    assert parse_query(to_sql(query, pretty=True)) == query
