"""The header lines of CSV files, split into columns as Spark splits them."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

#: How many files are opened at a time. If they are far away, many take as long as one.
_AT_A_TIME = 8
#: The characters that Java trims.
_BLANK = "".join(map(chr, range(33)))
Header = tuple[str, ...]


def headers(spark: SparkSession, paths: Sequence[str], options: Mapping[str, Any]) -> list[Header | None]:
    """The header of each file, read with these options of Spark's reader; None for a file without one."""
    with plain_errors():
        look = _look(spark, options)
        if len(paths) == 1:
            return [look(paths[0])]
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            return list(pool.map(look, paths))


def _look(spark: SparkSession, options: Mapping[str, Any]) -> Callable[[str], Header | None]:
    jvm: Any = spark._jvm
    given = jvm.java.util.HashMap()
    for name, value in options.items():
        given.put(name, str(value).lower() if isinstance(value, bool) else str(value))
    # These classes are not public, but Spark reads the rest of the file with them, so headers are split as rows are.
    csv = jvm.org.apache.spark.sql.catalyst.csv.CSVOptions(jvm.PythonUtils.toScalaMap(given), False, "UTC")
    streams = jvm.org.apache.spark.sql.execution.datasources.CodecStreams
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()

    top = _first_record if csv.multiLine() else _first_line

    def header(path: str) -> Header | None:
        opened = streams.createInputStream(hadoop, jvm.org.apache.hadoop.fs.Path(path))
        try:
            names = top(jvm, csv, opened)
        finally:
            opened.close()
        return None if names is None else _named(list(names), str(csv.nullValue()))

    return header


def _first_record(jvm: Any, csv: JavaObject, opened: JavaObject) -> Sequence[str | None] | None:
    """The columns of the first record of a file whose records may span several lines."""
    parser = _parser(jvm, csv)
    parser.beginParsing(opened, csv.charset())
    try:
        names: Sequence[str | None] | None = parser.parseNext()
    finally:
        parser.stopParsing()
    return names


def _first_line(jvm: Any, csv: JavaObject, opened: JavaObject) -> Sequence[str | None] | None:
    """The columns of the first line that is neither blank nor a comment; Spark skips those."""
    comment = str(csv.comment()) if csv.isCommentSet() else None
    for line in _lines(jvm, csv, opened):
        text = line.strip(_BLANK)
        if text and (comment is None or not text.startswith(comment)):
            names: Sequence[str | None] | None = _parser(jvm, csv).parseLine(line)
            return names
    return None


def _lines(jvm: Any, csv: JavaObject, opened: JavaObject) -> Iterator[str]:
    """The lines of a file, split as Spark splits them when each line is a record."""
    ends = csv.lineSeparatorInRead()
    reader = jvm.org.apache.hadoop.util.LineReader(opened, *([ends.get()] if ends.isDefined() else []))
    line = jvm.org.apache.hadoop.io.Text()
    mark = codecs.BOM_UTF8
    while reader.readLine(line) > 0:
        yield str(jvm.java.lang.String(bytes(line.copyBytes()).removeprefix(mark), csv.charset()))
        mark = b""


def _parser(jvm: Any, csv: JavaObject) -> JavaObject:
    return jvm.com.univocity.parsers.csv.CsvParser(csv.asParserSettings())


def key(name: str) -> str:
    """The name of a column in the form that headers and schemas are compared by."""
    return name.strip().lower()


def _named(names: Sequence[str | None], null: str = "") -> Header:
    """The columns of a header as Spark names them: without a name, or with one that occurs twice, by position.

    >>> _named(["ts", None, "v", "V", "-"], null="-")
    ('ts', '_c1', 'v2', 'V3', '_c4')
    """
    times = Counter(key(name or "") for name in names)
    return tuple(
        f"_c{i}" if not name or name == null else f"{name}{i}" if times[key(name)] > 1 else name
        for i, name in enumerate(names)
    )
