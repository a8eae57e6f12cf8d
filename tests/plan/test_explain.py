"""Plans as text: what each operator says about itself, and which columns a plan needs."""

from __future__ import annotations

import pytest

from headgate.errors import BindError, ScriptError
from headgate.lang import parse_query, parse_script
from headgate.plan import Catalog, Field, Node, Source, Strategy, bind
from headgate.plan.logical.explain import explain
from headgate.plan.logical.script import bind_script

PACKETS = tuple(
    Field(*column.split())
    for column in ("ts timestamp", "srcIP string", "destIP string", "len int", "load double", "seq bigint")
)
STREAMS = Catalog([Source(name, PACKETS, "ts") for name in ("Main", "Main1", "Main2")])


def plan(sql: str) -> Node:
    return bind(parse_query(sql), STREAMS)


def lines(sql: str, strategy: Strategy | None = None) -> list[str]:
    """The lines of the plan, without the rails of the tree."""
    return [line.lstrip("│├└─ ").rstrip() for line in explain(plan(sql), strategy).splitlines()]


def labelled(sql: str, label: str, strategy: Strategy | None = None) -> str:
    (found,) = [line for line in lines(sql, strategy) if line.startswith(f"{label} ")]
    return found.removeprefix(label).strip()


def test_a_whole_plan() -> None:
    sql = """
        SELECT srcIP, count(*) AS n, sum(len) AS bytes [RANGE 10 minutes, SLIDE 1 minute, WA ts]
        FROM Main WHERE len > 100 GROUP BY srcIP HAVING count(*) > 5
    """
    assert (
        explain(plan(sql))
        == """\
Project srcIP, count(*) AS n, sum(len) AS bytes, window_start, window_end
└─ Filter count(*) > 5
   └─ Aggregate
      │ window    sliding: 10 minutes of ts, every minute; a tuple is in 10 windows
      │ bounds    window_start <= ts < window_end; window_start is a multiple of 1 minute since 1970 UTC
      │ category  context free: a tuple alone tells which windows it is in
      │ keys      srcIP
      │ strategy  paned: 65,000 a window by panes against 600,000 by windows
      │ panes     1 minute long; 10 to a window, 1 to a slide
      │ roll-up   running sums: panes that enter are added, those that leave are subtracted
      │ calls     count(*)  bounded, differential  from count(*)
      │           sum(len)  bounded, differential  from sum(len)
      └─ Filter len > 100
         └─ Source Main
              columns   ts timestamp, srcIP string, len int (3 of 6)
              progress  on ts"""
    )


@pytest.mark.parametrize(
    ("clause", "window", "bounds"),
    [
        (
            "RANGE 90 seconds, WA ts",
            "tumbling: 90 seconds of ts, one window after the other",
            "window_start <= ts < window_end; window_start is a multiple of 90 seconds since 1970 UTC",
        ),
        (
            "RANGE 1 minute, SLIDE 1 hour, WA ts",
            "sliding: 1 minute of ts, every hour; tuples in the gaps are in no window",
            "window_start <= ts < window_end; window_start is a multiple of 1 hour since 1970 UTC",
        ),
        (
            "RANGE 25, SLIDE 10, WA seq",
            "sliding: 25 of seq, every 10; a tuple is in 2 or 3 windows",
            "window_start <= seq < window_end; window_start is a multiple of 10",
        ),
        (
            "RANGE 0.5, SLIDE 0.25, WA load",
            "sliding: 0.5 of load, every 0.25; a tuple is in 2 windows",
            "window_start <= load < window_end; window_start is a multiple of 0.25",
        ),
        (
            "RANGE 1000 rows, SLIDE 1 rows, WA row_num",
            "sliding: 1,000 rows, every row; a tuple is in 1,000 windows",
            "window_start <= row_num < window_end; window_start is a multiple of 1 row",
        ),
        (
            "RANGE 4 rows, SLIDE 2 rows, WA row_num, PA seq",
            "sliding: 4 rows of each seq, every 2 rows; a tuple is in 2 windows",
            "window_start <= row_num < window_end; window_start is a multiple of 2 rows; each seq counts its own",
        ),
        (
            "RANGE ALL, SLIDE 1 day, WA ts",
            "landmark: everything so far, every day of ts",
            "ts < window_end, a multiple of 1 day since 1970 UTC; window_start is NULL",
        ),
        (
            "RANGE 5 minutes RATTR ts SLIDE 10 rows SATTR rank(ts)",
            "slides by tuple: the last 5 minutes of ts, for one tuple in 10",
            "window_start < ts <= window_end, the tuple's own; tuples are counted by ts",
        ),
    ],
)
def test_windows_and_their_bounds(clause: str, window: str, bounds: str) -> None:
    sql = f"SELECT count(*) AS n [{clause}] FROM Main"
    found = " ".join(lines(sql))
    assert f"window    {window} bounds    {bounds} category" in found


