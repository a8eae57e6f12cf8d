"""Bounded files as DataFrames: the format by the suffix, the columns by what is in them."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headgate.errors import Error, SourceError
from headgate.runtime.failures import plain_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_KNOWN = "Parquet (.parquet), CSV (.csv) and JSON lines (.json, .jsonl, .ndjson) can be read, also packed (.gz)"
OPTIONS: dict[str, dict[str, str]] = {
    # A record that does not fit is an error: as a row of NULLs it would silently change the answers.
    # To see that, Spark has to look at all columns, also at those that no query needs.
    "csv": {"header": "true", "mode": "FAILFAST", "columnPruning": "false"},
    "json": {"mode": "FAILFAST"},
    "parquet": {},
}
_INFER = {"csv": {"inferSchema": "true"}, "json": {"inferTimestamp": "true"}}


def read_files(
    spark: SparkSession,
    path: str,
    format: str | None = None,  # noqa: A002 - the word that Spark has for it
    schema: str | None = None,
) -> DataFrame:
    r"""The rows of a file, of all files in a directory, or of all that a pattern such as `logs/*.csv` names.

    The format is told by the suffix unless it is given. A CSV file has a header line; its types, and those of
    JSON lines, are told by the data unless `schema` names them, as in "ts TIMESTAMP, len INT".

    >>> import tempfile
    >>> from headgate.runtime.session import session
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("ts,len\n2026-01-01 00:00:00,40\n")
    ...     file.flush()
    ...     read_files(session(master="local[2]"), file.name).dtypes
    [('ts', 'timestamp'), ('len', 'int')]
    """
    kind = format or format_of(path)
    if kind not in OPTIONS:
        raise SourceError(f"{path}: unknown format {kind}; {_KNOWN}")
    try:
        with plain_errors():
            reader = spark.read.format(kind).options(**OPTIONS[kind])
            reader = reader.schema(schema) if schema else reader.options(**_INFER.get(kind, {}))
            df = _with_instants(reader.load(_literal(path)))
    except Error as error:
        kind = "JSON lines, one object a line" if kind == "json" else kind
        raise SourceError(f"cannot read {path} as {kind}: {error}") from None
    if not df.columns:
        raise SourceError(f"{path} is empty: it has no columns")
    return df


def format_of(path: str) -> str:
    """The format of the files that a path stands for, or a SourceError if they are not there or not alike.

    >>> with __import__("tempfile").NamedTemporaryFile(suffix=".csv.gz") as file:
    ...     format_of(file.name)
    'csv'
    """
    if "://" in path:
        found = {_by_suffix(path)}  # Only Spark can look there.
    else:
        files = list(_files(path))
        if not files:
            what = "holds no files" if os.path.isdir(_local(path)) else "does not exist"
            raise SourceError(f"{path} {what}")
        found = {_by_suffix(file) for file in files}
    known = sorted(kind for kind in found if kind)
    if len(known) > 1:
        raise SourceError(f"{path} holds files of several formats, {' and '.join(known)}: name those of one with a *")
    if None in found:
        raise SourceError(f"{path}: unknown format; {_KNOWN}")
    return known[0]


def _by_suffix(path: str) -> str | None:
    suffixes = [s.lower() for s in Path(path).suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


def _files(path: str) -> Iterator[str]:
    """The data files that a local path stands for: to Spark, names with _ or . in front are none."""
    place = _local(path)
    for match in [place] if os.path.exists(place) else sorted(glob.glob(place)):
        if not os.path.isdir(match):
            yield match
        for folder, folders, names in os.walk(match):
            folders[:] = [f for f in folders if not f.startswith(("_", "."))]
            yield from (os.path.join(folder, n) for n in names if not n.startswith(("_", ".")))


def _local(path: str) -> str:
    return os.path.expanduser(path)


def literal(path: str) -> str:
    """The name of a file for Spark, to which brackets in it would be a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _literal(path: str) -> str:
    place = _local(path)
    return literal(place) if os.path.exists(place) else place


def _with_instants(df: DataFrame) -> DataFrame:
    """The rows with wall-clock times as points in time: most files do not mean the difference."""
    local = [name for name, type_ in df.dtypes if type_ == "timestamp_ntz"]
    return df.withColumns({name: F.col(f"`{name}`").cast("timestamp") for name in local}) if local else df
