"""Spark's errors in our words: the one line that says what is wrong, without the stack of a foreign language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from headgate.errors import BindError, Error, SourceError

_CLASS = re.compile(r"^\[([A-Z_.0-9]+)\]\s*")
_WHERE = re.compile(r"\s*(SQLSTATE: \w+|== .*|;\s*$).*", re.DOTALL)
_MISSING = ("PATH_NOT_FOUND", "FAILED_READ_FILE", "UNABLE_TO_INFER_SCHEMA", "CANNOT_READ_FILE")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turns any error of Spark that is raised inside into a headgate Error of one clear line."""
    try:
        yield
    except PySparkException as error:
        raise _plain(error) from None
    except Py4JJavaError as error:
        raise Error(first_line(str(error.java_exception.getMessage()))) from None


def first_line(message: str) -> str:
    r"""What a Spark message says, without its error class, its SQL state and its plan.

    >>> first_line("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL ==")
    'Division by zero.'
    """
    return _WHERE.sub("", _CLASS.sub("", message.strip())).strip().split("\n")[0]


def _plain(error: PySparkException) -> Error:
    condition = error.getCondition() or ""
    message = first_line(str(error))
    if condition.startswith(_MISSING):
        return SourceError(message)
    if isinstance(error, AnalysisException | ParseException):
        return BindError(message)
    return Error(message)
