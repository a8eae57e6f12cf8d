"""`headgate demo`: one exact query over made-up packets, from text to answer."""

from __future__ import annotations

import sys
from time import perf_counter

from pyspark.sql import functions as F

from headgate.api.evaluate import catalog_of
from headgate.bounded.answer import answer
from headgate.cli.engine import engine, progress
from headgate.cli.rows import as_text, draw_table
from headgate.connect.packets.packets import packets
from headgate.lang import parse_query
from headgate.plan import bind
from headgate.plan.logical.explain import explain

SQL = """\
SELECT srcIP, count(*) AS packets, sum(len) AS bytes [RANGE 5 minutes, SLIDE 1 minute, WA ts]
FROM Packets
GROUP BY srcIP"""
_SECONDS, _START, _END = 600, "2026-01-01 00:00:00", "2026-01-01 00:10:00"


def run_demo(rows: int) -> None:
    """Prints a query, its plan, the busiest hosts of the last whole window, and the time for all windows."""
    with engine() as spark:
        with progress(f"making up {rows:,} packets"):
            made = packets(spark, rows, seconds=_SECONDS, start=_START).persist()
            made.count()
        frames = {"Packets": made}
        plan = bind(parse_query(SQL), catalog_of(frames))
        print(f"The busiest hosts of the last 5 minutes, every minute:\n\n{SQL}\n\n{explain(plan)}\n")
        with progress("computing"):
            begin = perf_counter()
            answers = answer(plan, frames).persist()
            found = answers.count()
            seconds = perf_counter() - begin
            windows = answers.select("window_start").distinct().count()
            last = answers.where(F.col("window_end") == F.lit(_END).cast("timestamp"))
            busiest = last.orderBy(F.desc("packets"), "srcIP").limit(10).select("srcIP", "packets", "bytes")
            top = [tuple(row) for row in as_text(busiest).collect()]
        print(f"The ten busiest in the last whole window, which ends at {_END}:\n")
        draw_table(busiest.schema, top, sys.stdout)
        cores = spark.sparkContext.defaultParallelism
        print(
            f"\n{rows:,} packets, {windows} windows, {found:,} rows, all exact: {seconds:.1f} s,"
            f" {rows / seconds:,.0f} packets/s on {cores} cores"
        )
