"""The Parquet sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.connect.sink import Sink
from headgate.protocol.names import batch_name
from headgate.spark.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ParquetSink(Sink):
    """Parquet files in a folder, which any tool can read.

    Spark writes the files of a batch into a staging folder. They are then moved one by one, under names made from the
    batch number. So a batch that comes again replaces itself.
    """

    path: str

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        spark = answers.sparkSession
        folder = Folder(spark, self.path)
        staging = folder / "_staging" / f"{name}-{batch_name(batch)}"
        answers.write.mode("overwrite").parquet(staging.path)
        own = f"{name}-{batch_name(batch)}-"
        files = [f.name for f in staging.files()]
        for i, file in enumerate(files):
            staging.move(file, folder, f"{own}{i:05d}.parquet")
        for left in folder.files():
            if left.name.startswith(own) and left.name >= f"{own}{len(files):05d}":
                folder.delete(left.name)
        staging.delete()

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:
        files = [f"{self.path}/{f.name}" for f in Folder(spark, self.path).files() if f.name.startswith(f"{name}-")]
        return spark.read.parquet(*files) if files else None

    def describe(self) -> str:
        return f"parquet '{self.path}'"
