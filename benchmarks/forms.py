"""Forms of one ingest for several queries over the same batch: by query, by set of keys, routed, and held in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from benchmarks.data import stream_files
from benchmarks.sharing import MONITORS, Monitor
from benchmarks.timing import in_turns
from headgate.sql.text import stacked

_ROUNDS = 5
_KEYS = [
    ("srcIP",), ("destIP",), ("destPort",), ("srcPort",), (), ("proto",),
    ("srcIP", "proto"), ("destIP", "proto"), ("destPort", "proto"), ("flags",),
]  # fmt: skip
_FILTERS = ["true", "proto = 'tcp'", "len > 1000", "destPort = 53", "flags = 'SYN'"]
WORKLOADS = {
    1: [MONITORS["talkers"]],
    7: list(MONITORS.values()),
    50: [Monitor(keys, where, 10, 1) for keys in _KEYS for where in _FILTERS],
}
_PANE = "unix_micros(ts) - pmod(unix_micros(ts), 60000000L)"
Form = Callable[[DataFrame, Sequence[Monitor]], DataFrame]


def run(spark: SparkSession, console: Console, rows: int) -> None:
    """Prints the table."""
    spark = spark.newSession()
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.unionOutputPartitioning", "false")
    folder = stream_files(spark, max(2, rows // 1_000_000), hosts=5000)
    file = str(next(folder.glob("part-*.parquet")))
    schema = spark.read.parquet(file).schema

    def contender(form: Form, monitors: Sequence[Monitor]) -> DataFrame:
        spark.catalog.clearCache()
        return form(spark.read.schema(schema).parquet(file).coalesce(1), monitors)

    table = Table("queries", *FORMS, title="seconds for the ingest of 1 M packets")
    for number, monitors in WORKLOADS.items():
        contenders = {name: partial(contender, form, monitors) for name, form in FORMS.items()}
        table.add_row(str(number), *(f"{taken:.2f}" for taken in in_turns(contenders, _ROUNDS).values()))
    console.print(table)


def _by_query(packets: DataFrame, monitors: Sequence[Monitor]) -> DataFrame:
    return stacked(_reduced(packets.where(m.where), i, m.keys, _calls(m, "")) for i, m in enumerate(monitors))


def _by_keys(packets: DataFrame, monitors: Sequence[Monitor]) -> DataFrame:
    parts = []
    for i, (keys, own) in enumerate(_key_sets(monitors).items()):
        any_of = " OR ".join(f"({where})" for where in dict.fromkeys(m.where for m in own))
        calls = dict.fromkeys(call for m in own for call in _calls(m, f" FILTER (WHERE {m.where})"))
        parts.append(_reduced(packets.where(any_of), i, keys, list(calls)))
    return stacked(parts)


def _held(packets: DataFrame, monitors: Sequence[Monitor]) -> DataFrame:
    return _by_keys(packets.persist(), monitors)


def _routed(packets: DataFrame, monitors: Sequence[Monitor]) -> DataFrame:
    """Each tuple once for each set of keys, and one aggregation over all."""
    sets = list(_key_sets(monitors).items())
    routed = packets.withColumn("route", F.explode(F.array(*(F.lit(i) for i in range(len(sets))))))
    keys = [
        _by_route([f"CAST({key[j]} AS STRING)" if j < len(key) else "NULL" for key, _ in sets]).alias(f"k{j}")
        for j in range(max(len(key) for key, _ in sets))
    ]
    values = [
        [f"CASE WHEN {m.where} THEN {v} END" for m in own for v in (["1L", "len"] if m.sums else ["1L"])]
        for _, own in sets
    ]
    sums = [
        F.sum(_by_route([v[j] if j < len(v) else "NULL" for v in values])).alias(f"p{j}")
        for j in range(max(len(v) for v in values))
    ]
    return routed.groupBy("route", F.expr(_PANE).alias("pane"), *keys).agg(*sums)


def _by_route(values: Sequence[str]) -> Column:
    return F.expr("CASE route " + " ".join(f"WHEN {i} THEN {v}" for i, v in enumerate(values)) + " END")


def _key_sets(monitors: Sequence[Monitor]) -> dict[tuple[str, ...], list[Monitor]]:
    found: dict[tuple[str, ...], list[Monitor]] = {}
    for monitor in monitors:
        found.setdefault(monitor.keys, []).append(monitor)
    return found


def _calls(monitor: Monitor, met: str) -> list[str]:
    return [f"count(*){met}", *([f"sum(len){met}"] if monitor.sums else [])]


def _reduced(packets: DataFrame, number: int, keys: Sequence[str], calls: Sequence[str]) -> DataFrame:
    partials = [F.expr(call).alias(f"p{j}") for j, call in enumerate(calls)]
    reduced = packets.groupBy(F.expr(_PANE).alias("pane"), *keys).agg(*partials)
    key = F.concat_ws("|", *(F.col(k).cast("string") for k in keys)) if keys else F.lit("")
    return reduced.select(F.lit(number).alias("route"), "pane", key.alias("k"), *(f"p{j}" for j in range(len(calls))))


FORMS: dict[str, Form] = {"by query": _by_query, "by keys": _by_keys, "routed": _routed, "by keys, held": _held}
