"""A source whose batches the test gives, and a sink that collects."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.connect.sources import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark takes the oldest file first. It counts their age in whole seconds on some disks.
_FIRST = 1_700_000_000


class Batches(Files):
    """A source whose batches the test gives. A flow that is started takes each `add` as one micro-batch.

    Each batch is a Parquet file in a folder, a temporary one unless you name it. A driver needs no files:
    `driver.batch` gives the tuples, and only the columns count.
    """

    def __init__(self, schema: str, folder: str | os.PathLike[str] | None = None) -> None:
        own = tempfile.mkdtemp(prefix="headgate-batches-") if folder is None else os.fspath(folder)
        super().__init__(own, given_schema=schema, max_files_per_batch=1)

    def add(self, *batches: Iterable[Any]) -> None:
        """Adds micro-batches, each a list of rows: tuples in the order of the columns, or dicts."""
        spark = SparkSession.active()
        for rows in batches:
            staged = Path(tempfile.mkdtemp(prefix="headgate-batch-")) / "rows"
            spark.createDataFrame(list(rows), str(self.given_schema)).coalesce(1).write.parquet(str(staged))
            (file,) = staged.glob("part-*.parquet")
            Path(self.path).mkdir(parents=True, exist_ok=True)
            number = len(list(Path(self.path).glob("*.parquet")))
            os.utime(file, (_FIRST + number,) * 2)
            file.rename(Path(self.path) / f"{number:05d}.parquet")


@dataclass
class Collector:
    """A sink that keeps what it gets. A batch that comes again replaces itself."""

    batches: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    """The rows by name and batch. Answers have the name of their query, others such names as `talkers-late-Main`."""
    _schemas: dict[str, StructType] = field(default_factory=dict)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows, in the order of their batches."""
        return [row for _, rows in sorted(self.batches.items(), key=lambda item: item[0][1]) for row in rows]

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        """Takes the rows of one batch."""
        self.batches[name, batch] = [row.asDict(recursive=True) for row in answers.collect()]
        self._schemas[name] = answers.schema

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        """All rows under a name, or under names that begin with it."""
        names = [known for known in self._schemas if known == name or known.startswith(f"{name}-")]
        rows = [row for (of, _), own in self.batches.items() if of in names for row in own]
        return spark.createDataFrame(rows, self._schemas[names[0]]) if names else None
