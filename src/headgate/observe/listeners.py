"""What a listener is: a function of an event, or an object with a method for each kind of event it wants."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, TypeAlias

from headgate import given
from headgate.errors import FlowError
from headgate.observe.events import (
    BatchCommitted,
    BatchDecided,
    Event,
    FlowStarted,
    FlowStopped,
    PlanChanged,
    QueryResumed,
    QuerySuspended,
    SinkFailed,
    TuplesBad,
    TuplesLate,
    TuplesShed,
)

Hearing: TypeAlias = Callable[[Event], None]


class Listener:
    """Hears what happens in a flow: override the methods you want, and pass an object to `flow.listen`.

    `on_event` gets every event, before the method of its own kind does.

    >>> class Slow(Listener):
    ...     def on_batch(self, event):
    ...         if event.report.total_seconds > 5:
    ...             print(f"batch {event.report.batch} of {event.flow} was slow")
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in vars(cls):
            if name.startswith("on_") and name not in METHODS:
                near = difflib.get_close_matches(name, METHODS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(METHODS)}"
                raise FlowError(f"listener {cls.__name__}: no event calls {name}: {hint}")

    def on_event(self, event: Event) -> None:
        """Gets every event."""

    def on_started(self, event: FlowStarted) -> None:
        """A run began."""

    def on_decided(self, event: BatchDecided) -> None:
        """A batch was planned."""

    def on_batch(self, event: BatchCommitted) -> None:
        """A batch was committed."""

    def on_plan_changed(self, event: PlanChanged) -> None:
        """Queries came or went, or shedding began or ended."""

    def on_suspended(self, event: QuerySuspended) -> None:
        """A query was suspended."""

    def on_resumed(self, event: QueryResumed) -> None:
        """A query was resumed."""

    def on_late(self, event: TuplesLate) -> None:
        """Tuples came too late for a query."""

    def on_bad(self, event: TuplesBad) -> None:
        """Tuples of a stream could not be used."""

    def on_shed(self, event: TuplesShed) -> None:
        """Tuples were left out for a query."""

    def on_sink_failed(self, event: SinkFailed) -> None:
        """A sink raised an error."""

    def on_stopped(self, event: FlowStopped) -> None:
        """A run ended."""


_METHOD_OF: dict[type[Event], str] = {
    FlowStarted: "on_started",
    BatchDecided: "on_decided",
    BatchCommitted: "on_batch",
    PlanChanged: "on_plan_changed",
    QuerySuspended: "on_suspended",
    QueryResumed: "on_resumed",
    TuplesLate: "on_late",
    TuplesBad: "on_bad",
    TuplesShed: "on_shed",
    SinkFailed: "on_sink_failed",
    FlowStopped: "on_stopped",
}
#: The methods that events call.
METHODS = ("on_event", *_METHOD_OF.values())


def as_hearing(what: str, listener: object) -> Hearing:
    """The function that gives an event to a listener.

    >>> as_hearing("flow.listen: listener", 5)
    Traceback (most recent call last):
    headgate.errors.FlowError: flow.listen: listener=5: give a function of an event, or an object with on_batch, \
on_event or another method of hg.Listener
    """
    if isinstance(listener, type):
        raise given.refused(what, listener, f"an object of it, {listener.__name__}(...)")
    if any(callable(getattr(listener, name, None)) for name in METHODS):
        return lambda event: _give(listener, event)
    if callable(listener):
        return listener
    instead = "a function of an event, or an object with on_batch, on_event or another method of hg.Listener"
    raise given.refused(what, listener, instead)


def _give(listener: object, event: Event) -> None:
    for name in ("on_event", _METHOD_OF[type(event)]):
        method = getattr(listener, name, None)
        if method is not None:
            method(event)
