"""Queries that cannot be bound: one clear error each, that names the thing and says what to do."""

from __future__ import annotations

import pytest

import headgate as hg
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind

COLUMNS = (
    Field("ts", "timestamp"),
    Field("at", "bigint"),
    Field("srcIP", "string"),
    Field("len", "int"),
    Field("ok", "boolean"),
)
WALLS = (Field("ts", "timestamp_ntz"), *COLUMNS[1:])
CATALOG = Catalog(
    [
        *(Source(name, COLUMNS) for name in ("Main", "Other")),
        Source("Live", COLUMNS, progressing="ts"),
        Source("Walls", WALLS, progressing="ts"),
    ]
)
MINUTE = "[RANGE 1 minute, SLIDE 1 minute, WA ts]"

BAD = [
    # names
    (f"SELECT count(*) {MINUTE} FROM Mian", hg.BindError, "unknown stream Mian: did you mean Main?"),
    (f"SELECT sum(lenn) {MINUTE} FROM Main", hg.BindError, "unknown column lenn: did you mean len?"),
    (f"SELECT count(*) {MINUTE} FROM Main WHERE Othr.len > 1", hg.BindError, "unknown stream Othr"),
    (f"SELECT srcIP, count(*) {MINUTE} FROM Main", hg.BindError, "srcIP is neither in GROUP BY nor inside"),
    (f"SELECT len AS a, srcIP AS a, count(*) {MINUTE} FROM Main GROUP BY len, srcIP", hg.BindError, "named a"),
    (f"SELECT count(*) {MINUTE} FROM Main GROUP BY 7", hg.BindError, "GROUP BY 7: the SELECT has 1"),
    # windows
    ("SELECT count(*) [RANGE 1 minute, SLIDE 1 minute] FROM Main", hg.WindowError, "without a progressing attribute"),
    ("SELECT count(*) FROM Main", hg.WindowError, "an aggregate without a window never ends"),
    ("SELECT count(*) FROM Main GROUP BY srcIP", hg.WindowError, "an aggregate without a window never ends"),
    ("SELECT srcIP FROM Main [RANGE 1 minute, WA ts]", hg.BindError, "srcIP is neither in GROUP BY"),
    ("SELECT count(*) [RANGE 0 minutes, SLIDE 1 minute, WA ts] FROM Main", hg.WindowError, "RANGE"),
    ("SELECT count(*) [RANGE 1 minute, SLIDE 0 minutes, WA ts] FROM Main", hg.WindowError, "SLIDE"),
    ("SELECT count(*) [RANGE -5 minutes, SLIDE 1 minute, WA ts] FROM Main", hg.WindowError, "RANGE -5 minutes"),
    ("SELECT count(*) [RANGE 5 minutes, SLIDE -1 minute, WA ts] FROM Main", hg.WindowError, "greater than zero"),
    ("SELECT count(*) [RANGE 5, SLIDE 1, WA ts] FROM Main", hg.WindowError, "needs a unit"),
    ("SELECT count(*) [RANGE 5 minutes, WA at] FROM Main", hg.WindowError, "is a time, but at is bigint"),
    ("SELECT count(*) [RANGE 5, WA srcIP] FROM Main", hg.WindowError, "srcIP is string"),
    ("SELECT count(*) [RANGE 5 rows, WA ts] FROM Main", hg.WindowError, "counts rows"),
    ("SELECT count(*) [RANGE 2.5 rows] FROM Main", hg.WindowError, "whole"),
    ("SELECT count(*) [RANGE 5 minutes, SLIDE 1 row, WA ts] FROM Main", hg.WindowError, "RATTR ts SATTR row_num"),
    ("SELECT count(*) [RANGE ALL, WA ts] FROM Main", hg.WindowError, "RANGE ALL needs a SLIDE"),
    ("SELECT count(*) [RANGE 0.5 microseconds, WA ts] FROM Main", hg.WindowError, "finer than a microsecond"),
    (
        "SELECT count(*) [RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR rank(len)] FROM Main",
        hg.WindowError,
        "rank(len) does not go with RATTR ts",
    ),
    (
        "SELECT count(*) [RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR len] FROM Main",
        hg.WindowError,
        "SATTR len does not go with RATTR ts",
    ),
    ("SELECT count(*) [RANGE 5 minutes, RATTR ts, SLIDE 1 row] FROM Main", hg.WindowError, "go together"),
    ("SELECT count(*) [RANGE 5 minutes, SLIDE 1 row, SATTR row_num] FROM Main", hg.WindowError, "go together"),
    (
        f"SELECT count(*) {MINUTE} FROM Main GROUP BY window(ts, '1 minute')",
        hg.WindowError,
        "two windows for one aggregate",
    ),
    (
        "SELECT count(*) [RANGE 5 minutes, WA ts], sum(len) [RANGE 6 minutes, WA ts] FROM Main",
        hg.BindError,
        "two different windows",
    ),
    ("SELECT count(*) [RANGE TUMBLING 1 minute, SLIDE 2 minutes, WA ts] FROM Main", hg.WindowError, "TUMBLING"),
    # joins
    ("SELECT * FROM Main, Other WHERE Main.srcIP = Other.srcIP", hg.WindowError, "a join without a window: give Main"),
    ("SELECT * FROM Main [RANGE 1 minute, WA ts], Other", hg.WindowError, "a join without a window: give Other"),
    ("SELECT * FROM Main [RANGE 1 minute], Other [RANGE 1 minute]", hg.WindowError, "progressing attribute"),
    ("SELECT * FROM Main [RANGE 0 minutes, WA ts], Other [RANGE 1 minute, WA ts]", hg.WindowError, "greater than zero"),
    ("SELECT * FROM Main [RANGE 1 minute, WA ts], Other [RANGE 5, WA at]", hg.WindowError, "is bigint, a number"),
    (
        "SELECT * FROM Live [RANGE 1 minute, WA ts], Walls [RANGE 1 minute, WA ts]",
        hg.WindowError,
        "Live.ts is timestamp, a point in time, and Walls.ts is timestamp_ntz, a wall-clock time",
    ),
    (
        f"SELECT count(*) {MINUTE} FROM Live UNION Walls",
        hg.WindowError,
        "Live.ts is timestamp, a point in time, and Walls.ts is timestamp_ntz, a wall-clock time",
    ),
    (
        f"SELECT count(*) {MINUTE} FROM (SELECT ts FROM Walls UNION ALL SELECT ts FROM Live) AS u",
        hg.WindowError,
        "side 1.ts is timestamp_ntz, a wall-clock time, and side 2.ts is timestamp, a point in time",
    ),
    ("SELECT * FROM Main [RANGE 1 minute, WA ts], Main [RANGE 1 minute, WA ts]", hg.BindError, "two inputs are named"),
    ("SELECT srcIP FROM Main, Other [RANGE TUMBLING 1 minute, WA ts]", hg.BindError, "srcIP is ambiguous"),
    (
        "SELECT * FROM Main [RANGE 1 minute, WA ts] LEFT JOIN Other [RANGE 1 minute, WA ts] ON TRUE",
        hg.BindError,
        "a LEFT JOIN is with a table",
    ),
    ("SELECT * FROM Main RIGHT JOIN Other ON TRUE", hg.BindError, "only inner joins"),
    ("SELECT DISTINCT ON (srcIP) * FROM Main", hg.WindowError, "DISTINCT ON needs a range after its stream"),
    ("SELECT DISTINCT ON (srcIP) * FROM Main [RANGE 0 seconds, WA ts]", hg.WindowError, "greater than zero"),
    ("SELECT DISTINCT ON (srcIP) * FROM Main [RANGE 5 rows]", hg.WindowError, "over time or a number"),
    ("SELECT DISTINCT ON (srcIP) * FROM Main [RANGE 5 seconds, SLIDE 1 second, WA ts]", hg.WindowError, "takes RANGE"),
    ("SELECT DISTINCT ON (nobody) * FROM Main [RANGE 5 seconds, WA ts]", hg.BindError, "unknown column nobody"),
    ("SELECT DISTINCT ON (srcIP) count(*) AS n FROM Main [RANGE 5 seconds, WA ts]", hg.BindError, "nest one SELECT"),
    ("SELECT * FROM Main [RANGE 5 rows], Other [RANGE 5 rows]", hg.WindowError, "arrival numbers"),
    # aggregates
    (f"SELECT sum(srcIP) {MINUTE} FROM Main", hg.AggregateTypeError, "sum needs a number, but srcIP is string"),
    (f"SELECT avg(ts) {MINUTE} FROM Main", hg.AggregateTypeError, "avg needs a number, but ts is timestamp"),
    (f"SELECT bool_and(len) {MINUTE} FROM Main", hg.AggregateTypeError, "bool_and needs a boolean"),
    (f"SELECT percentile(len, 1.5) {MINUTE} FROM Main", hg.BindError, "not a fraction between 0 and 1"),
    (f"SELECT sum(max(len)) {MINUTE} FROM Main", hg.BindError, "stands inside another"),
    (f"SELECT count(*) {MINUTE} FROM Main WHERE max(len) > 1", hg.BindError, "use HAVING"),
    (f"SELECT count(*) {MINUTE} FROM Main GROUP BY max(len)", hg.BindError, "GROUP BY cannot hold"),
    (f"SELECT corr(len, at) {MINUTE} FROM Main", hg.BindError, "corr is not an aggregate that Headgate knows"),
    # not in the language
    (f"SELECT count(*) {MINUTE} FROM Main ORDER BY 1", hg.BindError, "ORDER BY"),
    (f"SELECT count(*) {MINUTE} FROM Main LIMIT 1", hg.BindError, "LIMIT"),
    ("SELECT DISTINCT srcIP FROM Main", hg.BindError, "DISTINCT"),
    ("SELECT sum(len) OVER (PARTITION BY srcIP) FROM Main", hg.BindError, "OVER"),
    ("SELECT 1", hg.BindError, "add FROM"),
    # nesting
    (
        f"SELECT max(n) [RANGE ALL, SLIDE 5 rows] FROM (SELECT count(*) AS n {MINUTE} FROM Main)",
        hg.BindError,
        "row_num is the arrival number",
    ),
]


@pytest.mark.parametrize(("sql", "error", "fragment"), BAD)
def test_a_bad_query_gets_one_clear_error(sql: str, error: type[hg.Error], fragment: str) -> None:
    with pytest.raises(error) as raised:
        bind(parse_query(sql), CATALOG)
    message = str(raised.value)
    assert fragment in message
    assert "\n" not in message


def test_the_progressing_attribute_is_the_default_of_wa() -> None:
    plan = bind(parse_query("SELECT count(*) AS n [RANGE 1 minute] FROM Live"), CATALOG)
    assert plan.progress == ("window_start",)
