"""Listeners that are slow, that raise, and that go: they hurt nobody, and the others hear everything."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

import headgate as hg
from headgate.observe.broadcast import Broadcast, Listeners
from headgate.observe.delivery import Listening
from headgate.observe.events import Event, FlowStopped, TuplesLate
from headgate.observe.listeners import METHODS, Listener, as_hearing

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AGES = 60.0


def late(count: int) -> TuplesLate:
    return TuplesLate(batch=0, query="talkers", count=count)


def counts(events: list[Event]) -> list[int]:
    return [event.count for event in events if isinstance(event, TuplesLate)]


def broadcast(first: Callable[[Event], None] = lambda _: None) -> tuple[Broadcast, Listeners]:
    of_flow = Listeners()
    return Broadcast("netmon", "run-1", first, of_flow, clock=lambda: NOON), of_flow


class Stuck:
    """A listener that waits in its first event until it is released."""

    def __init__(self) -> None:
        self.entered, self.released, self.heard = threading.Event(), threading.Event(), list[Event]()

    def __call__(self, event: Event) -> None:
        self.entered.set()
        assert self.released.wait(AGES)
        self.heard.append(event)


@contextmanager
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    found: list[str] = []
    with caplog.at_level(logging.WARNING, "headgate"):
        yield found
    found.extend(record.getMessage() for record in caplog.records)


def test_everyone_hears_everything_in_one_order_with_the_header_filled_in() -> None:
    at_once: list[Event] = []
    run, of_flow = broadcast(at_once.append)
    heard: list[list[Event]] = [[], [], []]
    of_flow.add("flow.listen", heard[0].append)
    run.listeners.add("run.listen", heard[1].append)
    for count in range(500):
        run.tell(late(count))
    of_flow.add("flow.listen", heard[2].append)  # From here on.
    run.tell(FlowStopped(batch=3, error=None))
    assert len(at_once) == 501
    run.finish(AGES)
    assert heard[:2] == [at_once, at_once]
    assert heard[2] == at_once[-1:]
    assert (at_once[7].flow, at_once[7].run_id) == ("netmon", "run-1")
    assert at_once[7].timestamp == "2026-01-01T12:00:00.000000+00:00"


def test_a_slow_listener_loses_the_oldest_and_is_told_how_many() -> None:
    stuck = Stuck()
    slow = Listening(stuck, "slow", leave=lambda _: None, room=3)
    slow.offer(late(0))
    assert stuck.entered.wait(AGES)  # It has the first event; the others wait.
    for count in range(1, 11):
        slow.offer(late(count))
    stuck.released.set()
    slow.finish(AGES)
    assert counts(stuck.heard) == [0, 8, 9, 10]
    assert [event.missed for event in stuck.heard] == [0, 7, 0, 0]


def test_a_listener_that_is_stuck_holds_up_neither_the_flow_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    run, of_flow = broadcast()
    stuck, heard = Stuck(), list[Event]()
    of_flow.add("flow.listen", stuck)
    of_flow.add("flow.listen", heard.append)
    with logged(caplog) as said:
        for count in range(3):
            run.tell(late(count))
        assert stuck.entered.wait(AGES)
        run.finish(0.2)
    assert counts(heard) == [0, 1, 2]
    assert said == ["listener Stuck is still busy as the flow ends, and 2 events wait for it"]
    stuck.released.set()
    run.finish(AGES)
    assert counts(stuck.heard) == [0, 1, 2]


def test_a_listener_that_raises_is_logged_once_and_hears_further_events(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[Event] = []

    class Broken:
        def on_late(self, event: TuplesLate) -> None:
            tried.append(event)
            if event.count % 2:
                raise SystemExit("gone")
            raise ValueError("no room")

    run, of_flow = broadcast()
    heard: list[Event] = []
    of_flow.add("flow.listen", Broken())
    of_flow.add("flow.listen", heard.append)
    with logged(caplog) as said:
        for count in range(4):
            run.tell(late(count))
        run.finish(AGES)
    assert (counts(tried), counts(heard)) == ([0, 1, 2, 3], [0, 1, 2, 3])
    (line,) = said
    assert line.startswith("flow netmon: listener ")
    assert "Broken raised an error" in line
    assert caplog.records[0].exc_info is not None


def test_a_listener_that_stopped_listening_hears_no_more() -> None:
    run, of_flow = broadcast()
    stuck, heard = Stuck(), list[Event]()
    goes = of_flow.add("flow.listen", stuck)
    of_flow.add("flow.listen", heard.append)
    for count in range(3):
        run.tell(late(count))
    assert stuck.entered.wait(AGES)
    goes.stop()  # What waits for it goes too.
    run.tell(late(3))
    goes.offer(late(4))  # As by a thread that was telling just then.
    stuck.released.set()
    goes.finish(AGES)
    run.finish(AGES)
    assert (counts(stuck.heard), counts(heard)) == ([0], [0, 1, 2, 3])


def test_a_listener_may_end_the_run_itself() -> None:
    run, of_flow = broadcast()
    done = threading.Event()

    def stops(_: Event) -> None:
        run.finish(AGES)  # As run.stop() does: it must not wait for its own thread.
        done.set()

    of_flow.add("flow.listen", stops)
    run.tell(late(0))
    assert done.wait(AGES)
    run.finish(AGES)


def test_one_run_after_another_has_the_same_listeners() -> None:
    first, of_flow = broadcast()
    heard: list[Event] = []
    of_flow.add("flow.listen", heard.append)
    first.tell(late(1))
    first.finish(AGES)
    second = Broadcast("netmon", "run-2", lambda _: None, of_flow, clock=lambda: NOON)
    second.tell(late(2))
    second.finish(AGES)
    assert [(event.run_id, event.count) for event in heard if isinstance(event, TuplesLate)] == [
        ("run-1", 1),
        ("run-2", 2),
    ]


def test_no_thread_stays_after_a_run() -> None:
    run, of_flow = broadcast()
    threads: list[threading.Thread] = []
    of_flow.add("flow.listen", lambda _: threads.append(threading.current_thread()))
    run.tell(late(0))
    run.tell(late(1))
    run.finish(AGES)
    assert threads[0] is threads[1] is not threading.current_thread()
    threads[0].join(AGES)
    assert not threads[0].is_alive()


class TestWhatAListenerIs:
    @pytest.mark.parametrize("listener", [5, None, "print", object()])
    def test_others_are_refused(self, listener: object) -> None:
        with pytest.raises(hg.FlowError, match="give a function of an event, or an object with on_batch"):
            as_hearing("flow.listen: listener", listener)

    def test_a_class_is_no_object(self) -> None:
        with pytest.raises(hg.FlowError, match=r"listener=Listener: give an object of it, Listener\(...\)"):
            as_hearing("flow.listen: listener", Listener)

    def test_a_method_that_no_event_calls_is_refused(self) -> None:
        with pytest.raises(hg.FlowError, match="no event calls on_batches: did you mean on_batch"):

            class Mine(Listener):
                def on_batches(self, event: Event) -> None: ...

    def test_each_event_calls_on_event_and_a_method_of_its_own(self) -> None:
        kinds = [kind for kind in Event.__subclasses__() if kind.__module__ == hg.events.__name__]
        assert len(METHODS) == 1 + len(kinds)
        called: list[str] = []

        class Both(Listener):
            def on_event(self, event: Event) -> None:
                called.append(f"on_event {type(event).__name__}")

            def on_late(self, event: TuplesLate) -> None:
                called.append(f"on_late {event.count}")

        as_hearing("flow.listen: listener", Both())(late(1))
        assert called == ["on_event TuplesLate", "on_late 1"]
