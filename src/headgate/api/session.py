"""The Spark session: one call that starts Spark on this machine with settings that suit streams."""

from __future__ import annotations

import glob
import logging
import os
import re
import shutil
import subprocess
import sys
from numbers import Real
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headgate.errors import Error
from headgate.given import checked, refused
from headgate.spark.failures import plain_errors

JAVA_NEEDED = 17
JVM_HOMES = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)

_SHORT_NAMES = {"master": "spark.master", "app_name": "spark.app.name"}
_GIB = 1 << 30
_MOST_DRIVER_MEMORY = 8 * _GIB
#: The error that is raised says what failed. These loggers would print Java's stack beside it.
_STACK_LOGGERS = ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: Spark makes one method of all that is done with a row. Java would not compile a method of more than 8,000 bytes.
_HUGE_METHODS = "-XX:-DontCompileHugeMethods"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


@checked("hg.session", Error)
def session(**conf: object) -> SparkSession:
    """The Spark session of this process, started if there is none.

    A new session runs on all cores of this machine unless `master` says otherwise. Settings are given by
    Spark's own names, dotted or with underscores, or as `master` and `app_name`, and win over the defaults
    chosen here. If a session is running already it is returned with those of the settings asked for that a
    running session can change (the `spark.sql` ones); the rest are fixed once Spark has started.

    SQL in the session sees times in UTC. Timestamps collected into Python are `datetime` values in the time
    zone of the process, as Spark has it: set TZ=UTC before starting Python to have those in UTC too.

    >>> spark = session(master="local[2]", spark_sql_shuffle_partitions=2)
    >>> spark.conf.get("spark.sql.shuffle.partitions")
    '2'
    >>> session() is spark
    True
    """
    for logger in _STACK_LOGGERS:
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
    asked = {_setting(name): _text(name, value) for name, value in conf.items()}
    if (running := _running()) is not None:
        with plain_errors():
            for name, value in asked.items():
                if running.conf.isModifiable(name):
                    running.conf.set(name, value)
        return running

    # Under spark-submit the JVM runs already, and where and on what is for its command line to say.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ["JAVA_HOME"] = java_home()
        asked.setdefault("spark.master", "local[*]")
    settings = _defaults() | _local_defaults(asked.get("spark.master", "")) | asked
    if python := settings.get("spark.pyspark.python"):
        os.environ["PYSPARK_PYTHON"] = python

    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with plain_errors():
        return builder.getOrCreate()


def _running() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def java_home() -> str:
    """The home of a Java that Spark can run on: from JAVA_HOME, PATH or the usual places, in that order.

    >>> Path(java_home(), "bin", "java").exists()
    True
    """
    commands = [shutil.which("java")]
    if given := os.environ.get("JAVA_HOME"):
        commands.insert(0, f"{given}/bin/java")
    commands += [f"{home}/bin/java" for pattern in JVM_HOMES for home in sorted(glob.glob(pattern))]
    for command in commands:
        if command is not None and (home := _home_if_new_enough(command)) is not None:
            return home
    raise Error(
        f"Spark needs Java {JAVA_NEEDED} or newer, and none was found: install one "
        f"(Debian, Ubuntu: apt-get install openjdk-{JAVA_NEEDED}-jre-headless; "
        f"macOS: brew install openjdk@{JAVA_NEEDED}) or set JAVA_HOME"
    )


def _home_if_new_enough(command: str) -> str | None:
    # Java is asked for its home, because the command may be a link or a launcher somewhere else.
    try:
        answer = subprocess.run(
            [command, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True
        ).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    home = re.search(r"^\s*java\.home = (.+?)\s*$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (\d+)", answer, re.MULTILINE)
    if home is None or version is None or int(version[1]) < JAVA_NEEDED:
        return None
    return home[1]


def _setting(name: str) -> str:
    """Spark's name of a setting that may be written with underscores, as a keyword must be."""
    dotted = _SHORT_NAMES.get(name) or (name if "." in name else name.replace("_", "."))
    if not dotted.startswith("spark."):
        raise Error(f"unknown setting {name!r}: the names of Spark's settings begin with 'spark.' (or 'spark_')")
    return dotted


def _text(name: str, value: object) -> str:
    if not isinstance(value, str | Real | os.PathLike):
        raise refused(f"hg.session: {name}", value, "a text, a number, True or False", Error)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _defaults() -> dict[str, str]:
    return {
        "spark.app.name": "headgate",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Without statistics, which Spark's old form of times lacks, no file and no row group could be skipped.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # With the number of the stage in class names, the same code would be compiled again for each place in a plan,
        # and be cold there.
        "spark.sql.codegen.useIdInClassName": "false",
        # Batches run the same code again and again, some of it rarely. Spark would keep only a hundred classes.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Rows are held in memory for one batch. Packing them would take longer than reading them again.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # Otherwise each step of a plan first tells Spark where in Python it is made: half of all calls to the JVM.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} {_HUGE_METHODS}",
    }


def _local_defaults(master: str) -> dict[str, str]:
    """What holds for Spark on this machine only: a cluster has settings of its own."""
    if not master.startswith("local"):
        return {}
    return {
        # One task a core: more of them only add scheduling, which is most of what a small batch costs.
        "spark.sql.shuffle.partitions": str(_cores(master)),
        "spark.driver.memory": f"{_driver_memory() >> 20}m",
        # The loopback address is there without a network, and lets nobody else in.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Workers must be the interpreter that this process is, or they miss its packages.
        "spark.pyspark.python": sys.executable,
    }


def _cores(master: str) -> int:
    """The number of tasks that a local master runs at a time."""
    threads = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    match threads and (threads[1] or "1"):
        case None | "*":
            return os.cpu_count() or 1
        case count:
            return int(count)


def _driver_memory() -> int:
    """Half of the memory that this process may use, in bytes, capped: past that a heap gives long pauses."""
    return min(_memory() // 2, _MOST_DRIVER_MEMORY)


def _memory() -> int:
    try:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):
        sizes = [4 * _GIB]
    # A container may allow less than the machine has.
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(limit).read_text()))
        except (OSError, ValueError):
            continue
    return min(sizes)
