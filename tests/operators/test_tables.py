"""Which queries of a flow share a table of partials, and which of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.stream.stages import continuous
from headgate.sharing.layout import layout as layout_of
from headgate.sharing.seating import shared_tables
from headgate.sharing.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "ts TIMESTAMP, src STRING, port INT, len INT"
MAIN = Source("Main", tuple(Field(*column.split()) for column in SCHEMA.lower().split(", ")), "ts")


def tables(spark: SparkSession, *queries: str) -> list[Table]:
    bound = [bind(parse_query(sql), Catalog([MAIN])) for sql in queries]
    frames = {"Main": spark.createDataFrame([], SCHEMA)}
    return shared_tables([continuous(f"q{i}", plan).stages[-1] for i, plan in enumerate(bound)], frames)


def counts(window: str, where: str = "true", keys: str = "src") -> str:
    return f"SELECT {keys}, count(*) AS n [{window}] FROM Main WHERE {where} GROUP BY {keys}"


@pytest.mark.parametrize(
    ("one", "other", "number"),
    [
        ("RANGE 10 minutes SLIDE 1 minute", "RANGE 5 minutes SLIDE 1 minute", 1),
        ("RANGE 10 minutes SLIDE 1 minute", "RANGE 5 minutes SLIDE 5 minutes", 1),
        ("RANGE 10 minutes SLIDE 1 minute", "RANGE 30 seconds SLIDE 30 seconds", 1),
        ("RANGE 10 minutes SLIDE 5 minutes", "RANGE 7 minutes SLIDE 7 minutes", 2),
        ("RANGE 1 minute SLIDE 2 minutes", "RANGE 1 minute SLIDE 1 minute", 2),
        ("RANGE 1 minute SLIDE 2 minutes", "RANGE 1 minute SLIDE 2 minutes", 1),
    ],
)
def test_queries_share_panes_that_fit(spark: SparkSession, one: str, other: str, number: int) -> None:
    assert len(tables(spark, counts(one), counts(other))) == number


def test_other_keys_have_a_table_of_their_own(spark: SparkSession) -> None:
    window = "RANGE 2 minutes SLIDE 1 minute"
    assert len(tables(spark, counts(window), counts(window, keys="port"))) == 2


def test_fewer_keys_are_answered_from_the_table_of_more(spark: SparkSession) -> None:
    window = "RANGE 2 minutes SLIDE 1 minute"
    (table,) = tables(spark, counts(window), counts(window, keys="port"), counts(window, keys="src, port"))
    assert [m.keys for m in table.members] == [("k0_string", "k0_int"), ("k0_string",), ("k0_int",)]


def test_the_same_partial_is_kept_once(spark: SparkSession) -> None:
    (table,) = tables(
        spark,
        "SELECT src, sum(len) AS s, avg(len) AS a [RANGE 2 minutes SLIDE 1 minute] FROM Main GROUP BY src",
        "SELECT src, sum(len) AS total [RANGE 9 minutes SLIDE 1 minute] FROM Main GROUP BY src",
    )
    assert [c.template for c in table.columns] == ["sum({x}){f}", "count({x}){f}", "count(*){f}"]


def test_filters_become_conditions_and_each_has_a_count(spark: SparkSession) -> None:
    window = "RANGE 2 minutes SLIDE 1 minute"
    (table,) = tables(spark, counts(window, "port = 80"), counts(window, "port = 443"))
    assert [c.sql(0, [g]) for c, g in zip(table.columns, ("a", "b"), strict=True)] == [
        "count(*) FILTER (WHERE (a))",
        "count(*) FILTER (WHERE (b))",
    ]
    assert [m.rows for m in table.members] == [c.name for c in table.columns]


def test_one_filter_for_all_is_no_condition(spark: SparkSession) -> None:
    window = "RANGE 2 minutes SLIDE 1 minute"
    (table,) = tables(spark, counts(window, "port = 80"), counts("RANGE 4 minutes SLIDE 1 minute", "port = 80"))
    assert len(table.columns) == 1
    assert [m.rows for m in table.members] == ["sum0_bigint", "sum0_bigint"]


def test_what_is_not_bounded_has_a_table_by_value(spark: SparkSession) -> None:
    main, values = tables(spark, "SELECT src, median(len) AS m [RANGE 2 minutes SLIDE 1 minute] FROM Main GROUP BY src")
    assert (len(main.keys), len(values.keys)) == (1, 2)
    assert [c.function.name for c in values.values] == ["median"]


def test_what_is_on_disk_stays_as_it_is(spark: SparkSession) -> None:
    window = "RANGE 4 minutes SLIDE 1 minute"
    by_both, by_src = counts(window, keys="src, port"), counts(window)
    sums = "SELECT src, sum(len) AS s [RANGE 4 minutes SLIDE 2 minutes] FROM Main WHERE port = 80 GROUP BY src"
    fine = "SELECT src, count(*) AS n [RANGE 90 seconds SLIDE 30 seconds] FROM Main GROUP BY src"
    plans = [
        continuous(f"q{i}", bind(parse_query(sql), Catalog([MAIN]))) for i, sql in enumerate([by_both, by_src, sums])
    ]
    frames = {"Main": spark.createDataFrame([], SCHEMA)}
    (before,) = shared_tables([plan.stages[-1] for plan in plans], frames)
    layout = {**layout_of(before), "stages": ["q1"]}
    added = [continuous(f"q{i}", bind(parse_query(sql), Catalog([MAIN]))) for i, sql in enumerate([fine, sums], 3)]
    stages = [plan.stages[-1] for plan in (*added, plans[1])]
    kept, apart = shared_tables(stages, frames, 1, [layout])
    # The table keeps its keys and panes for the query that stays; finer panes do not fit any more.
    assert (kept.number, kept.keys, kept.cut) == (0, before.keys, before.cut)
    assert [m.stage.name for m in kept.members] == ["q1", "q4"]
    assert [m.stage.name for m in apart.members] == ["q3"]
    assert apart.number == 1
    known = {c.meaning: c.name for c in before.columns}
    assert all(known.get(c.meaning, c.name) == c.name for c in kept.columns)
