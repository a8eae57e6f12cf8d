"""Tells what happens in a run to its status, at once, and to all listeners, each in its own time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from headgate.observe.delivery import Listening
from headgate.observe.events import Event
from headgate.observe.listeners import Hearing, as_hearing


class Listeners:
    """The listeners of a flow, or of one run of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.all: tuple[Listening, ...] = ()

    def add(self, what: str, listener: object) -> Listening:
        """Adds a listener."""
        name = getattr(listener, "__qualname__", type(listener).__qualname__)
        added = Listening(as_hearing(f"{what}: listener", listener), name, self._remove)
        with self._lock:
            self.all = (*self.all, added)
        return added

    def _remove(self, listening: Listening) -> None:
        with self._lock:
            self.all = tuple(own for own in self.all if own is not listening)


def _clock() -> datetime:
    return datetime.now(UTC)


class Broadcast:
    """Tells the events of one run, all in one order.

    `first` hears each event before `tell` returns, so that what it answers is never older than the run.
    """

    def __init__(
        self, flow: str, run_id: str, first: Hearing, of_flow: Listeners, clock: Callable[[], datetime] = _clock
    ) -> None:
        self.listeners = Listeners()
        self._flow, self._run_id, self._first, self._of_flow, self._clock = flow, run_id, first, of_flow, clock
        self._lock = threading.Lock()

    def tell(self, event: Event) -> None:
        """Tells an event to everyone. Waits for no listener."""
        with self._lock:
            now = self._clock().isoformat(timespec="microseconds")
            event = replace(event, flow=self._flow, run_id=self._run_id, timestamp=now)
            self._first(event)
            for listening in self._everyone():
                listening.offer(event)

    def finish(self, seconds: float) -> None:
        """Lets every listener have what waits for it; waits at most so many seconds for all of them."""
        everyone, until = self._everyone(), time.monotonic() + seconds
        for listening in everyone:
            listening.finish(0)
        for listening in everyone:
            listening.finish(max(until - time.monotonic(), 0.0))

    def _everyone(self) -> tuple[Listening, ...]:
        return (*self._of_flow.all, *self.listeners.all)
