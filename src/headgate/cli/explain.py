"""`headgate explain`: the plans of a query or of a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from headgate.api.script_checks import check_written
from headgate.cli.inputs import paths_by_name, read_text
from headgate.errors import BindError, ScriptError
from headgate.lang import Option, parse_query, parse_script, to_sql
from headgate.lang.dialect import Headgate
from headgate.plan import Catalog, bind
from headgate.plan.logical.catalog import names_read
from headgate.plan.logical.explain import explain, explain_query, explain_sink, explain_stream
from headgate.plan.logical.script import bind_script

if TYPE_CHECKING:
    from headgate.plan import Strategy
    from headgate.plan.logical.script import Script, ScriptQuery, ScriptSink, ScriptStream, ScriptTable


def explain_file(file: str, streams: list[str], tables: list[str], strategy: Strategy | None) -> None:
    """Prints the plan of the query in a file, or the plans of all queries of a script."""
    text, paths, rows_at = read_text(file), paths_by_name(streams), paths_by_name(tables, "--table")
    if is_script(text):
        if paths or rows_at:
            raise ScriptError(f"{file} is a script and has its own streams: leave --stream and --table out")
        print(explain_script(bind_script(parse_script(text)), strategy))
    else:
        query = parse_query(text)
        print(explain(bind(query, _catalog(query, paths, rows_at)), strategy))


def is_script(text: str) -> bool:
    r"""Whether a text is a script: it begins with CREATE.

    >>> is_script("-- the busiest\nCREATE QUERY q AS SELECT ..."), is_script("SELECT 1")
    (True, False)
    """
    try:
        tokens = Headgate().tokenize(text)
    except TokenError:
        return False  # The parser will say what is wrong, and where.
    return bool(tokens) and tokens[0].token_type == TokenType.CREATE


def explain_script(script: Script, strategy: Strategy | None = None) -> str:
    """The streams of a script, and its queries, each with its plan."""
    if not script.queries:
        raise ScriptError("the script has no query to explain: add CREATE QUERY name AS SELECT ...")
    check_written(script)
    streams = [*(stream_line(s, script) for s in script.streams), *(table_line(t) for t in script.tables)]
    queries = [_query_text(query, script, strategy) for query in script.queries]
    return "\n\n".join(["\n".join(streams), *queries])


def stream_line(stream: ScriptStream, script: Script) -> str:
    """A stream of a script in one line. Options are left out: they may hold passwords."""
    statement = stream.statement
    promise = to_sql(statement.progress) if statement.progress is not None else ""
    return explain_stream(stream.name, statement.format, promise, map(sink_words, script.sinks_of_stream(stream.name)))


def table_line(table: ScriptTable) -> str:
    """A table of a script in one line."""
    return f"Table {table.name} from {table.statement.format}"


def sink_words(sink: ScriptSink) -> str:
    """Where a sink of a script goes."""
    return explain_sink(sink.format, sink.path, sink.output)


def _query_text(query: ScriptQuery, script: Script, strategy: Strategy | None) -> str:
    properties = [to_sql(p) for p in query.statement.find_all(Option)] if query.properties else []
    sinks = map(sink_words, script.sinks_of_query(query.name))
    return explain_query(query.name, properties, sinks, query.plan, strategy or query.strategy)


def _catalog(query: exp.Expr, paths: dict[str, str], tables: dict[str, str]) -> Catalog:
    if not paths:
        read = names_read(query)
        options = " ".join(f"--stream {name}=PATH" for name in read)
        raise BindError(
            f"the columns of {', '.join(read)} are not known: add {options}, or explain a script with"
            " CREATE STREAM ... SCHEMA (...)"
        )
    from headgate.api.evaluate import catalog_of
    from headgate.cli.engine import check_paths, engine, opened

    check_paths(paths | tables)
    with engine() as spark:
        return catalog_of(opened(spark, paths | tables), tables)
