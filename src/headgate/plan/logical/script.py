"""A whole script, bound: its streams and tables, the queries over them, and where answers go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast, get_args

from headgate.errors import BindError, ScriptError
from headgate.lang import CreateQuery, CreateSink, CreateStream, CreateTable, Statement
from headgate.plan.logical.bind import bind
from headgate.plan.logical.catalog import Catalog, did_you_mean
from headgate.plan.logical.nodes import Field, Node, Source
from headgate.plan.logical.strategy import Strategy
from headgate.plan.logical.types import UNKNOWN, is_numeric, is_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import exp

    from headgate.lang.nodes import OptionValue

T = TypeVar("T", bound=CreateStream | CreateTable | CreateQuery)


@dataclass(frozen=True)
class ScriptStream:
    """A stream of a script: its columns for queries, and the statement that says where it comes from."""

    source: Source
    statement: CreateStream

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.source.name


@dataclass(frozen=True)
class ScriptTable:
    """A table of a script: its columns for queries, and the statement that says where it comes from."""

    source: Source
    statement: CreateTable

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.source.name


@dataclass(frozen=True)
class ScriptQuery:
    """A query of a script: its plan, the properties of its WITH, and the statement itself."""

    name: str
    plan: Node
    properties: dict[str, OptionValue]
    statement: CreateQuery

    @property
    def strategy(self) -> Strategy | None:
        """The strategy that WITH asks for."""
        strategy, known = self.properties.get("strategy"), get_args(Strategy)
        if strategy is not None and strategy not in known:
            words = " or ".join(map(repr, known))
            raise ScriptError(f"query {self.name}: unknown strategy = {strategy!r}: write {words}, or leave it out")
        return cast("Strategy | None", strategy)


@dataclass(frozen=True)
class ScriptSink:
    """A sink: for the answers of a query, its late or shed tuples, or the bad tuples of a stream."""

    of: str
    format: str
    path: str | None
    options: dict[str, OptionValue]
    output: str = "answers"


@dataclass(frozen=True)
class Script:
    """The parts of a script. Every name in them is checked."""

    streams: tuple[ScriptStream, ...]
    tables: tuple[ScriptTable, ...]
    queries: tuple[ScriptQuery, ...]
    sinks: tuple[ScriptSink, ...]

    def sinks_of_query(self, name: str) -> list[ScriptSink]:
        """The sinks of a query: for its answers, and for tuples that are in none."""
        return [s for s in self.sinks if s.of == name and s.output != "bad"]

    def sinks_of_stream(self, name: str) -> list[ScriptSink]:
        """The sinks for the bad tuples of a stream."""
        return [s for s in self.sinks if s.of == name and s.output == "bad"]


def bind_script(statements: Iterable[Statement]) -> Script:
    """The script that these statements make up. An error names the statement that does not fit.

    >>> from headgate.lang import parse_script
    >>> script = bind_script(parse_script('''
    ...     CREATE STREAM Main FROM parquet 'in' SCHEMA (ts TIMESTAMP, len INT) PROGRESS ON ts ORDERED;
    ...     CREATE QUERY biggest AS SELECT max(len) AS top [RANGE 1 minute] FROM Main;
    ...     CREATE SINK FOR biggest INTO parquet 'out';
    ... '''))
    >>> [q.name for q in script.queries], [(s.of, s.path) for s in script.sinks]
    (['biggest'], [('biggest', 'out')])
    """
    statements = list(statements)
    streams = tuple(_stream(s) for s in _named_once("streams", statements, CreateStream))
    tables = tuple(_table(s) for s in _named_once("tables", statements, CreateTable))
    taken = {stream.name.lower() for stream in streams}
    for table in tables:
        if table.name.lower() in taken:
            raise ScriptError(f"a stream and a table are named {table.name}: give one of them another name")
    catalog = Catalog([*(stream.source for stream in streams), *(table.source for table in tables)])
    taken |= {table.name.lower() for table in tables}
    queries: list[ScriptQuery] = []
    for statement in _named_once("queries", statements, CreateQuery):
        queries.append(_query(statement, catalog))
        # Later statements can read it, unless its name is that of a stream or a table.
        if statement.name.lower() not in taken:
            catalog = catalog.extended(statement.name, queries[-1].plan)
    names = {q.name.lower(): q.name for q in queries}
    sources = {s.name.lower(): s.name for s in streams}
    sinks = tuple(_sink(s, names, sources) for s in statements if isinstance(s, CreateSink))
    return Script(streams, tables, tuple(queries), sinks)


def _named_once(things: str, statements: list[Statement], kind: type[T]) -> list[T]:
    found: dict[str, T] = {}
    for statement in statements:
        if isinstance(statement, kind):
            if statement.name.lower() in found:
                raise ScriptError(f"two {things} are named {statement.name}: give one of them another name")
            found[statement.name.lower()] = statement
    return list(found.values())


def _stream(statement: CreateStream) -> ScriptStream:
    name = statement.name
    fields = _fields(f"stream {name}", statement)
    progressing = None
    if (progress := statement.progress) is not None:
        progressing = _column(progress.on, "PROGRESS ON", name, fields).name
        type_ = fields[progressing.lower()].type
        if not (is_time(type_) or is_numeric(type_) or type_ == UNKNOWN):
            raise ScriptError(
                f"PROGRESS ON {progressing} of stream {name}: {progressing} is {type_}, and only a time or a"
                " number can progress"
            )
        for words, reference in (("PUNCTUATED BY", progress.punctuated_by), ("BY", progress.by)):
            if reference is not None:
                _column(reference, words, name, fields)
    return ScriptStream(Source(name, tuple(fields.values()), progressing), statement)


def _table(statement: CreateTable) -> ScriptTable:
    fields = _fields(f"table {statement.name}", statement)
    return ScriptTable(Source(statement.name, tuple(fields.values()), table=True), statement)


def _fields(what: str, statement: CreateStream | CreateTable) -> dict[str, Field]:
    if not statement.schema:
        raise ScriptError(f"{what} has no SCHEMA, so its columns are not known: add SCHEMA (column TYPE, ...)")
    fields: dict[str, Field] = {}
    for column in statement.schema:
        if column.name.lower() in fields:
            raise ScriptError(f"{what} has two columns named {column.name} in its SCHEMA")
        fields[column.name.lower()] = Field(column.name, _type(column))
    return fields


def _column(reference: exp.Column, words: str, stream: str, fields: dict[str, Field]) -> Field:
    try:
        return fields[reference.name.lower()]
    except KeyError:
        hint = did_you_mean(reference.name, (f.name for f in fields.values()))
        raise ScriptError(
            f"{words} {reference.name} of stream {stream}: no such column in its SCHEMA; {hint}"
        ) from None


def _type(column: exp.ColumnDef) -> str:
    kind = column.kind
    return UNKNOWN if kind is None else kind.sql("spark").lower().replace(", ", ",")


def _query(statement: CreateQuery, catalog: Catalog) -> ScriptQuery:
    try:
        plan = bind(statement.expression, catalog)
    except BindError as error:
        raise type(error)(f"query {statement.name}: {error}") from None
    return ScriptQuery(statement.name, plan, statement.properties_dict, statement)


def _sink(statement: CreateSink, queries: dict[str, str], streams: dict[str, str]) -> ScriptSink:
    kind, known = ("stream", streams) if statement.output == "bad" else ("query", queries)
    of = known.get(statement.name.lower())
    if of is None:
        hint = did_you_mean(statement.name, known.values())
        raise ScriptError(f"a sink for {statement.name}, which is not a {kind} of this script: {hint}")
    return ScriptSink(of, statement.format, statement.path, statement.options_dict, statement.output)
