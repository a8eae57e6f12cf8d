"""Bounded files as DataFrames. The suffix tells the format, and the files tell their columns."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.connect.files.columns import by_folders, columns_of
from headgate.connect.files.folders import named
from headgate.connect.files.listing import found, ways_of
from headgate.connect.files.options import READABLE
from headgate.connect.files.place import Place
from headgate.connect.files.reading import Reader
from headgate.connect.files.told import reading, told
from headgate.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_KNOWN = "Parquet (.parquet), CSV (.csv) and JSON lines (.json, .jsonl, .ndjson) can be read, also packed (.gz)"
#: A record that does not fit is an error. As a row of NULLs it would silently change the answers.
_STRICT = {"mode": "FAILFAST", "columnPruning": "false"}


def read_files(
    spark: SparkSession,
    path: str,
    format: str | None = None,  # noqa: A002 - Spark's word for it
    schema: str | None = None,
) -> DataFrame:
    r"""The rows of a file, of all files in a folder, or of all files that a pattern such as `logs/*.csv` names.

    The suffix tells the format unless it is given. A CSV file has a header line. The types of CSV and JSON lines are
    inferred unless `schema` gives them, as in "ts TIMESTAMP, len INT".

    >>> import tempfile
    >>> from headgate.api.session import session
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("ts,len\n2026-01-01 00:00:00,40\n")
    ...     file.flush()
    ...     read_files(session(master="local[2]"), file.name).dtypes
    [('ts', 'timestamp'), ('len', 'int')]
    """
    kind = format or format_of(path)
    if kind not in READABLE:
        raise SourceError(f"{path}: unknown format {kind}; {_KNOWN}")
    options = {"header": "true"} | _STRICT if kind == "csv" else _STRICT if kind == "json" else {}
    columns = told(spark, path, kind, options) if schema is None else columns_of(schema)
    with reading(path, kind):
        place = Place.of(spark, path, options)
        if schema is not None:
            columns = by_folders(columns, named(ways_of(spark, place, options)))
        paths = [file.path for file in found(spark, place, options)]
        return Reader(spark, kind, columns, options, place).rows(paths, columns.names, whole=True)


def format_of(path: str) -> str:
    """The format of the files that a path stands for. A SourceError if there are none, or of several formats.

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
    """The data files that a local path stands for. Spark skips names that begin with _ or a dot."""
    place = _local(path)
    for match in [place] if os.path.exists(place) else sorted(glob.glob(place)):
        if not os.path.isdir(match):
            yield match
        for folder, folders, names in os.walk(match):
            folders[:] = [f for f in folders if not f.startswith(("_", "."))]
            yield from (os.path.join(folder, n) for n in names if not n.startswith(("_", ".")))


def _local(path: str) -> str:
    return os.path.expanduser(path)
