"""Shows how a flow is doing, to a person at a terminal or in a log."""

from __future__ import annotations

import queue
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.filesize import decimal
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.observe.events import BatchCommitted, Event
from headgate.observe.words import reached, speed, took, without
from headgate.plan.logical.render import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headgate.api.run import Run
    from headgate.observe.events import BatchReport

#: How often a table on a terminal is drawn anew when nothing happens, in seconds.
_PAUSE = 0.25


class Show(Protocol):
    """Shows what has happened since the last call."""

    def __call__(self, wait: bool = False) -> None:
        """With `wait`, waits a moment for something to happen."""


class Watching:
    """Takes the events of a flow. They wait here until the main thread shows them."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def on_event(self, event: Event) -> None:
        """Takes an event, in the listener's thread."""
        self._events.put(event)

    def happened(self, wait: bool) -> Iterator[Event]:
        """The events since the last call."""
        try:
            yield self._events.get(timeout=_PAUSE if wait else 0)
            while True:
                yield self._events.get_nowait()
        except queue.Empty:
            return


@contextmanager
def view(run: Run, watching: Watching) -> Iterator[Show]:
    """Shows a flow on standard error: a table that stays in place on a terminal, else one line for each batch."""
    console = Console(stderr=True)
    if console.is_terminal:
        # What a sink prints moves the table down. What it prints into a file stays there.
        with Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty()) as live:

            def draw(wait: bool = False) -> None:
                list(watching.happened(wait))
                live.update(_table(run.status()), refresh=True)

            yield draw
    else:

        def print_lines(wait: bool = False) -> None:
            for event in watching.happened(wait):
                if isinstance(event, BatchCommitted):
                    now = datetime.fromisoformat(event.timestamp)
                    print(batch_line(event.report, now), file=sys.stderr, flush=True)

        yield print_lines


def batch_line(report: BatchReport, now: datetime) -> str:
    """A batch in a line, with the progress and the state after it.

    >>> from headgate.observe.events import BatchReport
    >>> report = BatchReport(
    ...     batch=7, rows=9000, seconds={"ingest": 0.5, "close": 0.25}, answers={"talkers": 40}, late={"talkers": 0},
    ...     state_rows=5, state_bytes=12_000, progress={"Main": "2026-01-01T12:00:00+00:00"},
    ... )
    >>> batch_line(report, datetime(2026, 1, 1, 12, 0, 9, tzinfo=UTC))
    'batch 7: 9,000 rows in 0.75 s, 12,000 rows/s; 40 answers, 0 late; Main 12:00:00, 9.0 seconds behind; state 12.0 kB'
    """
    rows, seconds = report.rows, report.total_seconds
    lost = without(report.late.values(), report.shed.values(), report.dropped.values())
    parts = [
        f"batch {report.batch}: {took(rows, seconds)}, {speed(rows, seconds)}",
        f"{counted(sum(report.answers.values()), 'answers')}, {lost}",
        *(f"{name} {reached(place, now)}" for name, place in report.progress.items()),
        f"state {decimal(report.state_bytes)}",
    ]
    return "; ".join(parts)


def _table(status: Mapping[str, Any]) -> Table:
    """The flow at a glance: its last batch, its streams and its queries."""
    now = datetime.now(UTC)
    table = Table.grid(padding=(0, 3))
    for head, *cells in _cells(status, now):
        table.add_row(Text(head, "bold"), *map(Text, cells))
    return table


def _cells(status: Mapping[str, Any], now: datetime) -> Iterator[tuple[str, str, str]]:
    state = f"state {decimal(status['state']['bytes'])}"
    if (last := status["last_batch"]) is None:
        yield f"batch {status['batch'] + 1}", "not done yet", state
    else:
        rows, seconds = last["rows"], sum(last["seconds"].values())
        yield f"batch {status['batch']}", took(rows, seconds), f"{speed(rows, seconds)}, {state}"
    for name, rows in status["rows"].items():
        yield name, counted(rows, "rows"), reached(status["progress"][name], now)
    for name, answers in status["answers"].items():
        late, shed, dropped = ([status[what][name]] for what in ("late", "shed", "dropped"))
        yield name, counted(answers, "answers"), without(late, shed, dropped)
