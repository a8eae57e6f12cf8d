"""Set-up of the conformance suite: user-defined aggregates."""

from __future__ import annotations

import pytest

import headgate as hg


class Product:
    """The product of all values."""

    def init(self) -> float:
        return 1.0

    def incr(self, state: float, x: float) -> float:
        return state * x

    def merge(self, left: float, right: float) -> float:
        return left * right

    def final(self, state: float) -> float:
        return state


class Span:
    """The distance between the least and the greatest of all arguments, over two columns."""

    def init(self) -> tuple[float, float]:
        return float("inf"), float("-inf")

    def incr(self, state: tuple[float, float], x: int, y: int) -> tuple[float, float]:
        return min(state[0], x, y), max(state[1], x, y)

    def merge(self, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
        return min(left[0], right[0]), max(left[1], right[1])

    def final(self, state: tuple[float, float]) -> float | None:
        return state[1] - state[0] if state[0] <= state[1] else None


@pytest.fixture(scope="session", autouse=True)
def user_aggregates() -> None:
    hg.register_aggregate("product", Product(), returns="double")
    hg.register_aggregate("span", Span(), returns="double")
