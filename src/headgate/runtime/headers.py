"""The header lines of CSV files, split into columns as Spark splits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from headgate.runtime.failures import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Files that are looked into at a time: where they are far away, that takes as long for many as for one.
_AT_A_TIME = 8
Header = tuple[str, ...]


def headers(spark: SparkSession, paths: Sequence[str], options: Mapping[str, Any]) -> list[Header | None]:
    """The header of each file, by these options of Spark's reader; None of a file without a line."""
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
    # It is not public how a line is split, and how its letters are coded, but Spark reads the rest by it as well.
    csv = jvm.org.apache.spark.sql.catalyst.csv.CSVOptions(jvm.PythonUtils.toScalaMap(given), False, "UTC")
    streams = jvm.org.apache.spark.sql.execution.datasources.CodecStreams
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()

    def header(path: str) -> Header | None:
        parser = jvm.com.univocity.parsers.csv.CsvParser(csv.asParserSettings())
        parser.beginParsing(streams.createInputStream(hadoop, jvm.org.apache.hadoop.fs.Path(path)), csv.charset())
        try:
            names = parser.parseNext()
        finally:
            parser.stopParsing()
        return None if names is None else _named(list(names))

    return header


def key(name: str) -> str:
    """What a column is known by, in a header and in a schema."""
    return name.strip().lower()


def _named(names: Sequence[str | None]) -> Header:
    """The columns of a header as Spark calls them: those without a name, and those of one name, by their place.

    >>> _named(["ts", None, "v", "V"])
    ('ts', '_c1', 'v2', 'V3')
    """
    times = Counter(key(name or "") for name in names)
    return tuple(
        f"_c{i}" if not name else f"{name}{i}" if times[key(name)] > 1 else name for i, name in enumerate(names)
    )
