"""How a query is cut into the stages that a flow runs."""

from __future__ import annotations

import pytest

from headgate.errors import Error
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.stream.stages import Stage, continuous
from headgate.windows import Sliding

COLUMNS = (Field("ts", "timestamp"), Field("src", "string"), Field("len", "int"))
STREAMS = Catalog([Source("A", COLUMNS, "ts"), Source("B", COLUMNS, "ts"), Source("Still", COLUMNS)])
INNER = "SELECT src, count(*) AS n [RANGE 1 minute] FROM A GROUP BY src"


def stages(sql: str) -> list[Stage]:
    return list(continuous("q", bind(parse_query(sql), STREAMS)).stages)


def outline(sql: str) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(stage.name, stage.depth, stage.streams) for stage in stages(sql)]


def test_each_aggregate_is_a_stage() -> None:
    assert outline(f"SELECT max(n) AS m [RANGE 1 hour] FROM ({INNER}) WHERE n > 1") == [
        ("q.1", 0, ("A",)),
        ("q", 1, ("q.1",)),
    ]


def test_a_stage_comes_after_all_that_it_reads() -> None:
    deep = f"SELECT src, sum(n) AS n [RANGE 5 minutes] FROM ({INNER}) GROUP BY src"
    assert outline(f"SELECT max(n) AS m [RANGE 1 hour] FROM (({deep}) UNION ({INNER}))") == [
        ("q.1", 0, ("A",)),
        ("q.2", 1, ("q.1",)),
        ("q.3", 0, ("A",)),
        ("q", 2, ("q.2", "q.3")),
    ]


def test_answers_may_be_melded() -> None:
    last = stages(f"SELECT src, n FROM (({INNER}) UNION ({INNER.replace('FROM A', 'FROM B')})) WHERE n > 5")[-1]
    assert last.aggregate is None
    assert last.streams == ("q.1", "q.2")


def test_a_key_that_progresses_is_a_window_of_one_value() -> None:
    *_, last = stages(f"SELECT window_start, max(n) AS m FROM ({INNER}) GROUP BY window_start")
    assert last.window == Sliding(1, 1, "window_start")


def test_a_join_is_a_stage_and_feeds_others() -> None:
    pairs = "SELECT A.ts, A.src FROM A [RANGE 1 minute], B [RANGE 1 minute] WHERE A.src = B.src"
    (only,) = stages(pairs)
    assert only.join is not None
    assert only.streams == ("A", "B")
    assert outline(f"SELECT src, count(*) AS n [RANGE 1 minute, WA ts] FROM ({pairs}) GROUP BY src") == [
        ("q.1", 0, ("A", "B")),
        ("q", 1, ("q.1",)),
    ]


def test_over_bounded_streams_nothing_has_to_progress() -> None:
    inner = "SELECT src, count(*) AS n [RANGE 1 minute, WA ts] FROM Still GROUP BY src"
    nested = bind(parse_query(f"SELECT max(n) AS m [RANGE 1 hour, WA window_start] FROM ({inner})"), STREAMS)
    assert len(continuous("q", nested, bounded=["Still"]).stages) == 2


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT count(*) AS n [RANGE 1 minute, WA ts] FROM Still", "ts does not progress"),
        (
            "SELECT max(n) AS m [RANGE 1 hour, WA window_start]"
            " FROM (SELECT count(*) AS n [RANGE 1 minute, WA ts] FROM Still)",
            "ts does not progress",
        ),
        (f"SELECT max(n) AS m [RANGE 1 hour, WA window_end] FROM ({INNER})", "window over window_start"),
        ("SELECT count(*) AS n [RANGE 10 rows, WA row_num] FROM A UNION B", "rows of a union"),
        (
            "SELECT src, count(*) AS n [RANGE ALL, SLIDE 9 rows, PA src] FROM A GROUP BY src",
            "landmark window over the rows",
        ),
        (
            "SELECT count(*) AS n [RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR row_num] FROM Still",
            "ts does not progress",
        ),
        (
            "SELECT A.len FROM A [RANGE 1 minute], Still [RANGE 1 minute, WA ts] WHERE A.src = Still.src",
            r"Still.ts does not progress, so the join would keep its tuples for ever: give its stream a progress rule",
        ),
    ],
)
def test_what_a_flow_cannot_run_is_said(sql: str, words: str) -> None:
    with pytest.raises(Error, match=f"query q: .*({words})"):
        stages(sql)
