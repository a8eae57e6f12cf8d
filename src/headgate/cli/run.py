"""`headgate run`: runs the queries of a script until someone stops it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.api.run import AVAILABLE_NOW, as_trigger
from headgate.api.scripts import check_script, flow_of
from headgate.cli import failed
from headgate.cli.engine import engine
from headgate.cli.explain import sink_words, stream_line, table_line
from headgate.cli.inputs import read_text
from headgate.cli.watch import Watching, view
from headgate.errors import Error, FlowError, ScriptError
from headgate.lang import parse_script
from headgate.plan.logical.script import bind_script
from headgate.shed.controller import Overload, overload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from headgate.api.run import Run
    from headgate.plan.logical.script import Script


def run_file(file: str, checkpoint: str | None, trigger: str | None, once: bool, target: str | None) -> int:
    """Runs a script. Gives 0 when it has done what was asked. After a flow that failed, says why and gives 1."""
    # All errors that can be found without Spark come before it is started.
    script = bind_script(parse_script(read_text(file)))
    check_script(script)
    checkpoint, pace = checkpoint or _beside(file), _pace(trigger, once)
    promise = _promise(target)
    with engine() as spark, _interrupts() as wish:
        flow, watching = flow_of(script, spark, Path(file).stem, checkpoint), Watching()
        flow.listen(watching)
        run = flow.start(pace, promise)
        _tell(*_opening(script, checkpoint, run.resumed_after))
        try:
            _watch(run, watching, wish)
        except Error as error:
            return failed(str(error), code=1)
    return 0


def _beside(file: str) -> str:
    """The checkpoint of a script, unless another is named.

    >>> _beside("flows/network.sql")
    'flows/network.checkpoint'
    """
    if file == "-":
        raise ScriptError("a script from standard input has no place of its own: add --checkpoint DIR")
    return str(Path(file).with_suffix(".checkpoint"))


def _pace(trigger: str | None, once: bool) -> str | None:
    """The trigger, as the flow expects it.

    >>> _pace("1.5 minutes", once=False), _pace(None, once=True)
    ('90000 milliseconds', 'available now')
    """
    if trigger is None:
        return AVAILABLE_NOW if once else None
    if once:
        raise FlowError("--once runs over what is there and ends: leave --trigger out")
    try:
        return as_trigger("--trigger", trigger)
    except FlowError:
        raise FlowError(f"--trigger {trigger}: give a time, such as '5 seconds'") from None


def _promise(target: str | None) -> Overload | None:
    """The promise about overload, if there is one."""
    try:
        return overload(target) if target is not None else None
    except FlowError:
        raise FlowError(f"--target {target}: give a time above zero, such as '5 seconds'") from None


@dataclass
class _Wish:
    """Whether someone wants the flow to stop."""

    stop: bool = False


@contextmanager
def _interrupts() -> Iterator[_Wish]:
    """Takes Ctrl-C and SIGTERM as a wish to stop, and a second one as an order to stop at once."""
    wish = _Wish()

    def take(number: int, _: FrameType | None) -> None:
        if wish.stop:
            if os.isatty(2):
                os.write(2, b"\x1b[?25h\n")  # Shows the cursor again, which the table hides.
            os._exit(128 + number)
        wish.stop = True

    # Spark has set a handler of its own. It would cancel the batch that is running.
    before = {number: signal.signal(number, take) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(run: Run, watching: Watching, wish: _Wish) -> None:
    """Shows how the flow is doing until it ends or someone stops it. Raises what made it fail."""
    with view(run, watching) as show:
        while run.is_active and not wish.stop:
            show(wait=True)
        try:
            if wish.stop:
                _tell("stopping after the batch that is running; Ctrl-C again quits at once")
                run.stop()
            else:
                run.await_termination()
        finally:
            show()
    batch = run.status()["batch"]
    after = (
        f"after batch {batch}; run it again to go on from there" if batch >= 0 else "without a batch: there was no data"
    )
    _tell(f"{'stopped' if wish.stop else 'done'} {after}")


def _opening(script: Script, checkpoint: str, resumed_after: int | None) -> Iterator[str]:
    """What runs, where its answers go, and which checkpoint it goes on from."""
    yield from (stream_line(stream, script) for stream in script.streams)
    yield from (table_line(table) for table in script.tables)
    for query in script.queries:
        sinks = script.sinks_of_query(query.name)
        places = [sink_words(sink) for sink in sinks]
        if all(sink.output != "answers" for sink in sinks):
            places.append("answers kept in the checkpoint: it has no sink")
        yield f"Query {query.name} {'; '.join(places)}"
    since = "new" if resumed_after is None else f"resumed after batch {resumed_after}"
    yield f"Checkpoint {checkpoint}, {since}"


def _tell(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)
