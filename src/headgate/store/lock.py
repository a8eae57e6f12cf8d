"""Which runs of this process have which checkpoints: two on one would be in each other's way."""

from __future__ import annotations

import threading
from typing import Protocol

from headgate.errors import FlowError

_LOCK = threading.Lock()
_TAKEN: dict[str, Claimant] = {}


class Claimant(Protocol):
    """A run, as far as others have to know of it."""

    name: str

    @property
    def holds(self) -> bool:
        """Whether it still works on its checkpoint; waits for the end of a batch if it has been stopped in one."""


def claim(place: str, by: Claimant) -> None:
    """Takes a checkpoint for a run, or raises an error if another one has it."""
    with _LOCK:
        other = _TAKEN.get(place)
        if other is not None and other is not by and other.holds:
            raise FlowError(
                f"flow {other.name} runs on the checkpoint {place} in this process already: stop that run first, or"
                f" give flow {by.name} a checkpoint of its own"
            )
        _TAKEN[place] = by


def release(place: str, by: Claimant) -> None:
    """Gives a checkpoint back."""
    with _LOCK:
        if _TAKEN.get(place) is by:
            del _TAKEN[place]