def test_spark_window_with_an_offset() -> None:
    sql = "SELECT count(*) FROM Main GROUP BY window(ts, '10 minutes', '5 minutes', '30 seconds')"
    assert "a multiple of 5 minutes since 1970 UTC, plus 30 seconds" in " ".join(lines(sql))


def test_category_of_rows_of_a_partition() -> None:
    sql = "SELECT count(*) [RANGE 4 rows, WA row_num, PA srcIP] FROM Main"
    assert labelled(sql, "category").startswith("forward-context free:")


@pytest.mark.parametrize(
    ("calls", "roll_up"),
    [
        ("sum(len)", "running sums"),
        ("max(len)", "prefix and suffix blocks"),
        ("sum(load)", "prefix and suffix blocks"),
        ("sum(len), max(len)", "prefix and suffix blocks"),
        ("median(load)", "running sums"),
    ],
)
def test_the_roll_up_subtracts_only_what_is_exact(calls: str, roll_up: str) -> None:
    sql = f"SELECT {calls} [RANGE 1 hour, SLIDE 1 minute, WA ts] FROM Main"
    assert labelled(sql, "roll-up", "paned").startswith(roll_up)


def test_a_landmark_has_running_totals() -> None:
    sql = "SELECT max(len) [RANGE ALL, SLIDE 1 minute, WA ts] FROM Main"
    assert labelled(sql, "roll-up").startswith("running totals")


@pytest.mark.parametrize(
    ("call", "strategy", "line"),
    [
        ("count(len)", "paned", "count(len)  bounded, differential  from count(len)"),
        ("min(len + 1)", "paned", "min(len + 1)  bounded, not differential  from min(len + 1)"),
        (
            "sum(load)",
            "paned",
            "sum(load)  bounded, differential but for rounding  from sum(load)",
        ),
        ("sum(load)", "eager", "sum(load)  bounded, differential  from sum(load)"),
        ("median(load)", "paned", "median(load)  holistic, differential  from a count for each value"),
        ("median(load)", "eager", "median(load)  holistic, differential  from the values"),
        (
            "count(DISTINCT srcIP)",
            "paned",
            "count(DISTINCT srcIP)  holistic, differential  from a count for each value",
        ),
        (
            "quantile(len, 0.9)",
            "paned",
            "quantile(len, 0.9)  holistic, differential  from a count for each value",
        ),
        (
            "count(*) FILTER (WHERE len > 9)",
            "paned",
            "count(*) FILTER (WHERE len > 9)  bounded, differential  from count(*) FILTER (WHERE len > 9)",
        ),
    ],
)
def test_what_is_kept_for_a_call(call: str, strategy: Strategy, line: str) -> None:
    sql = f"SELECT {call} AS a [RANGE 1 hour, SLIDE 1 minute, WA ts] FROM Main"
    assert labelled(sql, "calls", strategy) == line


def test_long_partials_stand_on_a_line_of_their_own() -> None:
    found = lines("SELECT last(srcIP) AS a [RANGE 1 hour, SLIDE 1 minute, WA ts] FROM Main")
    assert "calls     last(srcIP)  bounded, not differential" in found
    assert "from max(CASE WHEN ts IS NOT NULL THEN struct(ts AS o, srcIP AS v) END)" in found


