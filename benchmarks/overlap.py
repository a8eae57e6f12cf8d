"""How the time grows with the overlap of windows alone: the slide stays, the range grows."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import packet_files
from benchmarks.timing import in_turns

OVERLAPS = (1, 10, 100, 600)


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints a row for a differential aggregate and one for another, and the time at 600 over that at 1."""
    packets = packet_files(spark, rows, hosts=500)
    title = f"{rows:,} packets, 500 hosts, SLIDE 6 seconds: seconds at RANGE / SLIDE"
    table = Table("aggregate", *(str(o) for o in OVERLAPS), "600 over 1", title=title)
    for name in ("sum", "max"):
        contenders = {str(o): partial(query, packets, name, o) for o in OVERLAPS}
        times = in_turns(contenders, rounds=3)
        ratio = times["600"] / times["1"]
        table.add_row(name, *(f"{times[str(o)]:.2f}" for o in OVERLAPS), f"{ratio:.2f}")
    console.print(table)


def query(packets: DataFrame, aggregate: str, overlap: int) -> DataFrame:
    """An aggregate of the packet lengths by source."""
    clause = f"[RANGE {6 * overlap} seconds, SLIDE 6 seconds, WA ts]"
    return hg.evaluate(f"SELECT srcIP, {aggregate}(len) AS x {clause} FROM packets GROUP BY srcIP", packets=packets)
