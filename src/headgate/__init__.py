"""Headgate: continuous window queries over data streams on Apache Spark, on time under overload."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headgate.aggregates import register_aggregate
from headgate.errors import (
    AggregateTypeError,
    BindError,
    Error,
    ParseError,
    ScriptError,
    SourceError,
    WindowError,
)
from headgate.lang import select, stream, union, window

if TYPE_CHECKING:
    from headgate.runtime.evaluate import evaluate
    from headgate.runtime.session import session

__all__ = [
    "AggregateTypeError",
    "BindError",
    "Error",
    "ParseError",
    "ScriptError",
    "SourceError",
    "WindowError",
    "evaluate",
    "register_aggregate",
    "select",
    "session",
    "stream",
    "union",
    "window",
]

#: What needs Spark is imported on its first use: a plan is explained without it, at once.
_ON_USE = {"evaluate": "headgate.runtime.evaluate", "session": "headgate.runtime.session"}


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    found = getattr(import_module(_ON_USE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