def test_a_forced_strategy_says_so_and_eager_has_no_panes() -> None:
    sql = "SELECT count(*) [RANGE 1 hour, SLIDE 1 minute, WA ts] FROM Main"
    assert labelled(sql, "strategy", "eager") == "eager: asked for"
    assert not any(line.startswith(("panes", "roll-up")) for line in lines(sql, "eager"))


def test_a_sliding_join() -> None:
    found = lines("""
        SELECT Main1.srcIP, Main2.len FROM Main1 [RANGE 3 minutes, WA ts], Main2 [RANGE 2 minutes, WA ts]
        WHERE Main1.srcIP = Main2.destIP
    """)
    assert "window    Main2.ts is at most 2 minutes before Main1.ts, and less than 3 minutes after it" in found
    assert "bounds    Main1.ts - 2 minutes <= Main2.ts < Main1.ts + 3 minutes" in found
    assert "on        Main1.srcIP = Main2.destIP" in found
    assert [line for line in found if line.startswith("columns")] == [
        "columns   ts timestamp, srcIP string (2 of 6)",
        "columns   ts timestamp, destIP string, len int (3 of 6)",
    ]


def test_a_tumbling_join_without_a_predicate() -> None:
    found = lines("SELECT a.len AS x FROM Main1 AS a, Main2 AS b [RANGE TUMBLING 5 minutes, WA ts]")
    assert "window    same tumbling window of 5 minutes" in found
    assert "on        nothing else: all pairs in the window" in found
    assert {"As a", "As b"} <= set(found)


def test_columns_needed_go_through_unions_and_nested_queries() -> None:
    found = lines("""
        SELECT count(*) [RANGE 1 hour] FROM
            (SELECT max(len) - min(len) AS d, avg(load) AS unused [RANGE 1 minute, WA ts] FROM Main1 UNION Main2)
        WHERE d > 5
    """)
    # What nobody reads is not asked of the stream, although the inner query mentions it.
    assert found.count("columns   ts timestamp, len int (2 of 6)") == 2
    assert "Union of 2, duplicates kept" in found
    assert "bounds    window_start <= the input's window_start < window_end; window_start is a multiple of" in (
        " ".join(found)
    )


def test_a_numbered_stream() -> None:
    found = lines("SELECT count(*) [RANGE 10 rows, WA row_num] FROM Main")
    assert found[-3:] == ["columns   none (0 of 6)", "progress  on ts", "numbered  by arrival, as row_num"]


def test_keys_and_calls_are_spelt_out_above_the_aggregate() -> None:
    sql = "SELECT (len / 10) * 2 AS a, 1 + count(*) AS b [RANGE 1 hour, WA ts] FROM Main GROUP BY len / 10"
    assert lines(sql)[0] == "Project (len / 10) * 2 AS a, 1 + count(*) AS b, window_start, window_end"


def test_odd_names_keep_their_quotes() -> None:
    catalog = Catalog([Source("odd one", (Field("a b", "int"), Field("ts", "timestamp")))])
    found = explain(bind(parse_query("SELECT `a b` FROM `odd one`"), catalog))
    assert found.splitlines()[0] == "Project `a b`"
    assert "Source `odd one`" in found


def test_long_lines_are_broken() -> None:
    columns = ", ".join(f"len + {i} AS a_rather_long_name_{i}" for i in range(20))
    assert max(map(len, explain(plan(f"SELECT {columns} FROM Main")).splitlines())) <= 110


STREAM = "CREATE STREAM Main FROM kafka SCHEMA (ts TIMESTAMP, Len INT) PROGRESS ON TS WITHIN 10 seconds;"
QUERY = "CREATE QUERY q AS SELECT max(len) AS top [RANGE 1 minute] FROM main;"


