"""Places in a batch at which a test may stop the flow, or do something meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

_STEP = os.environ.get("HEADGATE_KILL_AT", "")
_reached: dict[str, int] = {}
#: These are called with the name of each step that is reached. `headgate.testing` puts them here.
watchers: list[Callable[[str], object]] = []


def reach(step: str) -> None:
    """Marks that a step was reached. HEADGATE_KILL_AT=step:n kills the process when it is reached the n-th time."""
    for watcher in tuple(watchers):
        watcher(step)
    if not _STEP:
        return
    _reached[step] = _reached.get(step, 0) + 1
    if f"{step}:{_reached[step]}" == _STEP:
        os.kill(os.getpid(), signal.SIGKILL)
