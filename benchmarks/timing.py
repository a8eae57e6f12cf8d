"""Timing: whole queries into nowhere, in turns, so that noise of the machine meets all contenders alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

Contender = Callable[[], DataFrame]


def seconds(contender: Contender) -> float:
    """How long a query takes, from its text to its last row."""
    start = time.perf_counter()
    contender().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def in_turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, float]:
    """The median time of each contender over rounds in which each runs once; the first of them is not counted."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, contender in contenders.items():
            took = seconds(contender)
            if number > 0:
                times[name].append(took)
    return {name: statistics.median(taken) for name, taken in times.items()}
