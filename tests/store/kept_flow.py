"""Flows with a query for each kind of state, and the program that keeps checkpoints of them. See README.md.

python -m tests.store.kept_flow LAYOUT
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
from pyarrow import parquet

import headgate as hg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from headgate.api.run import Run
    from headgate.shed.controller import Overload

HERE = Path(__file__).parent
#: The files of each stream, and how many of them a kept checkpoint has read. Each is a batch.
FILES, READ = 6, 3
ROWS = 15
#: The tuples of each file cover so much of `ts`, and one may be so far behind another one of its router.
STEP, WITHIN = 20, 5
#: How far the tuples of each router are behind.
ROUTERS = {"north": 0, "south": 15}
#: Stands in an archive for the folder that it was made in.
FOLDER = "/folder-of-the-archive"

TYPES = {
    "S": {"ts": pyarrow.int32(), "router": pyarrow.string(), "k": pyarrow.string(), "v": pyarrow.int32()},
    "T": {"ts": pyarrow.timestamp("us", "UTC"), "k": pyarrow.string(), "v": pyarrow.int32()},
}
SCHEMAS = {"S": "ts INT, router STRING, k STRING, v INT", "T": "ts TIMESTAMP, k STRING, v INT"}
QUERIES = {
    "sliding": "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS mean [RANGE 60, SLIDE 20, WA ts] FROM S GROUP BY k",
    "holistic": "SELECT count(DISTINCT v) AS n, max(k) AS last [RANGE 30, SLIDE 10, WA ts] FROM S",
    "landmark": "SELECT max(v) AS hi, count(*) AS n [RANGE ALL, SLIDE 20, WA ts] FROM S",
    "nested": "SELECT max(n) AS most [RANGE 40, SLIDE 20] FROM"
    " (SELECT k, count(*) AS n [RANGE 20, SLIDE 20, WA ts] FROM S GROUP BY k)",
    "pairs": "SELECT a.ts AS at, b.ts AS bt, a.v FROM S AS a [RANGE 6, WA ts], S AS b [RANGE 4, WA ts]"
    " WHERE a.k = b.k AND a.v < b.v",
    "some_pairs": "SELECT a.ts AS at, b.ts AS bt, a.v FROM S AS a [RANGE 9, WA ts], S AS b [RANGE 9, WA ts]"
    " WHERE a.k = b.k",
    "of_pairs": "SELECT count(*) AS n [RANGE 20, SLIDE 20, WA at] FROM"
    " (SELECT a.ts AS at, b.ts AS bt FROM S AS a [RANGE 5, WA ts], S AS b [RANGE 5, WA ts] WHERE a.v = b.v)",
    "first": "SELECT DISTINCT ON (k, v) ts, k, v FROM S [RANGE 15, WA ts]",
    "by_rows": "SELECT sum(v) AS s [RANGE 12 ROWS, SLIDE 5 ROWS] FROM S",
    "by_key_rows": "SELECT k, sum(v) AS s [RANGE 6 ROWS, SLIDE 4 ROWS, WA row_num, PA k] FROM S GROUP BY k",
    "by_tuple": "SELECT max(v) AS hi, count(*) AS n [RANGE 6, RATTR ts, SLIDE 2 rows, SATTR row_num] FROM S",
    "by_rank": "SELECT sum(v) AS s [RANGE 9, RATTR ts, SLIDE 3 rows, SATTR rank(ts)] FROM S",
    "sampled": "SELECT k, count(*) AS n, sum(v) AS s [RANGE 40, SLIDE 20, WA ts] FROM S GROUP BY k",
    "unloaded": "SELECT count(*) AS n, max(v) AS hi [RANGE 20, SLIDE 20, WA ts] FROM S",
    "thinned": "SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM S GROUP BY k",
    "late": "SELECT k, sum(v) AS s [RANGE 20 seconds, SLIDE 10 seconds, WA ts] FROM T GROUP BY k",
}
POLICIES: dict[str, Any] = {
    "some_pairs": hg.sample(rate=0.5),
    "sampled": hg.estimate(rate=0.5),
    "unloaded": hg.estimate(),
    "thinned": hg.subset(gap=3, drop=0.5),
}
#: The queries with a sink. The flow keeps the answers of the others itself.
TO_FILES = ("sliding", "pairs")


@dataclass(frozen=True)
class Kept:
    """How a flow runs, and how the run ends that leaves its checkpoint."""

    queries: tuple[str, ...]
    overload: Overload | None = None
    kill_at: str = ""
    """The point in the first batch that is not committed. Without one, the run ends after a commit."""

    @property
    def files(self) -> int:
        """How many files of each stream an archive has."""
        return READ + bool(self.kill_at)


FLOWS = {
    "exact": Kept(tuple(QUERIES), kill_at="delivered:1"),
    # So much time is allowed that the load is watched, and nothing is shed for it.
    "watched": Kept(("sliding", "late", *POLICIES), hg.overload(target="1 hour")),
}


def write_files(folder: Path, numbers: Sequence[int]) -> None:
    """Writes these files of each stream, the older the earlier, as Spark takes them."""
    for stream, types in TYPES.items():
        (folder / stream).mkdir(exist_ok=True)
        for number in numbers:
            rows = [dict(zip(types, row, strict=True)) for row in arrived_in(stream, number)]
            file = folder / stream / f"{number:02d}.parquet"
            parquet.write_table(pyarrow.Table.from_pylist(rows, pyarrow.schema(types)), file)
            os.utime(file, (1_700_000_000 + number,) * 2)


def arrived_in(stream: str, number: int) -> list[tuple[Any, ...]]:
    """The tuples of a file. Of stream T some are late, and one has no place at all."""
    rng = random.Random(f"{stream} {number}")
    made: list[tuple[Any, ...]] = []
    for row in range(ROWS):
        at = (number + 1) * STEP + row * STEP // ROWS - rng.randrange(WITHIN + 1)
        k, v = rng.choice("abc"), rng.randrange(10)
        if stream == "S":
            router = rng.choice([*ROUTERS])
            made.append((at - ROUTERS[router], router, k, v))
        else:
            late = 2 * STEP if row in (4, 9) else 0
            made.append((datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(seconds=at - late), k, v))
    return made if stream == "S" else [*made, (None, "a", 1)]


def run(spark: SparkSession, folder: Path, kept: Kept) -> Run:
    """Runs a flow over the files in a folder, one of each stream a batch."""
    made = hg.Flow(spark, "kept", folder / "checkpoint")
    rules = {"S": hg.progress("ts", within=WITHIN, by="router"), "T": hg.progress("ts", within=f"{WITHIN} seconds")}
    for name, rule in rules.items():
        source = hg.sources.files(str(folder / name), schema=SCHEMAS[name], max_files_per_batch=1)
        made.stream(name, source, progress=rule)
    for name in kept.queries:
        made.query(name, QUERIES[name], policy=POLICIES.get(name))
        if name in TO_FILES:
            made.sink(name, hg.sinks.parquet(f"{folder}/sinks/{name}"))
    made.sink("late", hg.sinks.memory(), output="late")
    return made.run_available(overload=kept.overload)


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a kept checkpoint with its files, and makes its paths those of the folder."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    _rewrite(folder, FOLDER, str(folder))


def keep(name: str, archive: Path) -> None:
    """Runs a flow to where its checkpoint is kept, and packs what it leaves."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(folder, range(READ))
        _run_alone(name, folder)
        if kill_at := FLOWS[name].kill_at:
            write_files(folder, [READ])
            _run_alone(name, folder, kill_at)
        _rewrite(folder, str(folder), FOLDER)
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            for file in sorted(folder.rglob("*")):
                packed.add(file, file.relative_to(folder), recursive=False, filter=_nobody)


