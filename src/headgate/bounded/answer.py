"""The exact answer of a bound plan over bounded input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.bounded.lower import lower
from headgate.plan.logical.nodes import SAMPLING_RATE
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.plan import Node, Strategy


def answer(plan: Node, frames: Mapping[str, DataFrame], strategy: Strategy | None = None) -> DataFrame:
    """The result rows of a bound plan: its columns, then the sampling rate, which is 1 for an exact answer."""
    with plain_errors():
        rows = lower(plan, frames, strategy)
        return rows if SAMPLING_RATE in rows.columns else rows.selectExpr("*", f"1.0D AS {SAMPLING_RATE}")
