"""The session: its settings, the names they go by, and what is said when there is no Java."""

from __future__ import annotations

import os
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from headgate.api import session as module
from headgate.api.session import java_home, session
from headgate.errors import Error

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_suits_a_laptop(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert spark.sparkContext.master == "local[2]"
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"


def test_workers_run_the_same_interpreter(spark: SparkSession) -> None:
    seen = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert seen == [sys.executable]
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_timestamps_come_back_as_written(spark: SparkSession) -> None:
    row = spark.sql("SELECT TIMESTAMP '2026-01-01 12:00:00' AS ts").first()
    assert row is not None
    assert row.ts == datetime(2026, 1, 1, 12)


@pytest.mark.parametrize("name", ["spark.sql.shuffle.partitions", "spark_sql_shuffle_partitions"])
def test_a_running_session_takes_what_is_asked_and_no_more(spark: SparkSession, name: str) -> None:
    before = dict(spark.conf.getAll)
    try:
        assert session(**{name: 5}) is spark
        assert spark.conf.getAll == before | {"spark.sql.shuffle.partitions": "5"}
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")


def test_what_is_fixed_at_the_start_stays(spark: SparkSession) -> None:
    assert session(master="local[1]", spark_driver_memory="1g") is spark
    assert spark.sparkContext.master == "local[2]"


def test_truth_values_are_written_as_spark_writes_them(spark: SparkSession) -> None:
    try:
        session(spark_sql_adaptive_enabled=False)
        assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")


def test_another_thread_gets_the_same_session(spark: SparkSession) -> None:
    found: list[SparkSession] = []
    thread = threading.Thread(target=lambda: found.append(session()))
    thread.start()
    thread.join()
    assert found == [spark]
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_setting_that_is_not_sparks_is_refused() -> None:
    with pytest.raises(Error, match="'cores'"):
        session(cores=4)


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[4, 2]", 4), ("local[*]", os.cpu_count())],
)
def test_shuffle_partitions_follow_the_cores(master: str, cores: int) -> None:
    assert module._local_defaults(master)["spark.sql.shuffle.partitions"] == str(cores)


def test_a_cluster_keeps_its_own_settings() -> None:
    assert module._local_defaults("spark://example:7077") == {}


@pytest.mark.parametrize(("memory", "heap"), [(4 << 30, "2048m"), (64 << 30, "8192m")])
def test_the_driver_gets_half_of_the_memory_up_to_a_cap(
    monkeypatch: pytest.MonkeyPatch, memory: int, heap: str
) -> None:
    monkeypatch.setattr(module, "_memory", lambda: memory)
    assert module._local_defaults("local[*]")["spark.driver.memory"] == heap


def fake_java(home: Path, version: str) -> Path:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    answer = f"    java.home = {home}\n    java.specification.version = {version}"
    command.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    command.chmod(0o755)
    return home


def test_java_home_wins_over_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "given", "21")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "17") / "bin"))
    assert java_home() == str(tmp_path / "given")


def test_an_old_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "given", "1.8")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "11") / "bin"))
    fake_java(tmp_path / "jvm" / "java-17", "17")
    monkeypatch.setattr(module, "JVM_HOMES", (str(tmp_path / "jvm" / "*"),))
    assert java_home() == str(tmp_path / "jvm" / "java-17")


def test_no_java_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "JVM_HOMES", ())
    with pytest.raises(Error, match=r"Java 17 or newer.*apt-get install") as caught:
        java_home()
    assert "\n" not in str(caught.value)
