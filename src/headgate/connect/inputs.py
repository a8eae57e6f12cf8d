"""The streams of a flow: how Spark finds them together, and what a micro-batch has of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headgate.connect.input import Need, Share
from headgate.errors import FlowError, SourceError, StateError
from headgate.sql.text import quoted, stacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from headgate.connect.input import Input
    from headgate.connect.scan import Read
    from headgate.protocol.manifest import Manifest

_STREAM = "_hg_stream"
#: Spark knows sources by their position, or by name if it is told to.
_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
_OFFSETS = "spark.sql.streaming.offsetLog.formatVersion"
_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)


@dataclass(frozen=True)
class Inputs:
    """The streams of a flow, and what the flow needs of each."""

    spark: SparkSession
    sources: Mapping[str, Input]
    schemas: Mapping[str, StructType]
    needed: Mapping[str, list[str]]
    numbered: frozenset[str]
    """The streams whose tuples have to be in order."""

    @cached_property
    def bounded(self) -> dict[str, Input]:
        """The streams that are over once they have been read."""
        return {name: source for name, source in self.sources.items() if source.bounded}

    @cached_property
    def direct(self) -> dict[str, Input]:
        """The streams that Spark finds and Headgate reads."""
        return {name: source for name, source in self.sources.items() if not source.bounded and not source.passed}

    @cached_property
    def streaming(self) -> dict[str, Input]:
        """The streams whose rows Spark passes on: the caller's streaming DataFrames."""
        return {name: source for name, source in self.sources.items() if not source.bounded and source.passed}

    @property
    def named(self) -> bool:
        """Whether Spark knows the streams by name, so that a restart may have other streams.

        For that Spark has to know all of them by name. The caller's own get one only if the caller's session allows it.
        """
        return not self.streaming

    def need(self, name: str) -> Need:
        """What the flow needs of a stream."""
        return Need(self.spark, self.schemas[name], self.needed[name], name in self.numbered)

    def check_known(self, manifest: Manifest, checkpoint: str) -> None:
        """Raises an error if Spark cannot go on from a checkpoint with these streams."""
        sources, known = [*self.direct, *self.streaming], manifest.source.streams
        if (
            not known
            or (self.named and manifest.source.named)
            or (self.named == manifest.source.named and sources == known)
        ):
            return
        own = ", ".join(self.streaming) or "a DataFrame"
        raise StateError(
            f"the checkpoint {checkpoint} was begun with the streams {', '.join(known)}, and now there are"
            f" {', '.join(sources)}: where {own} streams, it has to be the same ones in the same order; read streams by"
            " hg.sources, or start with a new checkpoint"
        )

    def check_passed(self, needed: Mapping[str, list[str]], numbered: Collection[str]) -> None:
        """Raises an error if a change needs more of a stream than Spark passes on while it runs."""
        for name, source in self.streaming.items():
            if missing := set(needed[name]) - set(self.needed[name]):
                columns = ", ".join(sorted(missing))
                raise FlowError(f"stream {name} does not pass on {columns} yet: stop the flow, and start it again")
            if name in numbered and name not in self.numbered and source.tells_order():
                raise FlowError(f"stream {name} does not pass on its order yet: stop the flow, and start it again")

    def prepare(self, session: SparkSession) -> None:
        """Prepares the session that the streams run in."""
        for source in self.sources.values():
            source.prepare(session)

    def union(self) -> DataFrame:
        """All streams that are not bounded as one DataFrame, tagged by name, the direct ones first."""
        for setting, value in {_EVOLUTION: str(self.named).lower(), _OFFSETS: "2" if self.named else "1"}.items():
            self.spark.conf.set(setting, value)
        return stacked([self._tagged(name, source) for name, source in (self.direct | self.streaming).items()])

    def _tagged(self, name: str, source: Input) -> DataFrame:
        """What Spark passes on of a stream: the tag, and its columns as one struct if it has any."""
        found = source.find(self.need(name), self._reader(name))
        columns = [F.struct(*map(quoted, found.columns)).alias(name)] if source.passed else []
        return found.select(F.lit(name).alias(_STREAM), *columns)

    def _reader(self, name: str) -> DataStreamReader:
        reader = self.spark.readStream
        return reader.name(_NOT_IN_NAMES.sub(lambda odd: f"_{ord(odd[0]):x}", name)) if self.named else reader

    def gone(self, before: Collection[str]) -> list[str]:
        """The streams whose place is gone. Raises an error for one that was gone `before`: it may come back at once."""
        found = {name: place for name, s in self.direct.items() if (place := s.gone(self.spark)) is not None}
        for name in (name for name in found if name in before):
            raise SourceError(f"stream {name}: {found[name]} is gone, and the flow stops; put it back, and start again")
        return list(found)

    def read_bounded(self) -> dict[str, Read]:
        """All tuples of the bounded streams."""
        return {name: source.take(self.need(name), Share()) for name, source in self.bounded.items()}

    @contextmanager
    def batches(self, df: DataFrame, query: StreamingQuery, reads: Mapping[str, int]) -> Iterator[dict[str, Read]]:
        """What a micro-batch has of each stream.

        A stream that is read several times is held in memory meanwhile, unless reading it again is cheaper.
        """
        found = self._found(df, query)
        columnar = {name for name, source in self.direct.items() if source.columnar}
        held = [
            piece.scan
            for name, read in found.items()
            if reads[name] > 1 and name not in columnar
            for piece in read.pieces
        ]
        for scan in held:
            scan.persist()
        try:
            yield found
        finally:
            for scan in held:
                scan.unpersist()

    def _found(self, df: DataFrame, query: StreamingQuery) -> dict[str, Read]:
        found: dict[str, Read] = {}
        if self.direct:
            leaves = query._jsq.streamingQuery().lastExecution().analyzed().collectLeaves()
            for i, (name, source) in enumerate(self.direct.items()):
                read = source.take(self.need(name), Share(leaf=leaves.apply(i)))
                if read.pieces:
                    found[name] = read
        for name, source in self.streaming.items():
            rows = df.where(f"{_STREAM} = '{name}'").select(f"{quoted(name)}.*")
            found[name] = source.take(self.need(name), Share(rows=rows))
        return found
