"""The errors a user can see: each names the thing that is wrong and says what to do about it."""

from __future__ import annotations


class Error(Exception):
    """The root of every error that Headgate raises on purpose.

    `query` and `stream` name what it is about, where that can be told.
    """

    query: str | None = None
    stream: str | None = None
    fragment: str | None = None
    """The SQL that Spark could not compute, "" where it only says that there is some."""
    by_values: bool = False
    """Whether it is the values of tuples that Spark, or a function in Python, could not compute with."""


class ParseError(Error):
    """The text of a query or script does not follow the language.

    `line` and `column` count from 1 and point at the first character that did not fit.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class BindError(Error):
    """A query names a stream, a column or a function that is not there, or uses one in a wrong place."""


class WindowError(BindError):
    """A window specification that makes no sense: a range below zero, attributes that do not go together."""


class AggregateTypeError(BindError):
    """An aggregate over a column of a type that it is not defined for."""


class ProgressError(Error):
    """A progress rule that makes no sense: no promise about the attribute, or two; a time that is negative."""


class ScriptError(Error):
    """The statements of a script do not fit together: two queries of one name, a sink for no query."""


class SourceError(Error):
    """Data that cannot be read: a missing path, an unknown format, a malformed record."""


class StateError(Error):
    """The state of a flow cannot be read or written, or was written by a version that keeps it in another way."""


class FlowError(Error):
    """A flow that cannot run as it was asked to: no streams, two queries of one name, a sink that failed."""
