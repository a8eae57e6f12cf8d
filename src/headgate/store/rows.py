"""Rows of a checkpoint as Parquet files in a folder of their own, which is written once and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.protocol.manifest import StateFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.spark.folder import Folder

#: A task, and so a file, more for each of so many rows: small files cost more to open than to read.
_ROWS_A_FILE = 50_000
#: The manifest is the commit: what Spark's committer does beyond moving files in would be of no use.
_NO_COMMITTER = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}


@dataclass(frozen=True)
class Rows:
    """Writes rows to folders below a root."""

    spark: SparkSession
    root: Folder

    def write(self, rows: DataFrame, folder: str, expected: int | None = None, compression: str = "zstd") -> None:
        """Writes rows to a folder, with one task a core, or fewer if few rows are expected."""
        cores = self.spark.sparkContext.defaultParallelism
        tasks = cores if expected is None else min(cores, 1 + expected // _ROWS_A_FILE)
        (self.root / folder).prepare()
        options = {**_NO_COMMITTER, "compression": compression}
        rows.coalesce(tasks).write.mode("append").options(**options).parquet(self.path(folder))

    def written(
        self, folder: str, spans: Mapping[str, tuple[float, float]], rows: int, depth: int = 0, merges: int = 0
    ) -> StateFiles:
        """What the manifest says of a folder that was written."""
        files = (self.root / folder).files()
        size = sum(f.size for f in files)
        return StateFiles(folder, tuple(f.name for f in files), spans, rows, size, depth, merges)

    def path(self, folder: str) -> str:
        """The full path of a folder or a file."""
        return f"{self.root.path}/{folder}"
