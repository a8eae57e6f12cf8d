"""The tuples that no answer has, because they are late, bad or left out: counted, and delivered to those who asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headgate.connect.scan import sound, together
from headgate.errors import BindError, Error, FlowError
from headgate.incremental.reduce import MALFORMED, figure
from headgate.spark.failures import told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.batch.exclusion import LeftOut
    from headgate.batch.lateness import Lateness
    from headgate.connect.sinks import Sink
    from headgate.incremental.reduce import Watch
    from headgate.plan.stream.stages import Stage
    from headgate.protocol.manifest import Manifest

#: The tuples of a batch by stream, in pieces.
Batches = Mapping[str, Sequence["DataFrame"]]
#: What a malformed record is called where bad tuples are delivered.
RECORD = "record"


@dataclass(frozen=True)
class Outlet:
    """A sink of a query's answers, or of the tuples that were late or left out for it, or of a stream's bad ones."""

    of: str
    sink: Sink
    output: str = "answers"

    @property
    def called(self) -> str:
        """What it is called in a message."""
        if self.output == "answers":
            return f"the sink of query {self.of}"
        return f"the sink of {self.output} tuples of {'stream' if self.output == 'bad' else 'query'} {self.of}"


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
        raise found from cause.__cause__


class Leftover:
    """Counts and delivers what no answer has of a batch."""

    def __init__(
        self, outlets: Sequence[Outlet], watches: Sequence[Watch], stages: Mapping[str, Stage], lateness: Lateness
    ) -> None:
        self._outlets, self._stages, self._lateness = outlets, stages, lateness
        self._watches = {watch.stream: watch for watch in watches}

    def late(self, batches: Batches, figures: Mapping[str, Any], manifest: Manifest, batch: int) -> dict[str, int]:
        """Late tuples by query: a job of its own, if there are any."""
        late: dict[str, int] = {}
        for stream, pieces in batches.items():
            bounds = self._lateness.of(manifest, stream, figures)
            if not bounds:
                continue
            watch = self._watches.get(stream)
            df = sound(pieces, watch.is_good(pieces[0]) if watch is not None else None)
            conditions: dict[str, list[str]] = {}
            for name in bounds:
                condition = self._lateness.condition(manifest, df, name, stream)
                conditions.setdefault(self._stages[name].query, []).append(condition)
            any_of = {query: " OR ".join(filter(None, own)) for query, own in conditions.items()}
            counts = df.agg(*(F.expr(f"count_if({c})").alias(n) for n, c in any_of.items())).first()
            assert counts is not None
            for name, count in counts.asDict().items():
                late[name] = late.get(name, 0) + count
                for outlet in self._to("late", name) if count else ():
                    with failing(outlet):
                        outlet.sink.deliver(df.where(any_of[name]), f"{name}-late-{stream}", batch)
        return late

    def bad(self, batches: Batches, figures: Mapping[str, Any], batch: int) -> dict[str, int]:
        """Bad tuples by stream; malformed ones are delivered with their record."""
        counts = {name: figures.get(figure(name, "bad")) or 0 for name in batches}
        for watch in (w for w in self._watches.values() if counts.get(w.stream)):
            for outlet in self._to("bad", watch.stream):
                df = together(batches[watch.stream])
                rows = df.where(watch.is_bad(df)).withColumnRenamed(MALFORMED, RECORD)
                with failing(outlet):
                    outlet.sink.deliver(rows, f"{watch.stream}-bad", batch)
        return counts

    def shed(self, left_out: LeftOut, figures: Mapping[str, Any], batch: int) -> dict[str, int]:
        """Tuples that were left out, by query."""
        counts = left_out.counted(figures)
        for query, own in counts.items():
            for watch in (w for w in self._watches.values() if own.get(w.stream)):
                for outlet in self._to("shed", query):
                    with failing(outlet):
                        outlet.sink.deliver(left_out.tuples(query, watch), f"{query}-shed-{watch.stream}", batch)
        return {query: sum(own.values()) for query, own in counts.items()}

    def _to(self, output: str, of: str) -> list[Outlet]:
        return [outlet for outlet in self._outlets if outlet.output == output and outlet.of == of]
