"""Spark for one command: it starts quietly, and stops after the command."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from headgate.api.session import session
from headgate.connect.files.bounded import format_of, read_files
from headgate.errors import Error
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


@contextmanager
def engine() -> Iterator[SparkSession]:
    """A Spark session. Errors inside become ours. A session that runs already is used and left running."""
    with plain_errors():
        running = SparkSession.getActiveSession()
        if running is not None:
            yield running
            return
        spark = _started()
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def progress(message: str, out: IO[str] | None = None) -> Iterator[None]:
    """Shows a person at a terminal what is going on, while it goes on: on standard error, or on `out`."""
    with Console(file=out or sys.stderr).status(f"{message} …"):
        yield


def opened(spark: SparkSession, paths: dict[str, str]) -> dict[str, DataFrame]:
    """A DataFrame for each stream or table."""
    with progress("reading"):
        return {name: read_files(spark, path) for name, path in paths.items()}


def check_paths(paths: dict[str, str]) -> None:
    """Raises the errors of streams and tables that can be found before Spark is started."""
    for path in paths.values():
        format_of(path)


def _started() -> SparkSession:
    # The JVM inherits our output and would write notes of its own between the rows of an answer.
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile("w+", errors="replace") as notes, os.fdopen(os.dup(2), "w") as person:
        try:
            os.dup2(notes.fileno(), 1)
            os.dup2(notes.fileno(), 2)
            with progress("starting Spark", person):
                spark = session()
        except PySparkException as error:
            notes.seek(0)
            said = " ".join(notes.read().split())
            raise Error(f"Spark did not start: {error} {said}") from None
        finally:
            for place, fd in enumerate(kept, start=1):
                os.dup2(fd, place)
                os.close(fd)
    spark.sparkContext.setLogLevel("OFF")
    return spark
