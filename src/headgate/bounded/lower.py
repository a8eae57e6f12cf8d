"""Lowering: from a logical plan to a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame

from headgate.bounded.aggregate import aggregate
from headgate.bounded.distinct import distinct
from headgate.bounded.join import join
from headgate.bounded.lookup import lookup
from headgate.bounded.numbering import with_row_numbers
from headgate.plan.logical.nodes import ROW_NUM, Aggregate, Distinct, Filter, Join, Lookup, Node, Project, Source, Union
from headgate.plan.logical.strategy import Strategy, choose
from headgate.plan.logical.unfiltered import unfiltered
from headgate.sql.text import quoted, text


def lower(node: Node, streams: Mapping[str, DataFrame], strategy: Strategy | None = None) -> DataFrame:
    """The answer of a plan over bounded streams by name; `strategy` overrides the planner where it applies."""
    match node:
        case Source(name=name, columns=columns, numbered=numbered):
            df = streams[name].selectExpr(*(quoted(c.name) for c in columns))
            return with_row_numbers(df, ROW_NUM) if numbered else df
        case Filter(input=below, predicate=predicate):
            return lower(below, streams, strategy).where(text(predicate))
        case Project(input=below, columns=columns):
            df = lower(below, streams, strategy)
            return df.selectExpr(*(f"{text(c.expression)} AS {quoted(c.name)}" for c in columns))
        case Union(inputs_=inputs, numbered=numbered):
            df = reduce(DataFrame.union, (lower(i, streams, strategy) for i in inputs))
            return with_row_numbers(df, ROW_NUM) if numbered else df
        case Join(left=left, right=right):
            return join(node, lower(left, streams, strategy), lower(right, streams, strategy))
        case Lookup(input=below, table=table):
            return lookup(node, lower(below, streams, strategy), lower(table, streams))
        case Distinct(input=below):
            return distinct(node, lower(below, streams, strategy))
        case Aggregate(input=below):
            df = lower(below, streams, strategy)
            stream = unfiltered(below)
            whole = df if stream == below else lower(stream, streams, strategy)
            return aggregate(node, choose(node, strategy), df, whole)
    raise TypeError(f"no operator for {type(node).__name__}")
