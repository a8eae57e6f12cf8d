"""The nodes that the language adds to sqlglot's tree: lengths, window clauses, unions, statements."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from sqlglot import exp

from headgate.lang.units import MICROSECONDS

#: The values that an option or a property may have.
OptionValue = str | int | float | bool


def _arg(key: str) -> Any:
    """A read-only attribute: an argument of the node, or None."""
    return property(lambda node: node.args.get(key))


def _flag(key: str) -> Any:
    """A read-only attribute: whether an argument of the node is set."""
    return property(lambda node: bool(node.args.get(key)))


def _list(key: str) -> Any:
    """A read-only attribute: an argument of the node as a list, empty where it is absent."""
    return property(lambda node: node.args.get(key) or [])


class Length(exp.Expression):
    """A number with a unit, as in `10 minutes` or `1000 rows`, or a bare number over a numeric attribute.

    >>> from headgate.lang import parse_query
    >>> length = parse_query("SELECT a FROM S [RANGE 1.5 Min]").find(Length)
    >>> length.number, length.unit, length.microseconds
    (Decimal('1.5'), 'minutes', Decimal('90000000.0'))
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": False}

    @property
    def number(self) -> Decimal:
        """The number without its unit. It may be negative."""
        return Decimal(self.this.this)

    @property
    def unit(self) -> str | None:
        """The unit in the plural and in lower case, or None for a bare number."""
        return self.text("unit") or None

    @property
    def microseconds(self) -> Decimal | None:
        """The length in microseconds, or None for rows and bare numbers."""
        factor = MICROSECONDS.get(self.text("unit"))
        return None if factor is None else self.number * factor


class Rank(exp.Expression):
    """`rank(a)` after SATTR: the place of a tuple in the order of attribute `a`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class WindowClause(exp.Expression):
    """A window clause: `[RANGE 10 minutes, SLIDE 1 minute, WA ts]`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "range": False,
        "slide": False,
        "wa": False,
        "rattr": False,
        "sattr": False,
        "pa": False,
        "tumbling": False,
        "all": False,
    }

    range: Length | None = _arg("range")
    slide: Length | None = _arg("slide")
    wa: exp.Column | None = _arg("wa")
    rattr: exp.Column | None = _arg("rattr")
    sattr: exp.Column | Rank | None = _arg("sattr")
    pa: list[exp.Column] = _list("pa")
    tumbling: bool = _flag("tumbling")
    all: bool = _flag("all")


class Windowed(exp.Expression):
    """A select item or a from-item with its alias, and the window clause that follows it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "clause": True}

    clause: WindowClause = _arg("clause")

    @property
    def alias(self) -> str:
        return str(self.this.alias)

    @property
    def alias_or_name(self) -> str:
        return str(self.this.alias_or_name)

    @property
    def output_name(self) -> str:
        return str(self.this.output_name)


class StreamUnion(exp.Expression):
    """A union of streams after FROM, which keeps duplicates: `A UNION B AS M1`."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "alias": False}


class Option(exp.Expression):
    """One `name = value` of OPTIONS or WITH."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}

    @property
    def value(self) -> OptionValue:
        """The value, as a Python value."""
        literal = self.expression
        if isinstance(literal, exp.Boolean):
            return bool(literal.this)
        if literal.is_string:
            return str(literal.this)
        return int(literal.this) if literal.this.lstrip("-").isdigit() else float(literal.this)


def _as_dict(options: list[Option]) -> dict[str, OptionValue]:
    return {option.name: option.value for option in options}


class Progress(exp.Expression):
    """`PROGRESS ON ts WITHIN 10 seconds`: the attribute that progresses, and what is promised about it."""

    arg_types: ClassVar[dict[str, bool]] = {
        "on": True,
        "within": False,
        "ordered": False,
        "slack_rows": False,
        "punctuated_by": False,
        "by": False,
        "idle": False,
    }

    on: exp.Column = _arg("on")
    within: Length | None = _arg("within")
    ordered: bool = _flag("ordered")
    slack_rows: int | None = _arg("slack_rows")
    punctuated_by: exp.Column | None = _arg("punctuated_by")
    by: exp.Column | None = _arg("by")
    idle: Length | None = _arg("idle")


class _Place(exp.Expression):
    """Where a stream comes from, or a sink goes to: a format, perhaps a path, and options."""

    @property
    def format(self) -> str:
        """The name of the format as it was written: `kafka`, `parquet`, `console`."""
        return self.text("format")

    @property
    def path(self) -> str | None:
        """The path after the format, or None."""
        return self.text("path") if self.args.get("path") else None

    @property
    def options_dict(self) -> dict[str, OptionValue]:
        """The options by name, as Python values."""
        return _as_dict(self.args.get("options") or [])


class CreateStream(_Place):
    """`CREATE STREAM Main FROM kafka OPTIONS (...) SCHEMA (...) PROGRESS ON ts WITHIN 10 seconds`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "format": True,
        "path": False,
        "options": False,
        "schema": False,
        "progress": False,
    }

    schema: list[exp.ColumnDef] = _list("schema")
    progress: Progress | None = _arg("progress")


class CreateTable(_Place):
    """`CREATE TABLE hosts FROM parquet 'hosts' SCHEMA (...)`: rows to look tuples up in."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "format": True,
        "path": False,
        "options": False,
        "schema": False,
    }

    schema: list[exp.ColumnDef] = _list("schema")


class CreateQuery(exp.Expression):
    """`CREATE QUERY talkers WITH (shed = 'estimate') AS SELECT ...`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "properties": False, "expression": True}

    @property
    def properties_dict(self) -> dict[str, OptionValue]:
        """The properties of WITH by name, as Python values."""
        return _as_dict(self.args.get("properties") or [])


class CreateSink(_Place):
    """`CREATE SINK FOR talkers INTO parquet 'results/talkers'`; `this` names the query.

    LATE after the name asks for the tuples that came too late for the query, SHED for those that its policy left out.
    BAD after the name of a stream asks for the tuples of the stream that cannot be used.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "output": False,
        "format": True,
        "path": False,
        "options": False,
    }

    @property
    def output(self) -> str:
        """What the sink gets: answers, late, shed or bad."""
        return str(self.args.get("output") or "answers")


Statement = CreateStream | CreateTable | CreateQuery | CreateSink
