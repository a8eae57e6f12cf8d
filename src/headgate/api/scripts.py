"""A script as a flow: its streams opened, its queries added, its sinks connected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.errors import UnsupportedOperationException

from headgate.api.flow import Flow
from headgate.api.script_checks import MOST_FILES, called, check_reading, check_written, checked, policy_of
from headgate.connect import sinks, sources
from headgate.connect.files.options import READABLE
from headgate.errors import Error, ProgressError, ScriptError
from headgate.lang import to_sql
from headgate.plan.logical.script import ScriptStream, ScriptTable
from headgate.plan.stream.stages import continuous
from headgate.progress import StreamProgress
from headgate.shed.fit import check_tuples_shed
from headgate.spark.failures import plain_errors
from headgate.sql.text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.connect.input import Input
    from headgate.connect.sink import Sink
    from headgate.lang.nodes import OptionValue
    from headgate.plan.logical.script import Script, ScriptSink

_PACKETS: dict[str, type] = {
    "rate": float,
    "hosts": int,
    "zipf": float,
    "seed": int,
    "start": str,
    "disorder": float,
    "block": float,
    "rows": int,
    "rows_per_batch": int,
    "partitions": int,
}


def flow_of(script: Script, spark: SparkSession, name: str, checkpoint: str) -> Flow:
    """The flow that a script describes, ready to be started.

    >>> import headgate as hg, tempfile
    >>> from headgate.lang import parse_script
    >>> from headgate.plan.logical.script import bind_script
    >>> script = bind_script(parse_script('''
    ...     CREATE STREAM Main FROM parquet 'in' SCHEMA (ts INT, len INT) PROGRESS ON ts ORDERED;
    ...     CREATE QUERY top WITH (strategy = 'paned') AS SELECT max(len) AS top [RANGE 10, SLIDE 5] FROM Main;
    ...     CREATE SINK FOR top INTO parquet 'out';
    ... '''))
    >>> flow_of(script, hg.session(), "example", tempfile.mkdtemp()).name
    'example'
    """
    check_script(script)
    flow = Flow(spark, name, checkpoint)
    for stream in script.streams:
        flow.stream(stream.name, _known(stream) or _opened(stream, spark), _progress(stream))
    for table in script.tables:
        flow.table(table.name, _rows(table, spark))
    for query in script.queries:
        flow.query(query.name, query.statement.expression, policy_of(query), query.strategy)
    for sink in script.sinks:
        flow.sink(sink.of, _sink(sink), sink.output)
    return flow


def check_script(script: Script) -> None:
    """Raises what can be told to be wrong with a script before Spark is started."""
    if not script.queries:
        raise ScriptError("the script has no query to run: add CREATE QUERY name AS SELECT ...")
    check_written(script)
    for stream in script.streams:
        _known(stream)
        _progress(stream)
    for table in script.tables:
        if table.statement.format.lower() in READABLE:
            _files(table, table.statement.format.lower())
    for query in script.queries:
        continuous(query.name, query.plan, query.strategy)
    for sink in script.sinks:
        _sink(sink)
        if sink.output == "shed":
            query = next(q for q in script.queries if q.name == sink.of)
            check_tuples_shed(continuous(query.name, query.plan, query.strategy), policy_of(query))


# Streams


def _known(stream: ScriptStream) -> Input | None:
    """The stream as one of our own sources, or None if Spark has to open it."""
    format_ = stream.statement.format.lower()
    if format_ == "packets":
        return _packets(stream)
    return _files(stream, format_) if format_ in READABLE else None


def _packets(stream: ScriptStream) -> sources.Packets:
    parameters = checked(f"stream {stream.name}", "option", stream.statement.options_dict, _PACKETS)
    try:
        packets = sources.packets(**parameters)
    except Error as error:
        raise ScriptError(f"stream {stream.name}: {error}") from None
    columns = {f.name: f.dataType.simpleString() for f in packets.rows.schema()}
    if {f.name: f.type for f in stream.source.fields} != columns:
        schema = ", ".join(f"{name} {type_.upper()}" for name, type_ in columns.items())
        raise ScriptError(f"stream {stream.name}: packets have columns of their own: write SCHEMA ({schema})")
    return packets


def _files(given: ScriptStream | ScriptTable, format_: str) -> sources.Files:
    what, options = called(given), given.statement.options_dict
    path = _path(f"{what}: FROM {format_}", given.statement.path, options)
    most = None
    if isinstance(given, ScriptStream) and MOST_FILES in options:
        most = checked(what, "option", {MOST_FILES: options.pop(MOST_FILES)}, {MOST_FILES: int})[MOST_FILES]
    check_reading(given)
    try:
        return sources.files(path, format_, _schema(given), most, **options)
    except Error as error:
        raise ScriptError(f"{what}: {str(error).removeprefix(f'{path}: ')}") from None


def _rows(table: ScriptTable, spark: SparkSession) -> sources.Files | DataFrame:
    """The rows of a table: files that are read anew when they change, or whatever else Spark reads for each batch."""
    place = table.statement
    if place.format.lower() in READABLE:
        return _files(table, place.format.lower())
    try:
        with plain_errors():
            rows = spark.read.format(place.format).options(**place.options_dict).load(place.path)
            return rows.select(*(rows[quoted(f.name)].cast(f.type).alias(f.name) for f in table.source.fields))
    except Error as error:
        raise type(error)(f"{called(table)}: {error}") from None


def _opened(stream: ScriptStream, spark: SparkSession) -> DataFrame:
    """The stream as Spark reads it, with the columns of its SCHEMA."""
    place = stream.statement
    reader = spark.readStream.format(place.format).options(**place.options_dict)
    try:
        with plain_errors():
            try:
                return reader.schema(_schema(stream)).load(place.path)
            except UnsupportedOperationException:  # It has columns of its own.
                rows = spark.readStream.format(place.format).options(**place.options_dict).load(place.path)
                return rows.select(*(rows[quoted(f.name)].cast(f.type).alias(f.name) for f in stream.source.fields))
    except Error as error:
        raise type(error)(f"stream {stream.name}: {error}") from None


def _schema(given: ScriptStream | ScriptTable) -> str:
    """The columns as Spark reads them, with the names inside of structs as they were written."""
    return ", ".join(f"{quoted(c.name)} {to_sql(c.kind)}" for c in given.statement.schema if c.kind)


def _progress(stream: ScriptStream) -> StreamProgress | None:
    """What PROGRESS promises, about columns by the names that SCHEMA gives them."""
    statement = stream.statement.progress
    if statement is None:
        return None
    names = {f.name.lower(): f.name for f in stream.source.fields}
    try:
        return StreamProgress.of(statement, names).over(stream.source.types[names[statement.on.name.lower()]])
    except ProgressError as error:
        raise ProgressError(f"stream {stream.name}: {error}") from None


# Sinks


def _sink(sink: ScriptSink) -> Sink:
    what, format_ = f"the sink for {sink.of}", sink.format.lower()
    options = dict(sink.options)
    match format_:
        case "parquet":
            path = _path(f"{what}: INTO parquet", sink.path, options)
            checked(what, "option", options, {})
            return sinks.parquet(path)
        case "console" | "memory" if sink.path is not None:
            raise ScriptError(f"{what}: {format_} takes no path: leave '{sink.path}' out")
        case "console":
            rows = checked(what, "option", options, {"rows": int})
            return _made(what, lambda: sinks.console(**rows))
        case "memory":
            checked(what, "option", options, {})
            return sinks.memory()
        case _:
            if sink.path is not None:
                options["path"] = _path(f"{what}: INTO {sink.format}", sink.path, options)
            return _made(what, lambda: sinks.format(sink.format, **options))


def _made(what: str, make: Callable[[], Sink]) -> Sink:
    try:
        return make()
    except Error as error:
        raise ScriptError(f"{what}: {str(error).partition(': ')[2]}") from None


# Both


def _path(what: str, path: str | None, options: dict[str, OptionValue]) -> str:
    """The path after a format, or the option `path`, which is then no longer among the options."""
    if path and "path" in options:
        raise ScriptError(f"{what} has two paths: leave the option path out")
    path = path or str(options.pop("path", ""))
    if not path:
        raise ScriptError(f"{what} needs a path: write it in quotes after the format")
    return path
