"""Where answers, and tuples that no answer has, leave a flow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.errors import BindError, Error, FlowError
from headgate.spark.failures import told

if TYPE_CHECKING:
    from headgate.connect.sink import Sink


@dataclass(frozen=True)
class Outlet:
    """A sink, and what it gets: a query's answers, its late or shed tuples, or a stream's bad ones."""

    of: str
    sink: Sink
    output: str = "answers"

    @property
    def called(self) -> str:
        """What it is called in a message."""
        if self.output == "answers":
            return f"the sink of query {self.of}"
        return f"the sink of {self.output} tuples of {'stream' if self.output == 'bad' else 'query'} {self.of}"

    @property
    def keeps(self) -> bool:
        """Whether the flow itself keeps what it gets."""
        return self.sink.kept_by_flow


@contextmanager
def failing(outlet: Outlet) -> Iterator[None]:
    """Names the sink in what goes wrong as something is delivered to it."""
    try:
        yield
    except (Exception, SystemExit) as error:
        cause = told(error, "")
        kind = FlowError if type(cause) in (Error, BindError) else type(cause)
        found = kind(f"{outlet.called} failed: {cause}; the next start of the flow gives it this batch again")
        found.query, found.stream = (None, outlet.of) if outlet.output == "bad" else (outlet.of, None)
        found.output = outlet.output
        raise found from cause.__cause__
