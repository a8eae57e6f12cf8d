"""Aggregates in Python: an object with init, incr, merge and final."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Aggregator(Protocol):
    """The four steps of an aggregate. A state may be any picklable value; `incr` and `merge` return the new one."""

    def init(self) -> Any:
        """The state of no tuples at all."""

    def incr(self, state: Any, *args: Any) -> Any:
        """The state after one more tuple. Called only when no argument is NULL."""

    def merge(self, left: Any, right: Any) -> Any:
        """The state of two disjoint sets of tuples together."""

    def final(self, state: Any) -> Any:
        """The answer."""


STEPS = ("init", "incr", "merge", "final")