def test_a_script_is_bound_as_a_whole() -> None:
    sink_first = f"{STREAM} CREATE SINK FOR Q INTO parquet 'out' OPTIONS (a = 1); {QUERY}"
    script = bind_script(parse_script(sink_first.replace("q AS", "q WITH (gap = 3) AS")))
    (stream,), (query,), (sink,) = script.streams, script.queries, script.sinks
    assert stream.source == Source("Main", (Field("ts", "timestamp"), Field("Len", "int")), "ts")
    assert (query.name, query.properties) == ("q", {"gap": 3})
    assert [f.name for f in query.plan.fields] == ["top", "window_start", "window_end"]
    assert (sink.of, sink.format, sink.path, sink.options, sink.output) == ("q", "parquet", "out", {"a": 1}, "answers")


def test_a_sink_for_late_tuples() -> None:
    script = bind_script(parse_script(f"{STREAM}{QUERY}CREATE SINK FOR Q LATE INTO parquet 'late';"))
    assert [(sink.of, sink.path, sink.output) for sink in script.sinks] == [("q", "late", "late")]
    assert script.sinks_of_query("q") == list(script.sinks)


def test_a_sink_for_bad_tuples_is_one_of_a_stream() -> None:
    script = bind_script(parse_script(f"{STREAM}{QUERY}CREATE SINK FOR main BAD INTO parquet 'bad';"))
    assert [sink.of for sink in script.sinks_of_stream("Main")] == ["Main"]
    assert script.sinks_of_query("q") == []
    with pytest.raises(ScriptError, match="a sink for q, which is not a stream"):
        bind_script(parse_script(f"{STREAM}{QUERY}CREATE SINK FOR q BAD INTO parquet 'bad';"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STREAM + STREAM.replace("Main", "MAIN"), "two streams are named MAIN"),
        (STREAM + QUERY + QUERY, "two queries are named q"),
        (STREAM + QUERY + "CREATE SINK FOR p INTO parquet 'x';", "a sink for p, which is not a query"),
        ("CREATE STREAM Main FROM parquet 'x';", "stream Main has no SCHEMA"),
        ("CREATE STREAM Main FROM parquet 'x' SCHEMA (a INT, A INT);", "two columns named A"),
        (STREAM.replace("ON TS", "ON tss"), "PROGRESS ON tss of stream Main: no such column .* did you mean ts?"),
        (STREAM.replace("ts TIMESTAMP", "ts STRING"), "ts is string, and only a time or a number can progress"),
        (STREAM.replace(" WITHIN 10 seconds", " PUNCTUATED BY p"), "PUNCTUATED BY p of stream Main"),
    ],
)
def test_a_script_that_does_not_fit_together(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        bind_script(parse_script(text))


def test_an_error_in_a_query_of_a_script_names_the_query() -> None:
    with pytest.raises(BindError, match=r"^query q: unknown column lenn: did you mean Len\?"):
        bind_script(parse_script(STREAM + QUERY.replace("max(len)", "max(lenn)")))


def test_a_lookup_and_what_is_no_duplicate() -> None:
    hosts = Source("hosts", (Field("ip", "string"), Field("name", "string")), table=True)
    main = Source("Main", PACKETS, "ts")
    sql = """
        SELECT DISTINCT ON (h.name) m.ts, m.len FROM Main AS m [RANGE 1 minute, WA ts]
        LEFT JOIN hosts AS h ON m.srcIP = h.ip WHERE m.len > 100
    """
    found = explain(bind(parse_query(sql), Catalog([main, hosts])))
    assert (
        found
        == """
Project ts, len
└─ Distinct
   │ keys      h.name
   │ range     a tuple less than 1 minute of m.ts after another is a duplicate
   └─ Project m.ts AS ts, m.len AS len
      └─ Lookup
         │ table     h.ip, h.name
         │ on        m.srcIP = h.ip
         │ others    kept, with NULL for the columns of the table
         └─ Filter m.len > 100
            └─ As m
               └─ Source Main
                    columns   ts timestamp, srcIP string, len int (3 of 6)
                    progress  on ts
""".strip()
    )
