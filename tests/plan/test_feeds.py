"""Selections, projections and unions below an aggregate, written out over the streams."""

from __future__ import annotations

from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.stream.stages import continuous

COLUMNS = (Field("ts", "timestamp"), Field("src", "string"), Field("len", "int"))
STREAMS = Catalog([Source("A", COLUMNS, "ts"), Source("B", COLUMNS, "ts"), Source("Still", COLUMNS)])


def feeds(sql: str) -> list[tuple[str, str]]:
    query = continuous("q", bind(parse_query(sql), STREAMS))
    return [(f.stream, f.where.sql("spark") if f.where is not None else "") for f in query.stages[-1].feeds]


def test_a_filter_over_a_renamed_column_is_one_over_the_stream() -> None:
    sql = (
        "SELECT sum(bits) AS s [RANGE 1 minute] FROM (SELECT ts, len * 8 AS bits FROM A WHERE len > 0) WHERE bits < 800"
    )
    assert feeds(sql) == [("A", "`len` > 0 AND (`len` * 8) < 800")]


def test_a_union_has_a_feed_for_each_stream() -> None:
    assert feeds("SELECT count(*) AS n [RANGE 1 minute] FROM A UNION B") == [("A", ""), ("B", "")]


def test_a_query_without_aggregate_has_feeds_too() -> None:
    assert feeds("SELECT src FROM A WHERE len = 40") == [("A", "`len` = 40")]
