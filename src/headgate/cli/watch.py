"""How a running flow is doing, for a person at a terminal and for a log."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.filesize import decimal
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.plan.logical.render import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headgate.api.run import Run
    from headgate.batch.report import BatchReport

_LONGER = {"days": 86_400, "hours": 3_600, "minutes": 60}


@contextmanager
def view(run: Run) -> Iterator[Callable[[], None]]:
    """What to call for a fresh look, on standard error: a table in place on a terminal, else a line for each batch."""
    console = Console(stderr=True)
    if console.is_terminal:
        # What a sink prints moves the table down; what it prints into a file stays there.
        with Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty()) as live:
            yield lambda: live.update(_table(run.status()), refresh=True)
    else:
        told = run.resumed_after if run.resumed_after is not None else -1

        def show() -> None:
            nonlocal told
            for report in run.reports:
                if report.batch > told:
                    told = report.batch
                    print(batch_line(report, run.status(), datetime.now(UTC)), file=sys.stderr, flush=True)

        yield show


def batch_line(report: BatchReport, status: Mapping[str, Any], now: datetime) -> str:
    """A batch in a line, with the progress and the state that the flow has now.

    >>> from headgate.batch.report import BatchReport
    >>> report = BatchReport(7, 9000, {"ingest": 0.5, "close": 0.25}, {"talkers": 40}, {"talkers": 0}, 5, 9)
    >>> status = {"progress": {"Main": "2026-01-01T12:00:00+00:00"}, "state": {"bytes": 12_000}}
    >>> batch_line(report, status, datetime(2026, 1, 1, 12, 0, 9, tzinfo=UTC))
    'batch 7: 9,000 rows in 0.75 s, 12,000 rows/s; 40 answers, 0 late; Main 12:00:00, 9.0 seconds behind; state 12.0 kB'
    """
    parts = [
        f"batch {report.batch}: {', '.join(_speed(report.rows, report.seconds))}",
        f"{counted(sum(report.answers.values()), 'answers')}, {_without(report.late, report.shed, report.dropped)}",
        *(f"{name} {progress_words(place, now)}" for name, place in status["progress"].items()),
        f"state {decimal(status['state']['bytes'])}",
    ]
    return "; ".join(parts)


def progress_words(place: Any, now: datetime) -> str:
    """Where the progress of a stream is, and how far behind the clock, if it is a time.

    >>> progress_words("2025-12-30T00:00:00+00:00", now=datetime(2026, 1, 1, 12, tzinfo=UTC))
    '2025-12-30 00:00:00, 2 days behind'
    >>> progress_words("+294247-01-10T04:00:54.775807+00:00", now=datetime(2026, 1, 1, tzinfo=UTC))
    '+294247-01-10 04:00:54'
    >>> progress_words(1700, now=datetime(2026, 1, 1, tzinfo=UTC))
    '1,700'
    """
    match place:
        case None:
            return "without progress yet"
        case "end":
            return "at its end"
        case str():
            try:
                at = datetime.fromisoformat(place)
            except ValueError:  # In a year that Python does not reach.
                return place.replace("T", " ").partition("+00:00")[0].partition(".")[0]
            behind = (now - at).total_seconds()
            day = "" if at.date() == now.date() else "%Y-%m-%d "
            return f"{at:{day}%H:%M:%S}, {_long(abs(behind))} {'behind' if behind >= 0 else 'ahead'}"
    return f"{place:,}"


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
        took, speed = _speed(last["rows"], last["seconds"])
        yield f"batch {status['batch']}", took, f"{speed}, {state}"
    for name, rows in status["rows"].items():
        yield name, counted(rows, "rows"), progress_words(status["progress"][name], now)
    for name, answers in status["answers"].items():
        late, shed, dropped = ({name: status[what][name]} for what in ("late", "shed", "dropped"))
        yield name, counted(answers, "answers"), _without(late, shed, dropped)


def _without(late: Mapping[str, int], shed: Mapping[str, int], dropped: Mapping[str, int]) -> str:
    """What the answers are without, added up; of what is shed, only where there is any.

    >>> _without({"talkers": 3}, {"talkers": 6000, "swings": 500}, {"swings": 2})
    '3 late, 6,500 shed, 2 windows dropped'
    """
    words = [f"{sum(late.values()):,} late"]
    words += [f"{sum(shed.values()):,} shed"] if any(shed.values()) else []
    words += [f"{counted(sum(dropped.values()), 'windows')} dropped"] if any(dropped.values()) else []
    return ", ".join(words)


def _speed(rows: int, seconds: Mapping[str, float]) -> tuple[str, str]:
    """How long the rows of a batch took, and how many that is a second."""
    took = sum(seconds.values())
    return f"{counted(rows, 'rows')} in {took:.2f} s", f"{rows / took:,.0f} rows/s"


def _long(seconds: float) -> str:
    """A time in the largest unit of which it has two or more.

    >>> _long(7.25), _long(150), _long(90_000)
    ('7.2 seconds', '2 minutes', '25 hours')
    """
    for unit, length in _LONGER.items():
        if seconds >= 2 * length:
            return f"{seconds // length:,.0f} {unit}"
    return f"{seconds:.1f} seconds"
