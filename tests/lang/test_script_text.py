"""Scripts: CREATE STREAM, CREATE QUERY and CREATE SINK."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlglot import exp

from headgate.lang import (
    CreateQuery,
    CreateSink,
    CreateStream,
    Length,
    Statement,
    parse_query,
    parse_script,
    to_sql,
)

SCRIPT = """
-- what comes in
CREATE STREAM Main FROM kafka OPTIONS (topic = 'x', "a.b" = 'y', 'c.d' = "z", n = 3, m = -0.5, flag = true)
    SCHEMA (ts TIMESTAMP, srcIP STRING, len INT, at STRUCT<x: INT, y: ARRAY<STRING>>)
    PROGRESS ON ts WITHIN 10 seconds BY router IDLE 30 seconds;
/* what is asked */;
CREATE QUERY talkers WITH (shed = 'estimate', confidence = 0.99, weight = 2, loud = false) AS
    SELECT srcIP, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main GROUP BY srcIP;
CREATE QUERY swings WITH (shed = 'subset', gap = 10) AS SELECT max(p) - min(p) AS d [RANGE 5] FROM Stocks;
CREATE SINK FOR talkers INTO parquet 'results/talkers'; -- where it goes
"""


def one(sql: str) -> Statement:
    (statement,) = parse_script(sql)
    assert parse_script(to_sql(statement)) == [statement]
    assert parse_script(to_sql(statement, pretty=True)) == [statement]
    return statement


def stream(sql: str) -> CreateStream:
    statement = one(f"CREATE STREAM S FROM kafka {sql}")
    assert isinstance(statement, CreateStream)
    return statement


def test_a_script() -> None:
    statements = parse_script(SCRIPT)
    assert [type(statement) for statement in statements] == [
        CreateStream,
        CreateQuery,
        CreateQuery,
        CreateSink,
    ]
    assert [statement.name for statement in statements] == ["Main", "talkers", "swings", "talkers"]
    assert parse_script(";\n".join(to_sql(statement) for statement in statements)) == statements


def test_create_stream() -> None:
    main = parse_script(SCRIPT)[0]
    assert isinstance(main, CreateStream)
    assert (main.format, main.path) == ("kafka", None)
    assert main.options_dict == {"topic": "x", "a.b": "y", "c.d": "z", "n": 3, "m": -0.5, "flag": True}
    assert [column.name for column in main.schema] == ["ts", "srcIP", "len", "at"]
    assert [column.kind.sql("spark") for column in main.schema if column.kind] == [
        "TIMESTAMP",
        "STRING",
        "INT",
        "STRUCT<x: INT, y: ARRAY<STRING>>",
    ]
    progress = main.progress
    assert progress is not None
    assert (progress.on, progress.by) == (exp.column("ts"), exp.column("router"))
    assert isinstance(progress.within, Length)
    assert isinstance(progress.idle, Length)
    assert (progress.within.number, progress.idle.number) == (Decimal(10), Decimal(30))
    assert (progress.ordered, progress.slack_rows, progress.punctuated_by) == (False, None, None)


def test_the_parts_of_a_stream_in_any_order() -> None:
    parts = ["OPTIONS (topic = 'x')", "SCHEMA (ts TIMESTAMP)", "PROGRESS ON ts ORDERED"]
    assert stream(" ".join(parts)) == stream(" ".join(reversed(parts)))
    bare = stream("")
    assert (bare.options_dict, bare.schema, bare.progress) == ({}, [], None)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("WITHIN '1 minute'", {"within": "1 minutes"}),
        ("WITHIN 5", {"within": "5"}),
        ("ORDERED", {"ordered": True}),
        ("SLACK 100 ROWS", {"slack_rows": 100}),
        ("PUNCTUATED BY is_punct", {"punctuated_by": "is_punct"}),
        ("IDLE 1 min BY router ORDERED", {"ordered": True, "by": "router", "idle": "1 minutes"}),
    ],
)
def test_progress_rules(text: str, rule: dict[str, object]) -> None:
    progress = stream(f"PROGRESS ON ts {text}").progress
    assert progress is not None
    given = {key: arg for key, arg in progress.args.items() if key != "on" and arg is not None}
    assert {key: to_sql(arg) if isinstance(arg, exp.Expr) else arg for key, arg in given.items()} == rule


def test_a_path_after_the_format() -> None:
    source = one("CREATE STREAM S FROM parquet 'it\\'s/here' OPTIONS (mergeSchema = TRUE)")
    assert isinstance(source, CreateStream)
    assert (source.format, source.path, source.options_dict) == (
        "parquet",
        "it's/here",
        {"mergeSchema": True},
    )


def test_create_query() -> None:
    talkers = parse_script(SCRIPT)[1]
    assert isinstance(talkers, CreateQuery)
    assert talkers.properties_dict == {"shed": "estimate", "confidence": 0.99, "weight": 2, "loud": False}
    assert isinstance(talkers.properties_dict["weight"], int)
    assert talkers.expression == parse_query(
        "SELECT srcIP, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main GROUP BY srcIP"
    )
    plain = one("CREATE QUERY q AS SELECT a FROM A UNION ALL SELECT a FROM B")
    assert isinstance(plain, CreateQuery)
    assert plain.properties_dict == {}
    assert isinstance(plain.expression, exp.Union)


def test_create_sink() -> None:
    sink = one("CREATE SINK FOR talkers INTO parquet 'results/talkers' OPTIONS (mode = 'append')")
    assert isinstance(sink, CreateSink)
    assert (sink.name, sink.format, sink.path) == ("talkers", "parquet", "results/talkers")
    assert sink.options_dict == {"mode": "append"}
    bare = one("CREATE SINK FOR talkers INTO org.example.Sink")
    assert isinstance(bare, CreateSink)
    assert (bare.format, bare.path, bare.options_dict) == ("org.example.Sink", None, {})


def test_a_sink_for_late_tuples() -> None:
    sink = one("create sink for talkers late into parquet 'late/talkers'")
    assert isinstance(sink, CreateSink)
    assert (sink.name, sink.output, sink.path) == ("talkers", "late", "late/talkers")
    assert to_sql(sink) == "CREATE SINK FOR talkers LATE INTO parquet 'late/talkers'"
    of_a_query_named_late = one("CREATE SINK FOR late INTO console")
    assert isinstance(of_a_query_named_late, CreateSink)
    assert (of_a_query_named_late.name, of_a_query_named_late.output) == ("late", "answers")


@pytest.mark.parametrize(("word", "name"), [("BAD", "Main"), ("SHED", "talkers")])
def test_a_sink_for_other_tuples(word: str, name: str) -> None:
    sink = one(f"CREATE SINK FOR {name} {word} INTO console")
    assert isinstance(sink, CreateSink)
    assert (sink.name, sink.output) == (name, word.lower())
    assert to_sql(sink) == f"CREATE SINK FOR {name} {word} INTO console"


def test_names_in_backticks() -> None:
    statement = one("CREATE STREAM `my stream` FROM json OPTIONS (`odd key` = 'a\\nb')")
    assert isinstance(statement, CreateStream)
    assert (statement.name, statement.options_dict) == ("my stream", {"odd key": "a\nb"})
