"""Checks for the parameters of generated packets."""

from __future__ import annotations

from collections.abc import Iterable

from headgate import given
from headgate.errors import Error


def whole_number(name: str, value: object) -> int:
    """A parameter that has to be a whole number."""
    return given.whole(f"packets: {name}", value, "a whole number", error=Error)


def number(name: str, value: object) -> float:
    """A parameter that has to be a number."""
    return given.number(f"packets: {name}", value, "a number", lambda _: True, error=Error)


def pairs_of(name: str, pairs: Iterable[tuple[object, object]]) -> list[tuple[float, float]]:
    """A parameter that has to be pairs of numbers."""
    try:
        return [(number(name, first), number(name, second)) for first, second in pairs]
    except (TypeError, ValueError):
        raise given.refused(f"packets: {name}", pairs, "pairs of numbers, such as [(60, 1000)]", Error) from None


def require(holds: bool, what: str) -> None:
    """Raises an error that says what parameters must be, unless they are."""
    if not holds:
        raise Error(f"packets: {what}")
