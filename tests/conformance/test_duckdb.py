"""The reference evaluator equals DuckDB, an engine that knows nothing of us, wherever DuckDB can express the window."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.conformance.cases import GROUPINGS, SCHEMA, case
from tests.support import Row, assert_same

from headgate import reference
from headgate.reference.evaluator import place

AGGREGATES = """count(*) AS n, count(v) AS nv, sum(v) AS sv, avg(d) AS ad, min(v) AS mi, max(d) AS ma, var_pop(d) AS vp,
    var_samp(v) AS vs, stddev_pop(d) AS dp, stddev_samp(v) AS ds, bool_and(b) AS ba, bool_or(b) AS bo, median(d) AS me,
    count(DISTINCT v) AS cd, sum(DISTINCT v) AS sd, sum(v) FILTER (WHERE b) AS fv,
    min_by(w, d) FILTER (WHERE w IS NOT NULL) AS mb"""

#: The ids and extents of each kind of window, written once more, as DuckDB would have them.
#: {x} is the place of a tuple, {r} the range, {s} the slide.
SLIDING = """
    WITH placed AS (SELECT *, {x} AS x FROM S WHERE {x} IS NOT NULL),
         ids AS (SELECT unnest(range(CAST((SELECT floor((min(x) - {r}) / {s}) FROM placed) AS BIGINT),
                                     CAST((SELECT floor(max(x) / {s}) + 1 FROM placed) AS BIGINT))) AS wid)
    SELECT {columns}, wid * {s} AS window_start, wid * {s} + {r} AS window_end
    FROM placed JOIN ids ON x >= wid * {s} AND x < wid * {s} + {r} GROUP BY wid {group}"""
LANDMARK = """
    WITH placed AS (SELECT *, {x} AS x FROM S WHERE {x} IS NOT NULL),
         ids AS (SELECT unnest(range(CAST((SELECT floor(min(x) / {s}) FROM placed) AS BIGINT),
                                     CAST((SELECT floor(max(x) / {s}) + 1 FROM placed) AS BIGINT))) AS wid)
    SELECT {columns}, NULL AS window_start, (wid + 1) * {s} AS window_end
    FROM placed JOIN ids ON x < (wid + 1) * {s} GROUP BY wid {group}"""
BY_TUPLE = """
    WITH placed AS (SELECT *, {x} AS x FROM S WHERE {x} IS NOT NULL),
         ranked AS (SELECT *, row_number() OVER (ORDER BY x, row_num) - 1 AS rank FROM placed),
         ids AS (SELECT DISTINCT x AS wid FROM ranked WHERE {order} % {s} = 0)
    SELECT {columns}, wid - {r} AS window_start, wid AS window_end
    FROM placed JOIN ids ON x > wid - {r} AND x <= wid GROUP BY wid {group}"""


def duckdb_rows(sql: str, rows: list[Row]) -> list[Row]:
    with duckdb.connect() as connection:
        types = ", ".join(f'"{name}" {type_.upper()}' for name, type_ in {"row_num": "bigint", **SCHEMA}.items())
        connection.execute(f"CREATE TABLE S ({types})")
        places = ", ".join("?" * (len(SCHEMA) + 1))
        connection.executemany(f"INSERT INTO S VALUES ({places})", [[i, *r.values()] for i, r in enumerate(rows)])
        found = connection.execute(sql)
        names = [column[0] for column in found.description or []]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def micros(value: Any) -> Any:
    return place(value)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("window", ["time", "number", "rows", "landmark", "every tuple", "by rank"])
@given(seed=st.integers(0, 2**32), size=st.integers(1, 200), slide=st.integers(1, 120))
@settings(max_examples=8, phases=[Phase.generate])
def test_the_reference_agrees_with_duckdb(window: str, grouping: str, seed: int, size: int, slide: int) -> None:
    rows = case("sliding", seed).rows
    keys = GROUPINGS[grouping]
    time = {"x": "epoch_us(ts)", "r": size * 1_000_000, "s": slide * 1_000_000}
    forms: dict[str, tuple[str, str, dict[str, Any]]] = {
        "time": (f"[RANGE {size} seconds, SLIDE {slide} seconds, WA ts]", SLIDING, time),
        "number": (f"[RANGE {size}, SLIDE {slide}, WA at]", SLIDING, {"x": '"at"', "r": size, "s": slide}),
        "rows": (f"[RANGE {size} rows, SLIDE {slide} rows]", SLIDING, {"x": "row_num", "r": size, "s": slide}),
        "landmark": (f"[RANGE ALL, SLIDE {slide} seconds, WA ts]", LANDMARK, time),
        "every tuple": (
            f"[RANGE {size} seconds, RATTR ts, SLIDE {slide} rows, SATTR row_num]",
            BY_TUPLE,
            {**time, "s": slide, "order": "row_num"},
        ),
        "by rank": (
            f"[RANGE {size} seconds, RATTR ts, SLIDE {slide} rows, SATTR rank(ts)]",
            BY_TUPLE,
            {**time, "s": slide, "order": "rank"},
        ),
    }
    clause, form, holes = forms[window]
    columns = ", ".join([*(f"{key} AS key{i}" for i, key in enumerate(keys)), AGGREGATES])
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    ours = reference.evaluate(f"SELECT {columns} {clause} FROM S{group}", {"S": SCHEMA}, S=rows)
    placed = [{**row, **{c: micros(row[c]) for c in ("window_start", "window_end")}} for row in ours]
    theirs = duckdb_rows(form.format(columns=columns, group=", ".join(["", *keys]), **holes), rows)
    assert_same(theirs, placed, tolerance=1e-7)


FIRST = """
    WITH placed AS (SELECT *, epoch_us(ts) AS x FROM S WHERE ts IS NOT NULL)
    SELECT a.k, a.ts, count(*) AS ties FROM placed a WHERE NOT EXISTS (
        SELECT 1 FROM placed b WHERE b.k IS NOT DISTINCT FROM a.k AND b.x < a.x AND b.x > a.x - {r}) GROUP BY ALL"""


@given(seed=st.integers(0, 2**32), size=st.integers(1, 200))
@settings(max_examples=20, phases=[Phase.generate])
def test_what_is_no_duplicate_agrees_with_duckdb(seed: int, size: int) -> None:
    rows = case("sliding", seed).rows
    sql = f"SELECT DISTINCT ON (k) k, ts FROM S [RANGE {size} seconds, WA ts]"
    ours = reference.evaluate(sql, {"S": SCHEMA}, S=rows)
    theirs = duckdb_rows(FIRST.format(r=size * 1_000_000), rows)
    assert_same([{"k": row["k"], "ts": row["ts"]} for row in theirs], ours)
