"""Random queries and streams for the conformance suite: disordered, with duplicates, NULLs and awkward windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from tests.support import Row

SCHEMA = {
    "ts": "timestamp",
    "at": "bigint",
    "pos": "decimal(12,2)",
    "k": "string",
    "g": "int",
    "v": "int",
    "w": "bigint",
    "d": "double",
    "m": "decimal(10,2)",
    "b": "boolean",
}

#: The sets of aggregates, by the physical form that they take when they are computed by panes.
AGGREGATES = {
    "exact": "count(*) AS n, count(v) AS nv, sum(v) AS sv, sum(w) AS sw, avg(v) AS av, sum(m) AS sm,"
    " count_if(v > 2) AS c2, sum(v) FILTER (WHERE b) AS fv, sum(v) * 2 + count(*) AS expr",
    "merged": "min(v) AS mi, max(d) AS ma, min(k) AS mk, sum(d) AS sd, avg(d) AS ad, avg(w) AS aw, var_pop(d) AS vp,"
    " variance(v) AS vs, stddev_pop(v) AS dp, stddev(d) AS ds, first(v) AS fi, last(d) AS la,"
    " first(v) IGNORE NULLS AS fn, min_by(k, d) AS mb, max_by(v, w) AS xb, bool_and(b) AS ba, bool_or(b) AS bo,"
    " max(d) - min(d) AS spread, max(d) FILTER (WHERE v > 1) AS fd, avg(m) AS am",
    "holistic": "median(v) AS me, percentile(v, 0.3) AS q3, mode(v) AS mo, count(DISTINCT v) AS cd,"
    " sum(DISTINCT v) AS sd, count(DISTINCT v, k) FILTER (WHERE b) AS cd2, count(*) AS n",
    "user": "product(d) AS p, span(v, w) AS s, product(d) FILTER (WHERE b) AS fp, max(v) AS m",
}

#: The attributes that groups are made of; the expression is a key too.
GROUPINGS = {"all": [], "by key": ["k"], "by expression": ["k", "v % 2"]}

WINDOWS = [
    "sliding",
    "sliding uneven",
    "tumbling",
    "sampling",
    "number",
    "decimal",
    "rows",
    "partitioned rows",
    "landmark",
    "landmark rows",
    "every tuple",
    "every n-th tuple",
    "every n-th by rank",
]


@dataclass(frozen=True)
class Case:
    """A window clause and a stream."""

    clause: str
    rows: list[Row]
    partition: list[str]


def case(window: str, seed: int) -> Case:
    """A random case for a kind of window; the same for the same seed."""
    random = Random(f"{window} {seed}")
    rows = stream(random, random.choice([25, 25, 60]))
    partition = ["k"] if window == "partitioned rows" else []
    return Case(_clause(window, random), rows, partition)


def query(case: Case, aggregates: str, grouping: str) -> str:
    """The text of a query over the case's stream S."""
    keys = list(dict.fromkeys([*case.partition, *GROUPINGS[grouping]]))
    named = [f"{key} AS key{i}" for i, key in enumerate(keys)]
    group = f" GROUP BY {', '.join(GROUPINGS[grouping])}" if GROUPINGS[grouping] else ""
    return f"SELECT {', '.join([*named, AGGREGATES[aggregates]])} {case.clause} FROM S{group}"


def stream(random: Random, size: int) -> list[Row]:
    """Tuples in no order, some of them twice, some with NULLs, around the epoch or in our days."""
    start = random.choice([datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 58, 30, 123456), datetime(2026, 1, 1)])

    def maybe(value: Any, often: float = 0.85) -> Any:
        return value if random.random() < often else None

    def row() -> Row:
        seconds = random.choice([random.randrange(0, 600), random.uniform(0, 600)])
        return {
            "ts": maybe(start + timedelta(seconds=seconds), 0.95),
            "at": maybe(random.randrange(-50, 50), 0.95),
            "pos": maybe(Decimal(random.randrange(-500, 500)) / 100, 0.95),
            "k": maybe(random.choice("abc")),
            "g": random.randrange(3),
            "v": maybe(random.randrange(-3, 8)),
            "w": maybe(random.randrange(-(10**12), 10**12)),
            "d": maybe(random.uniform(-10, 10)),
            "m": maybe(Decimal(random.randrange(-10000, 10000)) / 100),
            "b": maybe(random.random() < 0.5),
        }

    rows = [row() for _ in range(size)]
    return rows + [dict(random.choice(rows)) for _ in range(size // 10)]


def _clause(window: str, random: Random) -> str:
    pick = random.choice
    slide = pick([1, 7, 30, 60])
    match window:
        case "sliding":
            return f"[RANGE {slide * pick([2, 3, 10])} seconds, SLIDE {slide} seconds, WA ts]"
        case "sliding uneven":
            length, step = pick([(90, 60), (100, 35), (7, 3), (61, 60)])
            return f"[RANGE {length} seconds, SLIDE {step} seconds, WA ts]"
        case "tumbling":
            return f"[RANGE TUMBLING {pick(['1500000 microseconds', '1 minute', '0.5 hours'])}, WA ts]"
        case "sampling":
            return f"[RANGE {pick([1, 20, 45])} seconds, SLIDE {pick([60, 70])} seconds, WA ts]"
        case "number":
            return f"[RANGE {pick([10, 7])}, SLIDE {pick([2, 5, 3])}, WA at]"
        case "decimal":
            return f"[RANGE {pick(['1.5', '0.1', '2'])}, SLIDE {pick(['0.5', '0.25'])}, WA pos]"
        case "rows":
            return f"[RANGE {pick([10, 7])} rows, SLIDE {pick([2, 5, 12])} rows, WA row_num]"
        case "partitioned rows":
            return f"[RANGE {pick([5, 4])} rows, SLIDE {pick([2, 5])} rows, WA row_num, PA k]"
        case "landmark":
            return f"[RANGE ALL, SLIDE {pick([17, 60])} seconds, WA ts]"
        case "landmark rows":
            return f"[RANGE ALL, SLIDE {pick([1, 8])} rows, WA row_num]"
        case "every tuple":
            return f"[RANGE {pick([5, 90, 3600])} seconds, RATTR ts, SLIDE 1 row, SATTR row_num]"
        case "every n-th tuple":
            return f"[RANGE {pick([5, 90])} seconds, RATTR ts, SLIDE {pick([2, 5])} rows, SATTR row_num]"
        case "every n-th by rank":
            return f"[RANGE {pick([5, 90])} seconds, RATTR ts, SLIDE {pick([2, 5])} rows, SATTR rank(ts)]"
    raise ValueError(window)
