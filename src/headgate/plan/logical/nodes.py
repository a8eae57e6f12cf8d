"""The logical plan: what a query computes, apart from how. Every node is a frozen value with named columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from headgate.aggregates import AggregateFunction, Kept
from headgate.plan.logical.types import UNKNOWN, aggregate_type, bound_type, type_of
from headgate.windows import Number, Window

WINDOW_START, WINDOW_END = "window_start", "window_end"
ROW_NUM = "row_num"
SAMPLING_RATE = "sampling_rate"


@dataclass(frozen=True)
class Field:
    """A column of a node's output: its name and its Spark type as text."""

    name: str
    type: str = UNKNOWN


@dataclass(frozen=True)
class Named:
    """An expression over the input's columns, and the name of its value."""

    name: str
    expression: exp.Expr


class Node(ABC):
    """A logical operator."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The nodes this one reads."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """The columns of the output, in order."""

    @property
    @abstractmethod
    def progress(self) -> tuple[str, ...]:
        """The columns of the output that progress."""

    @cached_property
    def types(self) -> dict[str, str]:
        """The type of each column by name."""
        return {field.name: field.type for field in self.fields}

    @property
    def windowed(self) -> bool:
        """Whether each output tuple is the answer for a window, and says for which."""
        return WINDOW_START in self.types and WINDOW_END in self.types


@dataclass(frozen=True)
class Source(Node):
    """A named stream. `numbered` adds the arrival number as the column `row_num`."""

    name: str
    columns: tuple[Field, ...]
    progressing: str | None = None
    numbered: bool = False
    also: tuple[str, ...] = ()
    """More columns that progress: the answers of an aggregate or a join may have several."""
    table: bool = False
    """Whether it is a bounded table, there to be looked up, and no stream."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.columns, Field(ROW_NUM, "bigint")) if self.numbered else self.columns

    @property
    def progress(self) -> tuple[str, ...]:
        return (self.progressing, *self.also) if self.progressing else self.also


@dataclass(frozen=True)
class Filter(Node):
    """The tuples for which the predicate is true."""

    input: Node
    predicate: exp.Expr

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def progress(self) -> tuple[str, ...]:
        return self.input.progress


@dataclass(frozen=True)
class Project(Node):
    """One output tuple for each input tuple, with these columns."""

    input: Node
    columns: tuple[Named, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(c.name, type_of(c.expression, self.input.types)) for c in self.columns)

    @property
    def progress(self) -> tuple[str, ...]:
        # Only a column that is passed on as it is still progresses.
        return tuple(
            c.name
            for c in self.columns
            if isinstance(c.expression, exp.Column) and c.expression.name in self.input.progress
        )


@dataclass(frozen=True)
class Union(Node):
    """All tuples of all inputs, duplicates kept; columns are matched by position."""

    inputs_: tuple[Node, ...]
    numbered: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.inputs_

    @property
    def fields(self) -> tuple[Field, ...]:
        fields = self.inputs_[0].fields
        return (*fields, Field(ROW_NUM, "bigint")) if self.numbered else fields

    @property
    def progress(self) -> tuple[str, ...]:
        first, *others = self.inputs_
        return tuple(p for p in first.progress if all(p in other.progress for other in others))


@dataclass(frozen=True)
class Band:
    """A sliding window condition: left - before <= right < left + after."""

    left: str
    right: str
    before: Number
    after: Number


@dataclass(frozen=True)
class SameWindow:
    """A tumbling window condition: left and right fall into the same window of this size."""

    left: str
    right: str
    size: Number


@dataclass(frozen=True)
class Join(Node):
    """The pairs that meet every window condition and the predicate."""

    left: Node
    right: Node
    conditions: tuple[Band | SameWindow, ...]
    predicate: exp.Expr | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields + self.right.fields

    @property
    def progress(self) -> tuple[str, ...]:
        attributes = [name for c in self.conditions for name in (c.left, c.right)]
        return tuple(dict.fromkeys((*attributes, *self.left.progress, *self.right.progress)))

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The columns of the left that have to be equal to columns of the right, with those."""
        parts = self.predicate.flatten() if isinstance(self.predicate, exp.And) else [self.predicate]
        both = [(p.left, p.right) for p in parts if isinstance(p, exp.EQ)]
        names = [(a.name, b.name) for a, b in both if isinstance(a, exp.Column) and isinstance(b, exp.Column)]
        left, right = self.left.types, self.right.types
        forth = [(a, b) for a, b in names if a in left and b in right]
        return (*forth, *((b, a) for a, b in names if a in right and b in left and (a, b) not in forth))


@dataclass(frozen=True)
class Lookup(Node):
    """Each tuple with every row of a table that it matches; with `outer`, those that match none too.

    To everything else it is a filter: nothing streams from a table, and tuples leave at once.
    """

    input: Node
    table: Node
    predicate: exp.Expr | None = None
    outer: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields + self.table.fields

    @property
    def progress(self) -> tuple[str, ...]:
        return self.input.progress


@dataclass(frozen=True)
class Distinct(Node):
    """The tuples that are no duplicates: without one of the same keys less than a range before them.

    Of several at the same place the one with the least values counts, column by column: arrival decides nothing.
    """

    input: Node
    keys: tuple[str, ...]
    attribute: str
    range: Number

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def progress(self) -> tuple[str, ...]:
        # A tuple waits for its place to be past. By then, others may have gone ahead on another attribute.
        return tuple(name for name in self.input.progress if name == self.attribute)


@dataclass(frozen=True)
class Call:
    """One aggregate of a query, and the name of the column that holds its answer."""

    name: str
    function: AggregateFunction
    arguments: tuple[exp.Expr, ...] = ()
    distinct: bool = False
    where: exp.Expr | None = None
    parameter: exp.Expr | None = None

    @property
    def bounded(self) -> bool:
        """Whether partials of constant size exist: the values of a DISTINCT aggregate have to be kept."""
        return self.function.bounded and not self.distinct

    @property
    def kept(self) -> Kept:
        """What is kept of tuples: of a DISTINCT aggregate, the values."""
        return Kept.VALUES if self.distinct else self.function.kept


@dataclass(frozen=True)
class Aggregate(Node):
    """One tuple for each window and group that holds a tuple. Without a window, the keys themselves progress."""

    input: Node
    window: Window | None
    keys: tuple[Named, ...]
    calls: tuple[Call, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def attribute(self) -> str | None:
        """The windowing attribute: the one that the range is measured on."""
        return None if self.window is None else self.window.attribute

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        types = self.input.types
        keys = [Field(k.name, type_of(k.expression, types)) for k in self.keys]
        calls = [
            Field(c.name, aggregate_type(c.function, [type_of(a, types) for a in c.arguments])) for c in self.calls
        ]
        if self.attribute is None:
            return (*keys, *calls)
        bound = bound_type(types.get(self.attribute, UNKNOWN))
        return (*keys, *calls, Field(WINDOW_START, bound), Field(WINDOW_END, bound))

    @property
    def progress(self) -> tuple[str, ...]:
        if self.window is not None:
            # A window that grows begins before all time, so its start cannot progress.
            return (WINDOW_END,) if self.window.growing else (WINDOW_START,)
        keys = ((k.name, k.expression) for k in self.keys)
        return tuple(name for name, e in keys if isinstance(e, exp.Column) and e.name in self.input.progress)


def over(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The node over other inputs."""
    match node:
        case Filter() | Project() | Aggregate() | Lookup() | Distinct():
            return replace(node, input=inputs[0])
        case Union():
            return replace(node, inputs_=inputs)
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
    return node
