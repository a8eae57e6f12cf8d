"""A function as a sink."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.connect.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class CallSink(Sink):
    """Calls a function with the answers, a DataFrame, and the number of the batch."""

    function: Callable[[DataFrame, int], object]

    def deliver(self, answers: DataFrame, name: str, batch: int) -> None:  # noqa: ARG002
        self.function(answers, batch)

    def describe(self) -> str:
        return f"the function {getattr(self.function, '__name__', type(self.function).__name__)}"


def takes_answers(function: Callable[..., object]) -> bool:
    """Whether a function can be called with a DataFrame and the number of a batch.

    >>> takes_answers(lambda answers, batch: None), takes_answers(lambda answers: None)
    (True, False)
    """
    try:
        inspect.signature(function).bind(None, 0)
    except TypeError:
        return False
    except ValueError:  # A function in C need not say what it takes.
        pass
    return True
