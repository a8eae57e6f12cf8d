"""Headgate: continuous window queries over data streams on Apache Spark, on time under overload."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headgate.aggregates import AggregateFunction as Aggregate
from headgate.aggregates import Merge, Partial, register_aggregate
from headgate.errors import (
    AggregateTypeError,
    BindError,
    Error,
    FlowError,
    ParseError,
    ProgressError,
    ScriptError,
    SourceError,
    StateError,
    WindowError,
)
from headgate.lang import select, stream, union, window
from headgate.observe import events
from headgate.observe.events import BatchReport
from headgate.observe.listeners import Listener
from headgate.plan.logical.window_functions import register_window
from headgate.progress import Needs, ProgressRule, Seen, progress
from headgate.shed import losses
from headgate.shed.builtin import estimate, exact, sample, subset
from headgate.shed.controller import overload
from headgate.shed.policy import Policy, Situation
from headgate.shed.shape import QueryShape
from headgate.windows import Cut, WindowType

if TYPE_CHECKING:
    from headgate.api.evaluate import evaluate, table
    from headgate.api.flow import Flow
    from headgate.api.run import Run
    from headgate.api.session import session
    from headgate.connect import sinks, sources
    from headgate.connect.sink import Sink
    from headgate.connect.source import Source

__all__ = [
    "Aggregate",
    "AggregateTypeError",
    "BatchReport",
    "BindError",
    "Cut",
    "Error",
    "Flow",
    "FlowError",
    "Listener",
    "Merge",
    "Needs",
    "ParseError",
    "Partial",
    "Policy",
    "ProgressError",
    "Run",
    "ProgressRule",
    "QueryShape",
    "ScriptError",
    "Seen",
    "Situation",
    "Sink",
    "Source",
    "SourceError",
    "StateError",
    "WindowError",
    "WindowType",
    "losses",
    "estimate",
    "evaluate",
    "events",
    "exact",
    "overload",
    "progress",
    "register_aggregate",
    "register_window",
    "sample",
    "select",
    "session",
    "sinks",
    "sources",
    "stream",
    "subset",
    "table",
    "union",
    "window",
]

#: What needs Spark is imported on its first use: a plan is explained without it, at once.
_ON_USE = {
    "Flow": "headgate.api.flow",
    "Run": "headgate.api.run",
    "Sink": "headgate.connect.sink",
    "Source": "headgate.connect.source",
    "evaluate": "headgate.api.evaluate",
    "session": "headgate.api.session",
    "sinks": "headgate.connect",
    "sources": "headgate.connect",
    "table": "headgate.api.evaluate",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    found = getattr(import_module(_ON_USE[name]), name, None) or import_module(f"{_ON_USE[name]}.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
