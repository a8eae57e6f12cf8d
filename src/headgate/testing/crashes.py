"""The named points of a batch, and what a test does there: crash the flow, or step in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headgate import given
from headgate.store import faults

#: The named points of a batch, roughly in the order in which it reaches them.
CRASH_POINTS = ("decided", "matched", "ingested", "closed", "kept", "delivered", "compacted", "committed")


class KilledError(BaseException):
    """Stands for the end of the process: like a real one, no `except Exception` sees it."""


@contextmanager
def at(point: str, act: Callable[[], object]) -> Iterator[list[str]]:
    """Calls a function when a batch reaches a point: "ingested", or "ingested:2" for the second time it does.

    The list that it gives holds the point once it was reached, and is empty before. The function is called once. It may
    run another flow, move a clock, or raise what the batch is to fail with.
    """
    step, _, often = point.partition(":")
    if step not in CRASH_POINTS or (":" in point and not (often.isdigit() and int(often))):
        raise given.refused(
            "at: point", point, f"one of {', '.join(CRASH_POINTS)}, or 'ingested:2' for the second time"
        )
    hit: list[str] = []
    reached = 0

    def watch(name: str) -> None:
        nonlocal reached
        reached += name == step
        if name == step and reached == int(often or 1) and not hit:
            hit.append(point)
            act()

    faults.watchers.append(watch)
    try:
        yield hit
    finally:
        faults.watchers.remove(watch)


def kill() -> None:
    """Ends the batch as the end of the process would."""
    raise KilledError
