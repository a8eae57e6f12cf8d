"""Spark's errors in our words: the one line that says what is wrong, without the stack of a foreign language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException, QueryContextType

from headgate.errors import BindError, Error, FlowError, SourceError
from headgate.plan.stream.origin import as_written, innermost, may_overflow, written_in

if TYPE_CHECKING:
    from headgate.plan.stream.stages import Continuous

_CLASS = re.compile(r"^\[([A-Z_.0-9]+)\]\s*")
#: What Spark writes in front of what went wrong in a task.
_TASK = re.compile(r"^Job aborted due to stage failure: .*?: Lost task \S+ in stage \S+ \(TID \d+\) \(.*?\): ")
#: What Java writes in front of a cause.
_THROWN = re.compile(r"^([a-z]\w*\.)+[A-Z]\w*(Exception|Error): (?=.)")
_TRACEBACK = "Traceback (most recent call last):"
#: What Spark writes after the error that ended a streaming query.
_STATE = "\n=== Streaming Query ==="
#: An error of ours, as a traceback from another process has it.
_OURS = re.compile(r"^headgate\.errors\.\w+: ")
#: Data exceptions, those of functions in other languages, and those that raise_error() and the like raise.
_BY_VALUES = re.compile(rf"SQLSTATE: (22|38|P0)|{re.escape(_TRACEBACK)}")
_UNINDENTED = re.compile(r"(?!SQLSTATE|== )\S")
_WHERE = re.compile(r"\s*(SQLSTATE: \w+|== .*|;\s*$).*", re.DOTALL)
_UNREADABLE = (
    "PATH_NOT_FOUND",
    "FAILED_READ_FILE",
    "UNABLE_TO_INFER_SCHEMA",
    "CANNOT_READ_FILE",
    "MALFORMED_CSV",
    "MALFORMED_RECORD",
)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turns any error of Spark that is raised inside into a headgate Error of one clear line."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise told(error, "") from None


def told(error: BaseException, what: str) -> Error:
    """What went wrong as an error of ours; `what` says where it did, of an error of Python's."""
    if isinstance(error, Error):
        return error
    if isinstance(error, PySparkException):
        return _plain(error)
    if isinstance(error, Py4JJavaError):
        return _about(_causes(error.java_exception), Error)
    words = [what, type(error).__name__, " ".join(str(error).split())]
    found = FlowError(": ".join(word for word in words if word))
    found.__cause__ = error
    return found


def about_queries(error: Error, queries: Mapping[str, Continuous], fails: Callable[[Continuous], bool]) -> None:
    """Lets an error that Spark met while it computed say of which queries, where that can be told.

    Where nothing in it tells, what `fails` by itself is what it is about.
    """
    if type(error) is not Error or error.query is not None or error.stream is not None:
        return
    names = _at_fault(error, queries, fails)
    if names:
        error.query = ", ".join(names)
        failed = f", at {fragment}" if error.fragment and (fragment := as_written(error.fragment)) else ""
        error.args = (f"{'query' if len(names) == 1 else 'queries'} {error.query}{failed}: {error}",)


def _at_fault(error: Error, queries: Mapping[str, Continuous], fails: Callable[[Continuous], bool]) -> list[str]:
    if len(queries) == 1:
        return list(queries)
    if error.fragment == "":  # A sum that Spark makes by itself.
        return may_overflow(queries)
    if error.fragment and (found := written_in(error.fragment, queries)):
        return found
    return innermost([name for name, query in queries.items() if fails(query)], queries) if error.by_values else []


def first_line(message: str) -> str:
    r"""What a Spark message says, without its error class, its SQL state and its plan.

    >>> first_line("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL ==")
    'Division by zero.'
    >>> first_line("Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure:"
    ... " Lost task 0.0 in stage 1.0 (TID 1) (host executor driver): java.io.IOException: No space left on device")
    'No space left on device'
    >>> first_line("From the worker:\nTraceback (most recent call last):\n  x()\nValueError: no\n SQLSTATE: 38000")
    'a function in Python failed: ValueError: no'
    """
    if _TRACEBACK in message:
        lines = message.partition(_STATE)[0].splitlines()
        cause = [line for line in lines if _UNINDENTED.match(line)][-1]
        return _OURS.sub("", cause) if _OURS.match(cause) else f"a function in Python failed: {cause}"
    return _WHERE.sub("", _CLASS.sub("", _THROWN.sub("", _TASK.sub("", message.strip())))).strip().split("\n")[0]


def _plain(error: PySparkException) -> Error:
    origin = getattr(error, "_origin", None)
    messages = [str(error), *(_causes(origin)[1:] if origin is not None else [])]
    usual = BindError if isinstance(error, AnalysisException | ParseException) else Error
    found = _about(messages, usual)
    found.fragment = next(
        (c.fragment() for c in error.getQueryContext() if c.contextType() == QueryContextType.SQL), None
    )
    return found


def _about(messages: list[str], usual: type[Error]) -> Error:
    found = _kind(messages, usual)(_told(messages))
    found.by_values = any(map(_BY_VALUES.search, messages))
    return found


def _causes(throwable: JavaObject) -> list[str]:
    """What an error of the JVM says, and what each of its causes says."""
    messages = []
    while throwable is not None:
        messages.append(str(throwable.getMessage() or ""))
        throwable = throwable.getCause()
    return messages


def _kind(messages: list[str], usual: type[Error]) -> type[Error]:
    conditions = [found[1] for message in messages if (found := _CLASS.match(message.strip()))]
    return SourceError if any(c.startswith(_UNREADABLE) for c in conditions) else usual


def _told(messages: list[str]) -> str:
    """The first message, and after it the one of the last cause, which knows what really happened."""
    lines = [line for message in messages if (line := first_line(message))]
    if not lines:
        return "Spark failed without saying why"
    return lines[0] if lines[-1] in lines[0] else f"{lines[0]} {lines[-1]}"
