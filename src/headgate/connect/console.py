"""The console sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.connect.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ConsoleSink(Sink):
    """Prints answers to the terminal, for a first look."""

    rows: int = 20

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        print(f"{name}, batch {batch}")
        answers.show(self.rows, truncate=False)
