"""What needs the tuples themselves: duplicate elimination, windows by tuple, and by the rows of each partition.

A tuple that slides a window, or that makes another one a duplicate, may still come in front of others, so nothing can
be decided before its place is past. The tuples that are needed for that are kept, and what is decided is answered from
them by the operators of `evaluate`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from headgate.bounded.distinct import distinct
from headgate.bounded.lower import lower
from headgate.bounded.numbering import with_ranks
from headgate.plan.logical.nodes import ROW_NUM, WINDOW_END, Aggregate, Distinct, Node, Source
from headgate.progress import Punctuation
from headgate.sql.text import (
    Name,
    col,
    floor_div,
    literal,
    moving,
    others,
    own,
    position,
    quoted,
    same_keys,
)
from headgate.windows import Number, Sliding, TupleSlide

_TUPLES = "tuples"
_BASE, _OWN, _NEW, _BEFORE, _NOW = map(own, ("base", "ranked", "new", "first new", "now"))


@dataclass(frozen=True)
class _Holding:
    """The tuples of an operator, all of one kind."""

    node: Aggregate | Distinct
    which = "tuples"

    @property
    def plan(self) -> Node:
        """What gives the tuples."""
        return self.node.input


@dataclass(frozen=True)
class HeldInRange(_Holding, ABC):
    """Tuples that are needed until the stream has come a range further than their place."""

    @property
    @abstractmethod
    def attribute(self) -> str:
        """What the range is measured on."""

    @property
    @abstractmethod
    def range(self) -> Number:
        """How far back a tuple to come may reach."""

    @property
    def attributes(self) -> list[str]:
        """What the range is measured on."""
        return [self.attribute]

    def live(self, df: DataFrame, told: Mapping[str, Punctuation]) -> DataFrame:
        """The tuples that are still needed, where the stream has come so far."""
        p = told.get(self.attribute)
        if p is None:
            return df
        place = position(df, self.attribute)
        return df.where("false" if isinstance(p, float) else f"{place} > {moving(p - self.range, place)}")

    def is_spent(self, last: float, told: Mapping[str, Punctuation]) -> bool:
        """Whether no tuple up to this place is still needed."""
        p = told.get(self.attribute)
        return p is not None and last <= float(p) - float(self.range)

    def closing(self, df: DataFrame, skipped: int, before: Punctuation, now: Punctuation) -> DataFrame:
        """What is decided as the stream comes from one place to another, given all tuples that are needed for it.

        `skipped` tuples came before these in the order of places, and are not kept any more.
        """
        answers, place = self._answers(df, skipped)
        if before is not None and not isinstance(before, float):
            answers = answers.where(f"{place} >= {moving(before, place)}")
        if now is not None and not isinstance(now, float):
            answers = answers.where(f"{place} < {moving(now, place)}")
        return answers

    @abstractmethod
    def _answers(self, df: DataFrame, skipped: int) -> tuple[DataFrame, str]:
        """All answers over these tuples, and the place that decides each, as SQL."""


@dataclass(frozen=True)
class HeldByKey(HeldInRange):
    """The tuples that may make a tuple to come a duplicate, and those that may turn out to be one."""

    node: Distinct

    @property
    def attribute(self) -> str:
        return self.node.attribute

    @property
    def range(self) -> Number:
        return self.node.range

    def _answers(self, df: DataFrame, skipped: int) -> tuple[DataFrame, str]:
        del skipped  # What is out of reach makes no difference.
        return distinct(self.node, df), position(df, self.attribute)


@dataclass(frozen=True)
class HeldByTuple(HeldInRange):
    """The tuples of an aggregate whose windows slide by tuple: those within a range of a window still open."""

    node: Aggregate

    @property
    def window(self) -> TupleSlide:
        """The window of the aggregate."""
        assert self.node.window is not None
        assert self.node.window.by == "tuple"
        return self.node.window

    @property
    def attribute(self) -> str:
        return self.window.range_attr

    @property
    def range(self) -> Number:
        return self.window.range

    def passed(self, df: DataFrame, now: Mapping[str, Punctuation]) -> int:
        """How many of these tuples no window still open holds."""
        p = now.get(self.attribute)
        if p is None:
            return 0
        place = position(df, self.attribute)
        known = df.where(f"{place} IS NOT NULL")
        return (known if isinstance(p, float) else known.where(f"{place} <= {moving(p - self.range, place)}")).count()

    def _answers(self, df: DataFrame, skipped: int) -> tuple[DataFrame, str]:
        node = replace(self.node, input=_source(self.node), window=replace(self.window, skipped=skipped))
        answers = lower(node, {_TUPLES: df})
        return answers, position(answers, WINDOW_END)


@dataclass(frozen=True)
class HeldByPartition(_Holding):
    """The tuples of an aggregate over the rows of each partition, numbered within it: those of windows still open."""

    node: Aggregate

    @property
    def window(self) -> Sliding:
        """The window of the aggregate."""
        sliding = (
            self.node.window.as_sliding if self.node.window is not None and self.node.window.by == "axis" else None
        )
        assert sliding is not None, "only windows of one length are over the rows of partitions"
        return sliding

    @property
    def attributes(self) -> list[str]:
        """What tuples are counted by."""
        return [ROW_NUM]

    def ranked(self, new: DataFrame, kept: DataFrame | None) -> DataFrame:
        """New tuples with their number in their partition, on top of those that came before."""
        partition = [*map(Name, self.window.partition)]
        ranked = with_ranks(new.where(f"{ROW_NUM} IS NOT NULL"), partition, ROW_NUM, _OWN.plain)
        if kept is not None:
            theirs = others(partition)
            names = [col(key).alias(their.plain) for key, their in zip(partition, theirs, strict=True)]
            base = kept.groupBy(*names).agg((F.max(ROW_NUM) + 1).alias(_BASE.plain))
            ranked = ranked.join(base, same_keys(partition, theirs), "left")
        number = F.expr(f"{_OWN} + coalesce({_BASE}, 0)") if kept is not None else col(_OWN)
        return ranked.withColumn(ROW_NUM, number).select(*(F.col(quoted(c)) for c in new.columns))

    def live(self, df: DataFrame, told: Mapping[str, Punctuation]) -> DataFrame:
        """The tuples that windows still open hold, and the last one of each partition, which tells its count."""
        del told  # A window closes with the last row of its partition that it holds, whatever the stream does.
        count = F.max(ROW_NUM).over(W.partitionBy(*(F.col(quoted(p)) for p in self.window.partition))) + 1
        first = f"({floor_div(f'{_NOW} - {literal(self.window.range)}', self.window.slide)} + 1)"
        needed = f"{ROW_NUM} >= {first} * {literal(self.window.slide)} OR {ROW_NUM} = {_NOW} - 1"
        return df.withColumn(_NOW.plain, count).where(needed).drop(_NOW.plain)

    def is_spent(self, last: float, told: Mapping[str, Punctuation]) -> bool:
        """Whether no window still open holds a tuple up to this place: a partition may always go on."""
        del last
        return any(p == math.inf for p in told.values())

    def closing(self, new: DataFrame, kept: DataFrame | None, over: bool) -> DataFrame:
        """The answers of the windows that the new tuples close; of all others too, where the stream is over."""
        tagged = new.withColumn(_NEW.plain, F.lit(True))
        if kept is not None:
            tagged = tagged.unionByName(kept.withColumn(_NEW.plain, F.lit(False)))
        node = replace(self.node, input=_source(self.node), window=replace(self.window, partition=()))
        answers = lower(node, {_TUPLES: tagged})
        partition = {k.expression.name: k.name for k in self.node.keys}
        names = [Name(partition[p]) for p in self.window.partition]
        theirs = others(names)
        columns = [col(Name(p)).alias(t.plain) for p, t in zip(self.window.partition, theirs, strict=True)]
        counts = tagged.groupBy(*columns).agg(
            (F.max(ROW_NUM) + 1).alias(_NOW.plain),
            F.expr(f"min({ROW_NUM}) FILTER (WHERE {_NEW})").alias(_BEFORE.plain),
        )
        closes = f"{WINDOW_END} > coalesce({_BEFORE}, {_NOW})" + ("" if over else f" AND {WINDOW_END} <= {_NOW}")
        closing = answers.join(counts, same_keys(names, theirs)).where(closes)
        return closing.select(*(F.col(quoted(c)) for c in answers.columns))


Held = HeldByKey | HeldByTuple | HeldByPartition


def held(node: Aggregate | Distinct) -> Held:
    """What is kept of the tuples of such an operator."""
    if isinstance(node, Distinct):
        return HeldByKey(node)
    return HeldByTuple(node) if node.window is not None and node.window.by == "tuple" else HeldByPartition(node)


def _source(node: Aggregate) -> Source:
    return Source(_TUPLES, node.input.fields)
