"""Announces what happens to a run as a whole: its start, its changes, its failure and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.observe.broadcast import Broadcast, Listeners
from headgate.observe.events import FlowStarted, FlowStopped, PlanChanged, SinkFailed
from headgate.observe.status import Picture, error_words

if TYPE_CHECKING:
    from headgate.batch.engine import Engine
    from headgate.errors import Error
    from headgate.observe.delivery import Listening


class Announcer:
    """Tells the status and the listeners of one run."""

    def __init__(self, flow: str, run_id: str, of_flow: Listeners) -> None:
        self.picture = Picture()
        self._broadcast = Broadcast(flow, run_id, self.picture, of_flow)
        self.tell = self._broadcast.tell
        self._begun = self._ended = False

    def listen(self, listener: object) -> Listening:
        """Adds a listener to this run."""
        return self._broadcast.listeners.add("run.listen", listener)

    def started(self, engine: Engine, id_: str, resumed_after: int | None) -> None:
        """Tells that the run begins."""
        self._begun = True
        self.tell(
            FlowStarted(
                id=id_,
                resumed_after=resumed_after,
                streams=tuple(engine.program.watches),
                queries=tuple(engine.program.queries),
                standing=engine.standing(),
            )
        )

    def changed(self, before: Engine, after: Engine) -> None:
        """Tells which queries came and went. One that was dropped and added again did both."""
        old, new = before.program.queries, after.program.queries
        dropped = tuple(name for name, query in old.items() if new.get(name) is not query)
        added = tuple(name for name, query in new.items() if old.get(name) is not query)
        words = [f"{name} was dropped" for name in dropped] + [f"{name} was added" for name in added]
        self.tell(
            PlanChanged(
                batch=after.manifest.batch + 1,
                reason=", ".join(words) or "the same queries were asked for again",
                shedding=before.dropped is not None and before.dropped.shedding,
                added=added,
                dropped=dropped,
                standing=after.standing(),
            )
        )

    def failed(self, engine: Engine, error: Error) -> None:
        """Tells of a sink, if it was a sink that made the run fail."""
        if error.output is not None:
            batch, output = engine.manifest.batch + 1, error.output
            self.tell(SinkFailed(batch=batch, query=error.query, stream=error.stream, output=output, error=str(error)))

    def ended(self, engine: Engine, error: Error | None) -> None:
        """Tells, once, that the run has ended."""
        if self._begun and not self._ended:
            self._ended = True
            words = error_words(error) if error is not None else None
            self.tell(FlowStopped(batch=engine.manifest.batch, error=words))
        self.finish(0)

    def finish(self, seconds: float) -> None:
        """Lets every listener have what waits for it; waits at most so many seconds."""
        self._broadcast.finish(seconds)
