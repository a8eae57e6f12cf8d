"""The door for sinks: what Headgate asks of anything that takes answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Sink(ABC):
    """Takes the answers of a query, batch by batch. Subclass it and write `deliver`.

    After a crash the last batch may come again, with the same answers under the same name and batch number. Let it
    replace what came before, and every answer is delivered exactly once.
    """

    kept_by_flow: ClassVar[bool] = False
    """Whether the flow itself keeps the answers, as it does for a query without a sink."""

    @abstractmethod
    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:
        """Takes the answers of one batch. `name` is the name of the query, for late tuples "talkers-late-Main"."""

    def delivered(self, spark: SparkSession, name: str) -> DataFrame | None:  # noqa: ARG002
        """All that was delivered under names that begin with `name`, for `run.results`; None if there is nothing yet.

        Leave it out if the sink cannot be read.
        """
        return None

    def check(self, spark: SparkSession, name: str) -> None:  # noqa: B027
        """Raises an error if the sink cannot work; called when it is added to the query of this name."""

    def describe(self) -> str:
        """What `explain` calls the sink, such as "parquet 'out/talkers'"."""
        return type(self).__name__.removesuffix("Sink").lower()

    @property
    def readable(self) -> bool:
        """Whether what was delivered can be read back: so if the class has a `delivered` of its own."""
        return type(self).delivered is not Sink.delivered
