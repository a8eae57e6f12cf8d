"""`hg.sources`: where streams can come from. A source of your own is a subclass of `hg.Source`."""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql.types import StructType

from headgate import given
from headgate.connect.files.options import READABLE, value_of, wrong_reading
from headgate.connect.files.source import Files
from headgate.connect.packets.packets import PacketSource
from headgate.connect.packets.source import Packets
from headgate.errors import Error, SourceError
from headgate.incremental.reduce import MALFORMED

__all__ = ["MALFORMED", "Files", "Packets", "files", "packets"]

_PARAMETERS = ("format", "schema", "max_files_per_batch")


@given.checked("hg.sources.files", SourceError)
def files(
    path: str | os.PathLike[str],
    format: str = "parquet",  # noqa: A002 - Spark's word for it
    schema: StructType | str | None = None,
    max_files_per_batch: int | None = None,
    **options: Any,
) -> Files:
    """The files of a folder as they appear: Parquet, CSV or JSON lines.

    Without a `schema`, the files that are there already tell their columns. `options` are those of Spark's readers and
    of its file streams.

    >>> files("in", format="csv", seperator=";")
    Traceback (most recent call last):
    headgate.errors.SourceError: in: unknown option seperator: did you mean sep?
    """
    what = given.place("hg.sources.files: path", path, SourceError)
    given.one_of(f"{what}: format", format, READABLE, SourceError)
    if not (schema is None or isinstance(schema, str | StructType)):
        text = "a text, such as 'ts TIMESTAMP, v INT', or a StructType"
        raise given.refused(f"{what}: schema", schema, text, SourceError)
    most = max_files_per_batch
    if most is not None:
        most = given.whole(f"{what}: max_files_per_batch", most, "a whole number, one or more", 1, SourceError)
    wrong = wrong_reading(format, options, follows=True, others=_PARAMETERS)
    if wrong is not None:
        raise SourceError(f"{what}: {wrong}")
    if most is not None and value_of(options, "maxFilesPerTrigger") is not None:
        raise SourceError(f"{what}: max_files_per_batch and maxFilesPerTrigger are the same: leave one out")
    # Spark's own readers take None as the default.
    return Files(what, format, schema, most, {name: value for name, value in options.items() if value is not None})


@given.checked("hg.sources.packets", Error, like=PacketSource)
def packets(**parameters: Any) -> Packets:
    """Generated network packets, live at their rate or `rows_per_batch` at a time; see PacketSource."""
    return Packets(PacketSource(**parameters))
