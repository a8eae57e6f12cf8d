"""The errors that a user can see. Each names what is wrong and says what to do about it."""

from __future__ import annotations


class Error(Exception):
    """The root of every error that Headgate raises on purpose.

    `query` and `stream` name what the error is about, where that can be told.
    """

    query: str | None = None
    stream: str | None = None
    output: str | None = None
    """Where a sink failed: what it takes, such as "answers"."""
    fragment: str | None = None
    """The SQL that Spark could not compute; "" if Spark did not say which."""
    by_values: bool = False
    """Whether the values of tuples were the cause: Spark, or a function in Python, could not compute with them."""


class ParseError(Error):
    """The text of a query or script does not follow the language.

    `line` and `column` count from 1 and point at the first character that did not fit.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class BindError(Error):
    """A query names a stream, a column or a function that does not exist, or uses one in a wrong place."""


class WindowError(BindError):
    """A window specification that makes no sense: a range below zero, attributes that do not go together."""


class AggregateTypeError(BindError):
    """An aggregate over a column whose type it is not defined for."""


class ProgressError(Error):
    """A progress rule that makes no sense: no promise about the attribute, or two of them; a negative time."""


class ScriptError(Error):
    """The statements of a script do not fit together: two queries of one name, a sink for no query."""


class SourceError(Error):
    """Data that cannot be read: a missing path, an unknown format, a malformed record."""


class StateError(Error):
    """The state of a flow cannot be read or written, or has the layout of another version."""


class FlowError(Error):
    """A flow that cannot run as it was asked to: no streams, two queries of one name, a sink that failed."""
