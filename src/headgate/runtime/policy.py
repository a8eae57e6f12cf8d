"""What a query promises when more arrives than can be processed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exact:
    """Every answer, none of them touched."""


Policy = Exact


def exact() -> Exact:
    """Never shed: every window is answered exactly."""
    return Exact()
