"""What is kept while one of two links lags: a flow, and the same flow after a buffer that puts tuples in order."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headgate as hg
from headgate.connect.input import Input
from headgate.connect.packets.packets import PacketSource
from headgate.progress import StreamProgress

SKEWS = (0, 10, 20, 40)
RATE, SECONDS, BATCH_SECONDS = 20_000, 480, 20
SQL = "SELECT srcIP, count(*) AS n, sum(len) AS bytes [RANGE 5 minutes, SLIDE 10 seconds] FROM packets GROUP BY srcIP"


@dataclass(frozen=True)
class Kept:
    """What is kept after a batch."""

    rows: int
    bytes: int

    def __add__(self, other: Kept) -> Kept:
        return Kept(self.rows + other.rows, self.bytes + other.bytes)


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the table; `rows` bounds how many packets there are."""
    rows = min(rows, RATE * SECONDS)
    table = Table("skew s", title=f"kept after a batch: {RATE:,} packets/s, 500 hosts")
    for column in ("out of order", "KiB", "in order", "KiB", "in its buffer"):
        table.add_column(column, justify="right")
    for skew in SKEWS:
        packets = PacketSource(
            rate=RATE,
            hosts=500,
            rows=rows,
            rows_per_batch=RATE * BATCH_SECONDS,
            links={"main1": 0.5, "main2": 0.5},
            skews={"main2": float(skew)},
        )
        ours = _middle(_flow(spark, hg.sources.Packets(packets), hg.progress("ts", within="0 seconds", by="link")))
        buffered, after = _in_order(spark, packets, rows)
        theirs = _middle([one + other for one, other in zip(buffered, after, strict=False)])
        cells = (ours.rows, ours.bytes >> 10, theirs.rows, theirs.bytes >> 10, _middle(buffered).rows)
        table.add_row(str(skew), *(f"{cell:,}" for cell in cells))
    console.print(table)


def _middle(kept: Sequence[Kept]) -> Kept:
    """The median over the second half of the batches, in which the first windows are complete."""
    later = kept[len(kept) // 2 :]
    return Kept(int(statistics.median(k.rows for k in later)), int(statistics.median(k.bytes for k in later)))


def _flow(spark: SparkSession, source: Input, progress: StreamProgress) -> list[Kept]:
    scratch = tempfile.mkdtemp()
    flow = hg.Flow(spark, "skew", f"{scratch}/checkpoint")
    flow.stream("packets", source, progress=progress)
    flow.query("talkers", SQL)
    reports = flow.run_available().reports
    shutil.rmtree(scratch)
    return [Kept(report.state_rows, report.state_bytes) for report in reports]


def _in_order(spark: SparkSession, packets: PacketSource, rows: int) -> tuple[list[Kept], list[Kept]]:
    """What the buffer keeps, and what the flow after it keeps."""
    scratch = Path(tempfile.mkdtemp())
    buffered = list(_sorted(spark, packets, rows, scratch))
    source = hg.sources.files(str(scratch / "sorted"), max_files_per_batch=1)
    after = _flow(spark, source, hg.progress("ts", ordered=True))
    shutil.rmtree(scratch)
    return buffered, after


def _sorted(spark: SparkSession, packets: PacketSource, rows: int, scratch: Path) -> Iterator[Kept]:
    """Holds tuples back until every link has passed them, and releases them in order, a file a batch."""
    reached: dict[str, object] = {}
    kept: DataFrame | None = None
    for batch, first in enumerate(range(0, rows, RATE * BATCH_SECONDS)):
        new = packets.read(spark, first, min(first + RATE * BATCH_SECONDS, rows)).select("ts", "srcIP", "len", "link")
        reached |= {row["link"]: row["ts"] for row in new.groupBy("link").agg(F.max("ts").alias("ts")).collect()}
        passed = F.col("ts") < F.lit(min(reached.values()))  # type: ignore[type-var]
        held = new if kept is None else kept.union(new)
        released = scratch / "sorted" / f"{batch:05d}.parquet"
        held.where(passed).sort("ts").coalesce(1).write.parquet(str(scratch / "released" / str(batch)))
        _only_file(scratch / "released" / str(batch), released)
        folder = scratch / "buffer" / str(batch)
        held.where(~passed).write.parquet(str(folder))
        kept = spark.read.parquet(str(folder))
        yield Kept(kept.count(), sum(file.stat().st_size for file in folder.glob("*.parquet")))


def _only_file(folder: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    (file,) = folder.glob("*.parquet")
    file.rename(target)
