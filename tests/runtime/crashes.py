"""Crashes in the middle of a batch, without the time that it takes to kill a process and begin another one."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from headgate.store import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The steps of a batch, about in the order in which it gets there.
STEPS = ("decided", "matched", "ingested", "closed", "kept", "delivered", "compacted", "committed")


class CrashError(Exception):
    """What stands for the end of the process."""


@contextlib.contextmanager
def crash_at(point: str) -> Iterator[list[str]]:
    """Has a batch crash at a step, or at "step:n" where it gets there the n-th time; gives the point if it did."""
    step, _, often = point.partition(":")
    reached: Counter[str] = Counter()
    hit: list[str] = []

    def stop(name: str) -> None:
        reached[name] += 1
        if name == step and reached[name] == int(often or 1):
            hit.append(point)
            raise CrashError(point)

    own = [m for n, m in sys.modules.items() if n.startswith("headgate.") and vars(m).get("reach") is faults.reach]
    with pytest.MonkeyPatch.context() as patch:
        for module in own:
            patch.setattr(module, "reach", stop)
        with contextlib.suppress(CrashError):
            yield hit
