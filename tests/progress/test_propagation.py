"""Punctuation through the operators of a plan."""

from __future__ import annotations

import math

import pytest

from headgate.lang import parse_query
from headgate.plan import Aggregate, Catalog, Field, Named, Node, Project, Source, Union, bind
from headgate.plan.logical.scope import column
from headgate.progress import Punctuation, punctuation, reached

MINUTE = 60_000_000
COLUMNS = (Field("ts", "timestamp"), Field("v", "bigint"), Field("src", "string"))
STREAMS = [Source(name, COLUMNS, progressing="ts") for name in ("A", "B", "C")]
CATALOG = Catalog([*STREAMS, Source("ByValue", COLUMNS, progressing="v"), Source("Still", COLUMNS)])


def plan(sql: str) -> Node:
    return bind(parse_query(sql), CATALOG)


def test_a_stream_has_its_own() -> None:
    assert punctuation(STREAMS[0], {"A": 7}) == 7
    assert punctuation(STREAMS[0], {"A": None}) is None
    assert punctuation(STREAMS[0], {"B": 7}) is None


def test_a_stream_without_a_progressing_attribute_only_ends() -> None:
    still = plan("SELECT * FROM Still")
    assert punctuation(still, {"Still": 7}) is None
    assert punctuation(still, {"Still": math.inf}) == math.inf


def test_filters_and_projections_pass_it_on() -> None:
    assert punctuation(plan("SELECT ts AS t, v + 1 AS w FROM A WHERE v > 3"), {"A": 7}) == 7


def test_a_projection_without_the_attribute_passes_on_nothing_but_the_end() -> None:
    for query in (plan("SELECT v FROM A"), plan("SELECT ts + INTERVAL 1 day AS ts FROM A")):
        assert punctuation(query, {"A": 7}) is None
        assert punctuation(query, {"A": math.inf}) == math.inf


@pytest.mark.parametrize(
    ("streams", "idle", "expected"),
    [
        ({"A": 20, "B": 19, "C": 22}, "", 19),
        ({"A": 20, "B": None, "C": 22}, "", None),
        ({"A": 20, "B": 19, "C": 22}, "B", 20),
        ({"A": 20, "B": None, "C": 22}, "B", 20),
        ({"A": 20, "B": 19, "C": 22}, "BA", 22),
        ({"A": 20, "B": 19, "C": 22}, "ABC", 19),
        ({"A": 20, "B": None, "C": 22}, "ABC", None),
        # A stream that is over holds nobody back, and leaves nobody out.
        ({"A": 20, "B": math.inf, "C": 22}, "", 20),
        ({"A": 20, "B": math.inf, "C": 22}, "A", 22),
        ({"A": 20, "B": math.inf, "C": 22}, "AC", 20),
        ({"A": math.inf, "B": math.inf, "C": math.inf}, "A", math.inf),
    ],
)
def test_a_union_has_the_least_of_those_awake(
    streams: dict[str, Punctuation], idle: str, expected: Punctuation
) -> None:
    union = plan("SELECT * FROM A UNION B UNION C")
    assert punctuation(union, streams, frozenset(idle)) == expected


def test_an_input_of_a_union_sleeps_only_where_all_of_its_streams_do() -> None:
    a, b, c = STREAMS
    union = Union((a, Union((b, c))))
    streams: dict[str, Punctuation] = {"A": 20, "B": 5, "C": 9}
    assert punctuation(union, streams) == 5
    assert punctuation(union, streams, frozenset({"B"})) == 9
    assert punctuation(union, streams, frozenset({"B", "C"})) == 20


