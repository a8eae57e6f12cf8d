"""Brings events to one listener, in a thread of its own: a slow listener, or one that raises, holds nobody up."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.observe.events import Event
    from headgate.observe.listeners import Hearing

_log = logging.getLogger(__name__)
#: How many events wait for a listener; after that, the oldest go.
ROOM = 1000


class Listening:
    """A listener that is told of a flow. `stop` ends that."""

    def __init__(self, hearing: Hearing, name: str, leave: Callable[[Listening], None], room: int = ROOM) -> None:
        self.name = name
        self._hearing, self._leave, self._room = hearing, leave, room
        self._waiting: deque[Event] = deque()
        self._missed = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ends = self._gone = self._has_raised = False

    def stop(self) -> None:
        """Tells the listener nothing more, not even what waits for it."""
        self._leave(self)
        with self._changed:
            self._gone = True
            self._waiting.clear()
            self._finish()

    def offer(self, event: Event) -> None:
        """Takes an event for the listener, and returns at once."""
        with self._changed:
            if self._gone:
                return
            if len(self._waiting) == self._room:
                self._waiting.popleft()
                self._missed += 1
            self._waiting.append(event)
            if self._thread is None:
                thread = threading.Thread(target=self._work, daemon=True, name=f"headgate-{self.name}")
                with suppress(RuntimeError):  # No thread starts any more while Python ends.
                    thread.start()
                    self._thread = thread
            self._changed.notify_all()

    def finish(self, seconds: float) -> None:
        """Ends the thread once all that waits was told, and waits at most so many seconds for that."""
        with self._changed:
            self._finish()
            if self._thread is None or self._thread is threading.current_thread():
                return
            if not self._changed.wait_for(lambda: self._thread is None, seconds) and seconds > 0:
                _log.warning(
                    "listener %s is still busy as the flow ends, and %d events wait for it",
                    self.name,
                    len(self._waiting),
                )

    def _finish(self) -> None:
        self._ends = self._thread is not None
        self._changed.notify_all()

    def _work(self) -> None:
        while (event := self._next()) is not None:
            try:
                self._hearing(event)
            except (Exception, SystemExit):
                if not self._has_raised:
                    self._has_raised = True
                    _log.warning(
                        "flow %s: listener %s raised an error; it is told of further events, and further errors of it"
                        " are not logged",
                        event.flow,
                        self.name,
                        exc_info=True,
                    )

    def _next(self) -> Event | None:
        """The next event for the listener; None when the thread may end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ends)
            if not self._waiting:
                self._thread, self._ends = None, False
                self._changed.notify_all()
                return None
            missed, self._missed = self._missed, 0
            return replace(self._waiting.popleft(), missed=missed)
