"""Exact answers over bounded input, once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from headgate import given
from headgate.bounded.answer import answer
from headgate.errors import BindError, Error
from headgate.lang import Query, parse_query
from headgate.plan import Catalog, Field, Source, Strategy, bind
from headgate.spark.failures import first_line, plain_errors


@dataclass(frozen=True)
class Table:
    """Rows that tuples are looked up in."""

    rows: Any


@given.checked("hg.table", BindError)
def table(rows: Any) -> Table:
    """For `evaluate`: a table that a stream can be joined with, without a window."""
    return Table(rows)


@given.checked("hg.evaluate", BindError)
def evaluate(
    sql: str | Query, spark: SparkSession | None = None, strategy: Strategy | None = None, **streams: Any
) -> DataFrame:
    """The exact answer of a query over bounded streams, given by name.

    A stream is a DataFrame, or anything that `createDataFrame` takes (then `spark` says in which session). Every window
    that holds a tuple is answered. A table to join a stream with is given as `hg.table(...)`. `strategy` ("eager" or
    "paned") overrides the planner.

    >>> import headgate as hg
    >>> spark = hg.session()
    >>> bids = spark.createDataFrame([(5, 1), (7, 2), (3, 3), (9, 4)], "price INT, ts INT")
    >>> answer = hg.evaluate("SELECT max(price) AS top [RANGE 2, SLIDE 1, WA ts] FROM bids", bids=bids)
    >>> answer.orderBy("window_start").show()
    +---+------------+----------+-------------+
    |top|window_start|window_end|sampling_rate|
    +---+------------+----------+-------------+
    |  5|           0|         2|          1.0|
    |  7|           1|         3|          1.0|
    |  7|           2|         4|          1.0|
    |  9|           3|         5|          1.0|
    |  9|           4|         6|          1.0|
    +---+------------+----------+-------------+
    <BLANKLINE>
    """
    strategy, ast = as_strategy("hg.evaluate", strategy, BindError), as_tree("hg.evaluate", sql, BindError)
    if spark is not None:
        check_session("hg.evaluate", spark)
    tables = {name for name, stream in streams.items() if isinstance(stream, Table)}
    frames = {n: _frame(n, s.rows if isinstance(s, Table) else s, spark) for n, s in streams.items()}
    plan = bind(ast, catalog_of(frames, tables))
    return answer(plan, frames, strategy)


def catalog_of(frames: Mapping[str, DataFrame], tables: Collection[str] = ()) -> Catalog:
    """The streams that DataFrames stand for. Nothing is promised of their progress: a window has to name its WA."""
    sources = [
        Source(name, tuple(Field(column, type_) for column, type_ in df.dtypes), table=name in tables)
        for name, df in frames.items()
    ]
    return Catalog(sources, lambda name: any(df.sparkSession.catalog.functionExists(name) for df in frames.values()))


def _frame(name: str, stream: Any, spark: SparkSession | None) -> DataFrame:
    if isinstance(stream, DataFrame):
        if stream.isStreaming:
            raise BindError(
                f"stream {name} is unbounded: evaluate takes bounded input; run unbounded streams in a Flow"
            )
        return stream
    spark = spark or SparkSession.getActiveSession()
    if spark is None:
        raise BindError(f"stream {name} is not a DataFrame: give the session to make one in, spark=hg.session()")
    try:
        with plain_errors():
            return spark.createDataFrame(stream)
    except Exception as error:
        raise BindError(
            f"stream {name} is {given.shown(stream)}: give a DataFrame, or rows that spark.createDataFrame can make one"
            f" of ({first_line(str(error))})"
        ) from None


def check_session(what: str, spark: object) -> None:
    """Raises an error for anything but a session of this process that runs."""
    if not isinstance(spark, SparkSession):
        kind = "Spark Connect session" if type(spark).__module__.startswith("pyspark.sql.connect") else None
        found = f"a {kind}" if kind else given.shown(spark)
        raise Error(f"{what} needs a SparkSession of this process, such as hg.session() gives, and not {found}")
    if spark.sparkContext._jsc is None:
        raise Error(f"{what} was given a session that has been stopped: hg.session() starts another one")


def as_tree(what: str, sql: object, error: type[Error]) -> exp.Query:
    """The tree of a query, which is given as text, as one that was built, or as a tree."""
    if isinstance(sql, exp.Query):
        return sql
    if isinstance(sql, Query):
        return sql.ast
    return parse_query(given.text(what, sql, "the text of a query, or one that hg.select(...) makes", error))


def as_strategy(what: str, strategy: object, error: type[Error]) -> Strategy | None:
    """The strategy that a query is given, if it is."""
    if strategy is not None:
        given.one_of(f"{what}: strategy", strategy, get_args(Strategy), error)
    return cast("Strategy | None", strategy)
