"""A flow that is killed, wherever and however often, delivers each answer once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.crash_flow import batches, check, write_files

from headgate.testing import CRASH_POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
BATCHES = batches()
ALL = {"S": sum(map(len, BATCHES))}
#: So many kills at random, and a flow that is killed at each step, which takes minutes: make soak.
SOAK = int(os.environ.get("HEADGATE_SOAK", 0))
#: The kills of a flow, each of a process that goes on where the one before was killed.
KILLS = [
    ("matched:2", "delivered:2", "compacted:1"),
    *((f"{step}:{1 if step == 'compacted' else 4}",) for step in CRASH_POINTS if SOAK),
]
#: Kills by the clock come at most so many seconds after the flow has begun.
LATEST = 6.0


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    write_files(folder, BATCHES)
    return folder


def run(source: Path, folder: Path, kill_at: str = "", kill_after: float | None = None) -> Any:
    """Runs the program in a folder: gives what it counted if it came to its end, and None if it was killed."""
    folder.mkdir(exist_ok=True)
    log, places = folder / "log", (source, folder / "checkpoint", folder / "sinks")
    command = [sys.executable, "-m", "tests.runtime.crash_flow", *map(str, places)]
    # A program that is killed after a few seconds has no use for well compiled code.
    environment = {**os.environ, "HEADGATE_KILL_AT": kill_at, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        begun = process.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(kill_after)
        # The JVM is a process of its own, which must not live on.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        assert begun == "begun\n", log.read_text()
        assert code in (0, -signal.SIGKILL), log.read_text()
        return json.loads(process.stdout.read()) if code == 0 else None


@pytest.mark.parametrize("kills", KILLS, ids=" ".join)
def test_a_flow_that_is_killed_again_and_again_answers_once(
    spark: SparkSession, source: Path, tmp_path: Path, kills: tuple[str, ...]
) -> None:
    for step in kills:
        assert run(source, tmp_path / "flow", kill_at=step) is None
    assert run(source, tmp_path / "flow") == ALL
    check(spark, tmp_path / "flow/sinks", BATCHES)


if SOAK:

    def test_a_flow_may_be_killed_at_any_time(spark: SparkSession, source: Path, tmp_path: Path) -> None:
        rng = random.Random(SOAK)
        kills = flows = 0
        while kills < SOAK:
            folder, counted = tmp_path / f"flow{flows}", None
            while counted is None:
                if rng.random() < 0.5:
                    counted = run(source, folder, kill_at=f"{rng.choice(CRASH_POINTS)}:{rng.randint(1, 3)}")
                else:
                    counted = run(source, folder, kill_after=rng.uniform(0, LATEST))
                kills += counted is None
            assert counted == ALL
            check(spark, folder / "sinks", BATCHES)
            flows += 1
