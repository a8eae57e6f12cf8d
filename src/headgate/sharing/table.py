"""A table of partial aggregates: the queries that share it, its keys, its panes and its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import types as T

from headgate.plan.logical.nodes import Call
from headgate.plan.stream.stages import Stage
from headgate.sharing.columns import FeedKeys, Guard, TableColumn, slots, tuple_count, word
from headgate.shed.estimate.quantiles import Quantiles
from headgate.shed.estimate.sql import Estimates
from headgate.sql.partials import PartialColumn
from headgate.windows import Cut, OnAxis, WindowType


@dataclass
class Member:
    """A query of a table, with its answers in terms of the table's columns."""

    stage: Stage
    guard: Guard
    keys: tuple[str, ...]
    """The key columns of the table that are the keys of the query, in its order."""
    finals: dict[str, str] = field(default_factory=dict)
    """The answer of each bounded call, and the ends of the window, as Spark SQL."""
    rows: str | None = None
    """The column that counts its tuples, where not every group of the table has some."""
    estimates: Estimates | None = None
    """How its answers are made from a sample, if they are."""


@dataclass
class Table:
    """Partials of groups and panes of one cut, for all queries that can use them.

    A table of *values* is for calls that need each value. Its last key is the value, and its only column says how often
    the value occurs; from a sample, its columns are the moments of the weights. A table of *states* is for one
    aggregate in Python, and its only column holds the states.
    """

    number: int
    feeds: tuple[FeedKeys, ...]
    key_types: tuple[T.DataType, ...]
    cut: Cut
    eager: WindowType | None
    """With these windows, a tuple is kept once for each window that holds it, and panes are windows."""
    axis: str
    """What places are counted on: only panes of one axis come before or after one another."""
    columns: list[TableColumn] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    values: tuple[Call, ...] = ()
    quantiles: Quantiles | None = None
    """How its values are made into answers, if they come from a sample."""
    state: Call | None = None
    known: Mapping[str, str] = field(default_factory=dict)
    """The columns of its rows on disk: the names by their meanings."""
    on_disk: bool = False
    """Whether there may be rows of it, so that its panes have to stay as they are."""

    @property
    def purpose(self) -> str:
        """What sets it apart from other tables of its stages: the call that it is for, if it is for one only."""
        calls = self.values or ((self.state,) if self.state is not None else ())
        return ", ".join(call.name for call in calls)

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return slots("k", self.key_types)

    @property
    def partials(self) -> list[PartialColumn]:
        """Its columns as those that merge them know them."""
        return [PartialColumn(c.name, c.template, c.merge) for c in self.columns]

    @property
    def growing(self) -> bool:
        """Whether its windows begin before all time, so that no pane is ever done with."""
        return self.members[0].stage.window.growing

    def held(self, place: str) -> str | None:
        """Whether a tuple is in any of its windows, as SQL; None if each one is."""
        return self.members[0].stage.window.type.held_sql(place)

    def reads(self, stream: str) -> bool:
        """Whether tuples of a stream go into it."""
        return any(feed.stream == stream for feed in self.feeds)

    @property
    def guards(self) -> list[Guard]:
        """The different conditions of the queries."""
        return list(dict.fromkeys(m.guard for m in self.members))

    def named(self, column: TableColumn) -> TableColumn:
        """The column under its name on disk, or else under the next free one: it merges the same way in all tables."""
        if column.meaning in self.known:
            return replace(column, name=self.known[column.meaning])
        taken = {*self.known.values(), *(c.name for c in self.columns)}
        number = 0
        while (name := f"{column.merge.value}{number}_{word(column.type)}") in taken:
            number += 1
        return replace(column, name=name)

    def count_tuples(self) -> None:
        """Lets each query know whether a group holds any tuple of its own: others may come to share the table."""
        if self.state is not None or self.values:
            return
        for member in self.members:
            count = tuple_count(member.guard, len(self.feeds))
            known = next((c for c in self.columns if c.meaning == count.meaning), None)
            if known is None:
                self.columns.append(known := self.named(count))
            member.rows = known.name

    def spell(self, feeds: Sequence[FeedKeys]) -> None:
        """Takes the keys in the words of a query that has them: a layout on disk has only their normal form."""
        said = [{key: key for key in feed.keys} for feed in feeds]
        both = zip(self.feeds, said, strict=True)
        self.feeds = tuple(replace(f, keys=tuple(own.get(key, key) for key in f.keys)) for f, own in both)

    def panes(self, window: OnAxis) -> WindowType:
        """The window of a member in panes of the table; for one that grows, what it grows by."""
        if self.eager is not None or window.growing or window.type.gaps:
            return WindowType(self.cut)
        return window.type.within(self.cut)
