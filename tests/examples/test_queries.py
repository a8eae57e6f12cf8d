"""The example queries: one answer on Spark, by the reference evaluator, and by other SQL in DuckDB."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from tests.examples.data import schema_of, streams_of
from tests.support import assert_same, collected, frame

import headgate as hg
from headgate import reference
from headgate.lang import parse_query
from headgate.plan import Aggregate, Catalog, Field, Node, Source, bind
from headgate.plan.logical.strategy import choose
from headgate.testing import drive
from headgate.windows import Sliding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support import Row, frame

    from headgate.plan import Strategy

QUERIES = Path(__file__).parents[2] / "examples" / "queries"
BY_OTHER_SQL = Path(__file__).parent / "duckdb"

# How many numbered queries each chapter of the thesis has; the panes paper has four.
CHAPTERS = {1: 2, 2: 1, 3: 1, 5: 8, 6: 8, 7: 2, 8: 5}
EXPECTED = [
    *(f"q{chapter}-{i}" for chapter, count in CHAPTERS.items() for i in range(1, count + 1)),
    *(f"panes-{i}" for i in range(1, 5)),
]

# Queries that DuckDB cannot express, each with the reason.
NOT_IN_DUCKDB: dict[str, str] = {}

ALL_STRATEGIES: tuple[Strategy, ...] = ("eager", "paned")

DUCKDB_TYPES = {"timestamp": "TIMESTAMP", "string": "VARCHAR", "int": "INTEGER", "double": "DOUBLE"}


def test_every_numbered_query_has_a_file() -> None:
    assert sorted(path.stem for path in QUERIES.glob("*.sql")) == sorted(EXPECTED)


def test_every_query_has_a_counterpart_in_duckdb_or_a_reason() -> None:
    written = [path.stem for path in BY_OTHER_SQL.glob("*.sql")]
    assert sorted([*written, *NOT_IN_DUCKDB]) == sorted(EXPECTED)
    assert all(NOT_IN_DUCKDB.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_query_says_what_it_asks_of_which_streams(name: str) -> None:
    comments = [line for line in text_of(name).splitlines() if line.startswith("--")]
    assert text_of(name).startswith("\n".join(comments))
    names, columns = comments[-1].removeprefix("-- ").split(" (", 1)
    streams = streams_of(name, text_of(name))
    assert sorted(names.split(", ")) == sorted(streams)
    said = dict(column.split() for column in columns.removesuffix(")").split(", "))
    assert all({c: t.lower() for c, t in said.items()} == schema_of(stream) for stream in streams)


@pytest.mark.parametrize("name", EXPECTED)
def test_spark_agrees_with_the_reference(spark: SparkSession, name: str) -> None:
    sql = text_of(name)
    frames: dict[str, Any] = {
        stream: frame(spark, rows, schema_of(stream)) for stream, rows in streams_of(name, sql).items()
    }
    expected = by_reference(name)
    for strategy in strategies(name):
        answer = hg.evaluate(sql, strategy=strategy, **frames)
        assert answer.columns == [*expected[0], "sampling_rate"]
        assert_same(collected(answer), expected)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_flow_over_files_agrees_with_the_reference(spark: SparkSession, tmp_path: Path, name: str) -> None:
    flow = hg.Flow(spark, "example", str(tmp_path / "checkpoint"))
    streams = streams_of(name, text_of(name))
    for stream, rows in streams.items():
        folder, third = tmp_path / stream, len(rows) // 3
        folder.mkdir()
        for i, part in enumerate((rows[:third], rows[third : 2 * third], rows[2 * third :])):
            staged = tmp_path / f"{stream}-{i}"
            frame(spark, part, schema_of(stream)).coalesce(1).write.parquet(str(staged))
            (file,) = staged.glob("part-*.parquet")
            os.utime(file.rename(folder / f"{i}.parquet"), (i, i))
        schema = ", ".join(f"{column} {type_}" for column, type_ in schema_of(stream).items())
        source = hg.sources.files(str(folder), schema=schema, max_files_per_batch=1)
        flow.stream(stream, source, progress=hg.progress("ts", within="2 minutes"))
    flow.query("example", text_of(name))
    flow.run_available()
    driver = drive(flow)
    driver.finish()
    assert_same(collected(driver.results("example")), by_reference(name))


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in NOT_IN_DUCKDB])
def test_duckdb_agrees_with_the_reference(name: str) -> None:
    expected = by_reference(name)
    found = by_duckdb(name)
    assert list(found[0]) == list(expected[0])
    assert_same(found, expected)


@pytest.mark.parametrize(("name", "own"), [("q6-4", "packets"), ("panes-4", "offers")])
def test_exactly_a_twentieth_is_a_heavy_hitter(name: str, own: str) -> None:
    assert min(row["total"] / row[own] for row in by_reference(name)) < 20
    assert max(row["total"] / row[own] for row in by_reference(name)) == 20


def text_of(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text()


@cache
def by_reference(name: str) -> list[Row]:
    """The reference answer, which has to hold something: two empty answers would agree about nothing."""
    streams = streams_of(name, text_of(name))
    answer = reference.evaluate(text_of(name), {s: schema_of(s) for s in streams}, (), **streams)
    assert answer
    return answer


def by_duckdb(name: str) -> list[Row]:
    """The answer of the other SQL, over tables that have the arrival number as one more column."""
    with duckdb.connect() as connection:
        for stream, rows in streams_of(name, text_of(name)).items():
            schema = {**{c: DUCKDB_TYPES[t] for c, t in schema_of(stream).items()}, "row_num": "BIGINT"}
            columns = [[row[c] for row in rows] for c in schema_of(stream)] + [list(range(len(rows)))]
            lists = ", ".join(f"unnest(?::{type_}[]) AS {c}" for c, type_ in schema.items())
            connection.execute(f"CREATE TABLE {stream} AS SELECT {lists}", columns)
        answer = connection.execute((BY_OTHER_SQL / f"{name}.sql").read_text())
        names = [column[0] for column in answer.description or []]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def strategies(name: str) -> list[Strategy | None]:
    """The planner's choice, and the other one where windows overlap: elsewhere both do the same."""
    streams = streams_of(name, text_of(name))
    catalog = Catalog(Source(s, tuple(Field(*column) for column in schema_of(s).items())) for s in streams)
    chosen = {choose(a).strategy for a in _aggregates(bind(parse_query(text_of(name)), catalog)) if _overlaps(a)}
    return [None, *(s for s in ALL_STRATEGIES if chosen and s not in chosen)]


def _overlaps(aggregate: Aggregate) -> bool:
    window = aggregate.window
    return window is not None and not (isinstance(window, Sliding) and window.tumbling)


def _aggregates(node: Node) -> list[Aggregate]:
    own = [node] if isinstance(node, Aggregate) else []
    return [*own, *(a for below in node.inputs for a in _aggregates(below))]
