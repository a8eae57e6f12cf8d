"""What a batch did, for those who watch."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class BatchReport:
    """What a batch did."""

    batch: int
    rows: int
    seconds: dict[str, float]
    answers: dict[str, int]
    late: dict[str, int]
    state_rows: int
    state_bytes: int
    shed: dict[str, int] = field(default_factory=dict)
    """By query, the tuples that were left out."""
    dropped: dict[str, int] = field(default_factory=dict)
    """By query, the windows that are not answered."""
