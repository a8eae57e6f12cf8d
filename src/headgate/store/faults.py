"""Places in a batch at which a test may have the process killed."""

from __future__ import annotations

import os
import signal

_STEP = os.environ.get("HEADGATE_KILL_AT", "")
_reached: dict[str, int] = {}


def reach(step: str) -> None:
    """Marks that a step was reached. HEADGATE_KILL_AT=step:n kills the process when it is reached the n-th time."""
    if not _STEP:
        return
    _reached[step] = _reached.get(step, 0) + 1
    if f"{step}:{_reached[step]}" == _STEP:
        os.kill(os.getpid(), signal.SIGKILL)
