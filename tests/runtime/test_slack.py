"""Progress by rows in a flow: what Spark finds out about a batch is what the promise is about."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support import Row

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SLACK = 5
DDL = "v INT, price DECIMAL(6,2), router STRING"
TYPES = pa.schema([("v", pa.int32()), ("price", pa.decimal128(6, 2)), ("router", pa.string())])


def batch(random: Random, base: int, size: int) -> list[Row]:
    """Rows in order but for a few that come up to five rows too late."""
    values = sorted(random.randrange(base, base + 3 * size) for _ in range(size))
    places = [(i + random.choice([0, 0, SLACK + 0.5]), v) for i, v in enumerate(values)]
    rows: list[Row] = [
        {"v": v, "price": Decimal(v) / 4, "router": random.choice(["a", None])} for _, v in sorted(places)
    ]
    rows[random.randrange(size)] |= {"v": None, "price": None}
    return rows


def certain(batches: list[list[Row]], column: str) -> Any:
    """What all but the last few rows have reached, those of a batch in ascending order."""
    values = [
        row[column] for rows in batches for row in sorted(rows, key=lambda r: (r[column] is not None, r[column] or 0))
    ]
    return max((v for v in values[: max(0, len(values) - SLACK)] if v is not None), default=None)


@pytest.mark.usefixtures("interpreted")
def test_progress_is_made_within_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    random, batches = Random(7), list[list[Row]]()
    (tmp_path / "in").mkdir()
    for number, size in enumerate((100, 3, 4, 40)):
        batches.append(batch(random, 1000 * number, size))
        pq.write_table(
            pa.Table.from_pylist(batches[-1], TYPES), tmp_path / "in" / f"{number}.parquet", row_group_size=9
        )
        flow = hg.Flow(spark, "slack", str(tmp_path / "checkpoint"))
        rules = {
            "whole": hg.progress("v", slack_rows=SLACK),
            "prices": hg.progress("price", slack_rows=SLACK),
            "grouped": hg.progress("v", slack_rows=SLACK, by="router"),
        }
        for name, rule in rules.items():
            flow.stream(name, hg.sources.files(str(tmp_path / "in"), schema=DDL), progress=rule)
            flow.query(f"of_{name}", f"SELECT count(*) AS n [RANGE 1, WA {rule.attr}] FROM {name}")
        progress = flow.run_available().status()["progress"]
        groups = [[[r for r in rows if r["router"] == g] for rows in batches] for g in ("a", None)]
        wanted = {
            "whole": certain(batches, "v"),
            "prices": certain(batches, "price"),
            "grouped": min(certain(group, "v") for group in groups),
        }
        assert {name: float(progress[name]) for name in rules} == {name: float(w) for name, w in wanted.items()}
