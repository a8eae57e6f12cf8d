"""User-defined aggregates in Spark: tuples and states cross to Python as Arrow arrays, never row by row."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from headgate.aggregates import AggregateFunction, Aggregator
from headgate.spark.pickled import pickled
from headgate.sql.text import text

if TYPE_CHECKING:
    from headgate.plan.logical.nodes import Call


def collected(call: Call) -> str:
    """The Spark aggregate that collects the arguments of the tuples that count: those without a NULL."""
    arguments = [text(a) for a in call.arguments]
    fields = ", ".join(f"{a} AS a{i}" for i, a in enumerate(arguments))
    conditions = [f"({a}) IS NOT NULL" for a in arguments] + ([text(call.where)] if call.where is not None else [])
    where = f" FILTER (WHERE {' AND '.join(f'({c})' for c in conditions)})" if conditions else ""
    return f"collect_list(struct({fields or '1 AS a0'})){where}"


def folded(function: AggregateFunction, tuples: str, arity: int) -> Column:
    """The answer over a column of collected tuples."""
    packed = pickled(function.aggregator)

    def answers(batch: list[list[dict[str, Any]]]) -> list[Any]:
        aggregator = cloudpickle.loads(packed)
        return [aggregator.final(_fold(aggregator, rows, arity)) for rows in batch]

    return _arrow(answers, function.returns)(F.col(tuples))


def state(function: AggregateFunction, tuples: str, arity: int) -> Column:
    """The pickled state over a column of collected tuples."""
    packed = pickled(function.aggregator)

    def states(batch: list[list[dict[str, Any]]]) -> list[bytes]:
        aggregator = cloudpickle.loads(packed)
        return [cloudpickle.dumps(_fold(aggregator, rows, arity)) for rows in batch]

    return _arrow(states, "binary")(F.col(tuples))


def merged_states(function: AggregateFunction, states: str) -> Column:
    """The answer over a column of lists of states."""
    packed = pickled(function.aggregator)

    def answers(batch: list[list[bytes]]) -> list[Any]:
        aggregator = cloudpickle.loads(packed)
        merged = (reduce(aggregator.merge, map(cloudpickle.loads, pickled), aggregator.init()) for pickled in batch)
        return [aggregator.final(whole) for whole in merged]

    return _arrow(answers, function.returns)(F.col(states))


def _fold(aggregator: Aggregator, rows: list[dict[str, Any]], arity: int) -> Any:
    value = aggregator.init()
    for row in rows:
        value = aggregator.incr(value, *(row[f"a{i}"] for i in range(arity)))
    return value


def _arrow(function: Callable[[list[Any]], list[Any]], returns: str) -> Callable[[Column], Column]:
    arrow_type = to_arrow_type(DataType.fromDDL(returns))

    def over_array(values: pa.Array) -> pa.Array:
        return pa.array(function(values.to_pylist()), type=arrow_type)

    # Spark tells the kind of a function by its annotations, which are text in this module.
    over_array.__annotations__ = {"values": pa.Array, "return": pa.Array}
    return arrow_udf(over_array, returns)
