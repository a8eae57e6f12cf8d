"""The partial columns of an aggregate, and how they are prefixed, merged and finalised in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.aggregates import AggregateFunction, Kept, Merge
from headgate.plan.logical.nodes import Aggregate, Call
from headgate.sql.text import ddl, quoted, text

ROWS = "_hg_rows"
"""How many tuples a partial stands for: a window without any gives no answer."""
_NO_DIGITS = 4e-15
"""What is left of a sum of squares when all but this share of it is taken away again has no digit that is right."""


@dataclass(frozen=True)
class PartialColumn:
    """A column of partial state: the Spark aggregate that makes it, and how it merges."""

    name: str
    sql: str
    merge: Merge

    @property
    def nullable(self) -> bool:
        """Whether tuples may give no value at all, as NULLs give no sum."""
        return not self.sql.startswith("count(")


COUNT = PartialColumn(ROWS, "count(*)", Merge.SUM)


@dataclass
class Partials:
    """The partial columns of all bounded calls of an aggregate; equal ones are kept once."""

    columns: list[PartialColumn]
    finals: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, aggregate: Aggregate, df: DataFrame, counted: bool) -> Partials:
        """The partials of the calls that keep partials over tuples of `df`; with `counted`, of their number too."""
        partials = cls([COUNT] if counted else [])
        for call in aggregate.calls:
            if call.kept is Kept.PARTIALS:
                partials._add(call, call.function, aggregate.attribute, df)
        return partials

    def _add(self, call: Call, function: AggregateFunction, attribute: str | None, df: DataFrame) -> None:
        holes = call_holes(call, attribute)
        names = {}
        for partial in function.partials:
            sql = partial.sql.format(**holes)
            known = next((c for c in self.columns if c.sql == sql), None)
            if known is None:
                known = PartialColumn(f"_hg_p{len(self.columns)}", sql, partial.merge)
                self.columns.append(known)
            names[partial.name] = known.name
        final = function.final.format(**names)
        if function.native:
            native = df.selectExpr(function.native.format(**holes)).schema[0].dataType
            final = f"CAST({final} AS {native.simpleString()})"
        self.finals[call.name] = final

    def aggregates(self) -> list[Column]:
        """The Spark aggregates that reduce tuples to these columns."""
        return [F.expr(c.sql).alias(c.name) for c in self.columns]


def call_holes(call: Call, attribute: str | None, spelling: Callable[[str], str] = str) -> dict[str, str]:
    """What fills the holes of an aggregate's templates for this call, in the user's spelling or a normal one."""
    arguments = [spelling(text(a)) for a in call.arguments]
    several = call.function.name == "count"
    return {
        "x": ", ".join(arguments) if several else (arguments or [""])[0],
        "y": arguments[1] if len(arguments) > 1 else "",
        "t": quoted(attribute) if attribute else "",
        "f": f" FILTER (WHERE {spelling(text(call.where))})" if call.where is not None else "",
        "d": "DISTINCT " if call.distinct else "",
        "p": spelling(text(call.parameter)) if call.parameter is not None else "",
    }


@dataclass(frozen=True)
class Additive:
    """Partial columns in a form that Spark's sum, min and max merge, also in a running window.

    Moments do not add up, but sums of distances from a common centre do. The centre of the values at hand keeps
    those sums small, so that large offsets cost no digits.
    """

    columns: tuple[PartialColumn, ...]
    parts: tuple[tuple[str, Merge], ...]

    @classmethod
    def of(cls, columns: Sequence[PartialColumn]) -> Additive:
        """The additive form of these columns."""
        parts: list[tuple[str, Merge]] = []
        for c in columns:
            names = [f"{c.name}_{p}" for p in ("n", "s1", "s2")] if c.merge is Merge.MOMENTS else [c.name]
            parts += [(name, Merge.SUM if c.merge is Merge.MOMENTS else c.merge) for name in names]
        return cls(tuple(columns), tuple(parts))

    @property
    def centres(self) -> list[str]:
        """The names of the columns that hold the centres."""
        return [f"{c.name}_c" for c in self.columns if c.merge is Merge.MOMENTS]

    def spread(self, df: DataFrame, partition: Sequence[str]) -> DataFrame:
        """The rows with their parts; rows of one partition have the same centres, and can be merged."""
        for c in self.columns:
            if c.merge is not Merge.MOMENTS:
                continue
            together = W.partitionBy(*partition)
            # A NaN or an infinity may spoil the windows it is in, but not the centre of all others.
            mean = f"CASE WHEN NOT isnan({c.name}.mean) AND abs({c.name}.mean) < double('inf') THEN {c.name}.mean END"
            weighted = F.sum(F.expr(f"{c.name}.n * {mean}")).over(together)
            weight = F.sum(F.expr(f"CASE WHEN {mean} IS NOT NULL THEN {c.name}.n END")).over(together)
            distance = f"({c.name}.mean - {c.name}_c)"
            df = (
                df.withColumn(f"{c.name}_c", F.coalesce(weighted / weight, F.lit(0.0)))
                .withColumn(f"{c.name}_n", F.expr(f"{c.name}.n"))
                .withColumn(f"{c.name}_s1", F.expr(f"{c.name}.n * {distance}"))
                .withColumn(f"{c.name}_s2", F.expr(f"{c.name}.m2 + {c.name}.n * {distance} * {distance}"))
                .drop(c.name)
            )
        return df

    def gather(self, df: DataFrame) -> DataFrame:
        """The rows with their parts put together into the partial columns again."""
        for c in self.columns:
            if c.merge is not Merge.MOMENTS:
                continue
            n, s1, s2, centre = (f"{c.name}_{p}" for p in ("n", "s1", "s2", "c"))
            # Not by nullif, of which Spark makes other code each time.
            # Values that are all alike have to have no spread, however far from the centre they are.
            mean, off = f"{centre} + {s1} / {n}", f"({s2} - {s1} * {s1} / {n})"
            off = f"CASE WHEN isnan({off}) OR {off} > {s2} * {_NO_DIGITS}D THEN {off} ELSE 0D END"
            mean, off = (f"CASE WHEN {n} > 0 THEN {sql} END" for sql in (mean, off))
            moments = f"named_struct('n', coalesce({n}, 0L), 'mean', {mean}, 'm2', coalesce({off}, 0D))"
            df = df.withColumn(c.name, F.expr(moments)).drop(n, s1, s2, centre)
        return df


def merged(column: Column, merge: Merge) -> Column:
    """The Spark aggregate that merges a part over rows."""
    return {Merge.SUM: F.sum, Merge.MIN: F.min, Merge.MAX: F.max}[merge](column)


def merged_pair(left: Column, right: Column, merge: Merge) -> Column:
    """Two values of a part merged; a missing one leaves the other."""
    match merge:
        case Merge.MIN:
            return F.least(left, right)
        case Merge.MAX:
            return F.greatest(left, right)
        case _:
            return F.coalesce(left + right, left, right)


def same_type(column: Column, type_: T.DataType) -> Column:
    """The column in its old type: Spark widens a decimal each time it is summed."""
    return column.cast(type_) if isinstance(type_, T.DecimalType) else column


def merge(rows: DataFrame, group: Sequence[str], additive: Additive) -> DataFrame:
    """The parts of rows merged by group; without any part, only the groups with the number of their rows."""
    merged_parts = merging(additive, {name: rows.schema[name].dataType for name, _ in additive.parts})
    return rows.groupBy(*group).agg(*(F.expr(sql).alias(name) for name, sql in merged_parts.items()))


def merging(additive: Additive, types: Mapping[str, T.DataType]) -> dict[str, str]:
    """The aggregates in Spark SQL that merge parts, some of which are known to have these types."""
    parts = {name: f"{how.value}({name})" for name, how in additive.parts}
    for name, type_ in types.items():
        if isinstance(type_, T.DecimalType):  # Spark widens a decimal each time it is summed.
            parts[name] = f"CAST({parts[name]} AS {ddl(type_)})"
    return parts | {centre: f"max({centre})" for centre in additive.centres} or {ROWS: "count(*)"}