def test_a_union_of_different_attributes_does_not_progress() -> None:
    a = STREAMS[0]
    renamed = Project(a, (Named("v", column("ts")), Named("ts", column("v")), Named("src", column("src"))))
    assert punctuation(Union((a, renamed)), {"A": 7}) is None
    assert punctuation(Union((a, renamed)), {"A": math.inf}) == math.inf


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (None, None),
        (math.inf, math.inf),
        # [-3, 0)  [-2, 1)  [-1, 2)  [0, 3)  [1, 4)   in minutes
        (3 * MINUTE - 1, 0),
        (3 * MINUTE, MINUTE),
        (4 * MINUTE - 1, MINUTE),
        (0, -2 * MINUTE),
        (-1, -3 * MINUTE),
    ],
)
def test_an_aggregate_is_where_its_first_open_window_begins(p: Punctuation, expected: Punctuation) -> None:
    query = plan("SELECT src, count(*) AS n [RANGE 3 minutes, SLIDE 1 minute] FROM A GROUP BY src")
    assert query.progress == ("window_start",)
    assert punctuation(query, {"A": p}) == expected


def test_nested_windows_close_one_behind_the_other() -> None:
    query = plan(
        "SELECT count(*) AS n [RANGE 10 minutes] FROM"
        " (SELECT max(v) AS top [RANGE 3 minutes, SLIDE 1 minute] FROM A WHERE v > 0) WHERE top > 5"
    )
    # [0, 10) of window starts is closed once the window that begins at 9, and so ends at 12, is.
    assert punctuation(query, {"A": 12 * MINUTE - 1}) == 0
    assert punctuation(query, {"A": 12 * MINUTE}) == 10 * MINUTE


def test_a_window_over_another_attribute_closes_at_the_end_only() -> None:
    query = plan("SELECT count(*) AS n [RANGE 10, WA v] FROM A")
    assert punctuation(query, {"A": 10**18}) is None
    assert punctuation(query, {"A": math.inf}) == math.inf
    assert punctuation(plan("SELECT count(*) AS n [RANGE 10, WA v] FROM ByValue"), {"ByValue": 25}) == 20


def test_groups_by_a_progressing_attribute_need_no_window() -> None:
    assert punctuation(Aggregate(STREAMS[0], None, (Named("t", column("ts")),), ()), {"A": 7}) == 7
    assert punctuation(Aggregate(STREAMS[0], None, (Named("s", column("src")),), ()), {"A": 7}) is None


def test_windows_that_grow_progress_by_their_ends() -> None:
    growing = plan("SELECT count(*) AS n [RANGE ALL, SLIDE 1 minute, WA ts] FROM A")
    assert punctuation(growing, {"A": 130_000_000}) == 180_000_000


@pytest.mark.parametrize(
    ("clause", "a", "b", "expected"),
    [
        # A pair to come has a new A, from a on, or a new B, from b on, and the other one within the window of it.
        ("A [RANGE 2 minutes], B [RANGE 1 minute]", 10, 20, {"A.ts": 10, "B.ts": 9}),
        ("A [RANGE 2 minutes], B [RANGE 1 minute]", 20, 10, {"A.ts": 8, "B.ts": 10}),
        ("A, B [RANGE TUMBLING 5 minutes, WA ts]", 12, 19, {"A.ts": 12, "B.ts": 10}),
    ],
)
def test_a_join_is_as_far_as_new_pairs_may_be(clause: str, a: int, b: int, expected: dict[str, int]) -> None:
    query = plan(f"SELECT A.ts AS at, B.ts AS bt FROM {clause} WHERE A.src = B.src")
    come = reached(query, {"A": a * MINUTE, "B": b * MINUTE})
    assert come.at == {"at": expected["A.ts"] * MINUTE, "bt": expected["B.ts"] * MINUTE}
    assert reached(query, {"A": math.inf, "B": math.inf}).over
    assert not reached(query, {"A": math.inf, "B": 7}).over


def test_windows_by_tuple_begin_a_range_before_the_next_tuple() -> None:
    by_tuple = plan("SELECT count(*) AS n [RANGE 1 minute, RATTR ts, SLIDE 1 row, SATTR row_num] FROM A")
    assert punctuation(by_tuple, {"A": 10 * MINUTE}) == 9 * MINUTE


def test_partitions_go_on_by_themselves() -> None:
    by_partition = plan("SELECT src, count(*) AS n [RANGE 10 rows, PA src] FROM A GROUP BY src")
    assert punctuation(by_partition, {"A": 10 * MINUTE}) is None
