"""The memory sink: the flow keeps the answers itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headgate.connect.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class MemorySink(Sink):
    """Delivers to nobody: the flow keeps the answers, and `run.results` gives them."""

    kept_by_flow: ClassVar[bool] = True

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        """Does nothing."""
