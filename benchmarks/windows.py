"""Sliding windows by panes against Spark's own window(): the same answer over the same files, at growing overlap."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headgate as hg
from benchmarks.data import packet_files
from benchmarks.timing import in_turns, seconds

OVERLAPS = (1, 10, 60)


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the table; fails if the two ever disagree."""
    packets = packet_files(spark, rows, hosts=5000)
    table = Table(
        "RANGE / SLIDE", "window() s", "headgate s", "ratio", title=f"{rows:,} packets, 5,000 hosts, count and sum"
    )
    for overlap in OVERLAPS:
        ours, native = partial(headgate, packets, overlap), partial(spark_window, packets, overlap)
        _check(native(), ours())
        # At the largest overlap Spark takes minutes; once is enough there, after both have warmed up.
        if overlap == OVERLAPS[-1]:
            times = {"native": seconds(native), "ours": in_turns({"ours": ours}, rounds=3)["ours"]}
        else:
            times = in_turns({"native": native, "ours": ours}, rounds=3)
        ratio = times["native"] / times["ours"]
        table.add_row(str(overlap), f"{times['native']:.1f}", f"{times['ours']:.1f}", f"{ratio:.1f}")
    console.print(table)


def headgate(packets: DataFrame, overlap: int) -> DataFrame:
    """The query as Headgate answers it."""
    clause = f"[RANGE {overlap} minutes, SLIDE 1 minute, WA ts]"
    sql = f"SELECT srcIP, count(*) AS n, sum(len) AS bytes {clause} FROM packets GROUP BY srcIP"
    return hg.evaluate(sql, packets=packets)


def spark_window(packets: DataFrame, overlap: int) -> DataFrame:
    """The query as Spark has it."""
    grouped = packets.groupBy(F.window("ts", f"{overlap} minutes", "1 minute"), "srcIP")
    return grouped.agg(F.count("*").alias("n"), F.sum("len").alias("bytes"))


def _check(native: DataFrame, ours: DataFrame) -> None:
    totals = [F.count("*"), F.sum("n"), F.sum("bytes"), F.sum(F.expr("n * n % 1000003"))]
    wanted, found = native.agg(*totals).first(), ours.agg(*totals).first()
    if wanted != found:
        raise AssertionError(f"the answers differ: window() {wanted}, headgate {found}")
