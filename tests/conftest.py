"""What all tests share: the time zone, one small Spark session, and how Hypothesis searches."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Timestamps collected from Spark are in the process's time zone: it has to be set before Spark starts.
os.environ["TZ"] = "UTC"
time.tzset()

settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("fuzz", settings.get_profile("default"), derandomize=False)
settings.load_profile("fuzz" if "HEADGATE_FUZZ" in os.environ else "default")


#: Tests run hundreds of tiny queries, each with a plan of its own. To compile them, and to plan them anew at every
#: shuffle, would take most of the time.
_INTERPRETED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session on two cores, the same one for all tests."""
    from headgate.api.session import session

    running = session(
        master="local[2]",
        app_name="headgate-tests",
        spark_sql_shuffle_partitions=2,
        spark_ui_retainedStages=100,  # Some tests look through them all.
    )
    yield running
    running.stop()


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Spark without code generation, for what is tested many times over."""
    before: dict[str, Any] = {name: spark.conf.get(name) for name in _INTERPRETED}
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)