def _run_alone(name: str, folder: Path, kill_at: str = "") -> None:
    """Runs a flow as a process of its own, which may be killed."""
    command = [sys.executable, "-m", "tests.store.kept_flow", name, str(folder)]
    done = subprocess.run(command, check=False, env={**os.environ, "HEADGATE_KILL_AT": kill_at})
    expected = -signal.SIGKILL if kill_at else 0
    if done.returncode != expected:
        sys.exit(f"the flow {name} ended with {done.returncode} instead of {expected}")


def _rewrite(folder: Path, old: str, new: str) -> None:
    """Writes other paths into the files of a checkpoint."""
    for file in (folder / "checkpoint").rglob("*"):
        if file.is_file() and old.encode() in (content := file.read_bytes()):
            file.write_bytes(content.replace(old.encode(), new.encode()))


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member of an archive without what it tells of the machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _main(what: str, folder: str = "") -> None:
    if not folder:
        for name in FLOWS:
            keep(name, HERE / f"checkpoint-{what}-{name}.tar.xz")
        return
    socket.gethostname = lambda: "a-machine"  # A checkpoint may name the machine that wrote it.
    spark = hg.session(
        master="local[2]",
        spark_sql_shuffle_partitions=1,
        spark_driver_memory="1g",
        spark_sql_codegen_wholeStage="false",
        spark_sql_codegen_factoryMode="NO_CODEGEN",
    )
    print(run(spark, Path(folder), FLOWS[what]).status()["rows"])


if __name__ == "__main__":
    _main(*sys.argv[1:])
