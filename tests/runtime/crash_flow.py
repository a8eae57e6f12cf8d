"""A small flow to crash: its tuples, its queries, and what has to be in its sinks.

As a program it runs over the files of a folder that are there, and prints how many tuples it has counted:

    python -m tests.runtime.crash_flow SOURCE CHECKPOINT SINKS
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
from pyarrow import parquet
from tests.support import assert_same, collected

import headgate as hg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[int, str, int]

SCHEMA = "ts INT, k STRING, v INT"
WITHIN = 5
#: The sliding windows are so long that their state is merged on the way.
QUERIES = {
    "sliding": "SELECT k, count(*) AS n, sum(v) AS s [RANGE 200, SLIDE 20, WA ts] FROM S GROUP BY k",
    "tumbling": "SELECT max(v) AS hi [RANGE 10, SLIDE 10, WA ts] FROM S WHERE v > 2",
    "pairs": "SELECT a.ts AS at, b.ts AS bt, a.v FROM S AS a [RANGE 6, WA ts], S AS b [RANGE 4, WA ts]"
    " WHERE a.k = b.k AND a.v < b.v",
    "first": "SELECT DISTINCT ON (k, v) ts, k, v FROM S [RANGE 15, WA ts]",
}
#: What there has to be of each query by now; of the others, the windows that are closed.
DUE = {"pairs": "true", "first": "ts < {punctuation}"}


def batches(number: int = 12, rows: int = 20, step: int = 20) -> list[list[Row]]:
    """So many batches of disordered tuples, none of which comes too late; each batch gets a step further."""
    rng = random.Random(number)
    made = [(rng.randrange(number * step), rng.choice("abc"), rng.randrange(10)) for _ in range(number * rows)]
    made.sort(key=lambda row: row[0] + rng.uniform(0, WITHIN))
    return [made[i * rows : (i + 1) * rows] for i in range(number)]


def write_files(folder: Path, arriving: Sequence[Sequence[Row]]) -> None:
    """Writes a file for each batch, the older the earlier, as Spark takes them."""
    folder.mkdir()
    schema = pyarrow.schema({"ts": pyarrow.int32(), "k": pyarrow.string(), "v": pyarrow.int32()})
    for number, rows in enumerate(arriving):
        file = folder / f"{number:02d}.parquet"
        tuples = [dict(zip(schema.names, row, strict=True)) for row in rows]
        parquet.write_table(pyarrow.Table.from_pylist(tuples, schema), file)
        os.utime(file, (1_700_000_000 + number,) * 2)


def flow(spark: SparkSession, source: object, checkpoint: object, sinks: object) -> hg.Flow:
    """The queries over the files of a folder, one a batch, each with a folder for its answers."""
    made = hg.Flow(spark, "crash", str(checkpoint))
    files = hg.sources.files(str(source), schema=SCHEMA, max_files_per_batch=1)
    made.stream("S", files, progress=hg.progress("ts", within=WITHIN))
    for name, sql in QUERIES.items():
        made.query(name, sql)
        made.sink(name, hg.sinks.parquet(f"{sinks}/{name}"))
    return made


def check(spark: SparkSession, sinks: object, arrived: Sequence[Sequence[Row]]) -> None:
    """Fails unless all that the tuples allow to be answered was answered rightly, and once."""
    rows = [row for batch in arrived for row in batch]
    stream = spark.createDataFrame(rows, SCHEMA)
    punctuation = max(ts for ts, _, _ in rows) - WITHIN
    for name, sql in QUERIES.items():
        due = DUE.get(name, "window_end <= {punctuation}").format(punctuation=punctuation)
        expected = hg.evaluate(sql, S=stream).where(due)
        assert_same(collected(spark.read.parquet(f"{sinks}/{name}")), collected(expected))


if __name__ == "__main__":
    session = hg.session(master="local[2]", spark_sql_shuffle_partitions=2, spark_driver_memory="1g")
    made = flow(session, *sys.argv[1:])
    print("begun", flush=True)
    print(json.dumps(made.run_available().status()["rows"]), flush=True)
