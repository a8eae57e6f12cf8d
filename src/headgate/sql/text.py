"""Small pieces of Spark SQL text that the operators put together: positions on the window axis and their arithmetic."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from headgate.plan.logical.spelling import Spelt
from headgate.windows import Number
from headgate.windows.arithmetic import DIGITS
from headgate.windows.arithmetic import floor_div as floor_div
from headgate.windows.arithmetic import literal as literal

_NTZ_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
#: The name of the rows in a text for `queried`.
THESE = "_hg_these"
_NAMING = threading.Lock()


def quoted(name: str) -> str:
    """A column name as Spark SQL reads it, whatever characters it holds.

    >>> quoted("Main1.ts")
    '`Main1.ts`'
    """
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Name:
    """The name of a column, which quotes itself wherever it stands in a text, whatever characters it holds.

    What is made of the name of a query, a stream, a column or a key is kept as one of these. Functions of Spark that
    read an expression take it as text, `str(name)`; those that give a column its name take it as it is, `name.plain`.

    >>> f"SELECT max({Name('a.b')}) AS {Name('select')}"
    'SELECT max(`a.b`) AS `select`'
    """

    plain: str

    def __str__(self) -> str:
        return quoted(self.plain)


def own(word: str) -> Name:
    """A name for what goes along with columns of users, none of which is called so: it has to be quoted, always.

    >>> print(own("place"))
    `_hg:place`
    """
    return Name(f"_hg:{word}")


def listed(columns: Mapping[Name, str]) -> str:
    """Columns, given by what they are in SQL, as the list of a SELECT.

    >>> listed({Name("a b"): "1", Name("n"): "count(*)"})
    '1 AS `a b`, count(*) AS `n`'
    """
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def text(expression: exp.Expr) -> str:
    """A bound expression as Spark SQL, in the user's own words."""
    return Spelt(expression)


def moving(number: Number | str, place: str) -> str:
    """A number, or its SQL, that changes from batch to batch, in a form that leaves Spark's code the same.

    A plain number would be part of the code, which would have to be compiled, and got warm with, at every batch. An
    array is handed to the code, and which of its items is meant depends on the place, so that Spark cannot tell.

    >>> moving(7, "x")
    'get(array(7L, 7L), CAST(x > 0L AS INT))'
    """
    same = number if isinstance(number, str) else literal(number)
    return f"get(array({same}, {same}), CAST({place} > 0L AS INT))"


def position(df: DataFrame, attribute: str) -> str:
    """The place of a tuple on the axis of its windowing attribute: microseconds for time, else the number itself."""
    name = quoted(attribute)
    match df.schema[attribute].dataType:
        case T.TimestampType():
            return f"unix_micros({name})"
        case T.TimestampNTZType():
            # Wall-clock times have no zone. By timestampdiff, they would take a detour by times of the session's zone,
            # in which an hour of the year is missing.
            return f"(({name} - {_NTZ_EPOCH}) div INTERVAL '0.000001' SECOND)"
        case T.DateType():
            # A day stands for the time at which it begins in the session's zone, as in Spark's window().
            return f"unix_micros(CAST({name} AS TIMESTAMP_LTZ))"
        case T.IntegralType():
            return f"CAST({name} AS BIGINT)"
        case _:
            return f"try_cast({name} AS DECIMAL(38, {DIGITS}))"


def bound(df: DataFrame, attribute: str, place: str) -> str:
    """The inverse of `position`, for the ends of a window."""
    match df.schema[attribute].dataType:
        case T.TimestampType() | T.DateType():
            return f"timestamp_micros({place})"
        case T.TimestampNTZType():
            return f"timestampadd(MICROSECOND, {place}, {_NTZ_EPOCH})"
        case T.IntegralType():
            return place
        case _:
            return f"CAST({place} AS DOUBLE)"


def ddl(type_: T.DataType) -> str:
    """A type as Spark SQL reads it, whatever the names inside of it.

    >>> ddl(T.StructType([T.StructField("a b", T.ArrayType(T.LongType()))]))
    'STRUCT<`a b`: ARRAY<bigint>>'
    """
    match type_:
        case T.StructType():
            return f"STRUCT<{', '.join(f'{quoted(f.name)}: {ddl(f.dataType)}' for f in type_)}>"
        case T.ArrayType():
            return f"ARRAY<{ddl(type_.elementType)}>"
        case T.MapType():
            return f"MAP<{ddl(type_.keyType)}, {ddl(type_.valueType)}>"
    return type_.simpleString()


def queried(rows: DataFrame, sql: str) -> DataFrame:
    """The answer to a query over some rows, which it calls THESE.

    What is built for every batch is built as one text: each column and each step of a DataFrame is a few calls to the
    JVM, and these take longer than Spark takes to plan what they build.
    """
    with _NAMING:
        rows.createOrReplaceTempView(THESE)
        return rows.sparkSession.sql(sql)


def stacked(parts: Iterable[DataFrame]) -> DataFrame:
    """The rows of all parts, of which there is at least one; columns that a part does not have are NULL in its rows."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def same_keys(keys: Sequence[Name], others: Sequence[Name]) -> Column:
    """Whether rows agree on the keys, those of the other side being called otherwise; NULL is a key like any other."""
    same = F.lit(True)
    for key, other in zip(keys, others, strict=True):
        same = same & col(key).eqNullSafe(col(other))
    return same


def others(keys: Sequence[Name]) -> list[Name]:
    """What keys are called on the other side of a join, where they would have the same names."""
    return [own(f"of.{key.plain}") for key in keys]


def col(name: Name) -> Column:
    """The column of this name."""
    return F.col(str(name))


def empty(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A DataFrame without rows."""
    # Not by createDataFrame, which would make this session the active one of the caller.
    columns = (f"CAST(NULL AS {ddl(f.dataType)}) AS {quoted(f.name)}" for f in schema)
    return spark.range(0).selectExpr(*columns)
