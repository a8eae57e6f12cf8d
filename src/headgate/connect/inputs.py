"""The streams of a flow as Spark finds them, and what a micro-batch has of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.connect.files.reading import FILE, PLACE, has_place, with_place
from headgate.connect.packets.packets import register
from headgate.connect.scan import Piece, Read
from headgate.connect.sources import Packets
from headgate.errors import SourceError, StateError
from headgate.sql.text import quoted, stacked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from headgate.connect.sources import Source
    from headgate.protocol.manifest import Manifest

_STREAM = "_hg_stream"
#: Spark knows sources by their place, or, if told to, by name.
_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
_OFFSETS = "spark.sql.streaming.offsetLog.formatVersion"
_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)


@dataclass(frozen=True)
class Inputs:
    """The streams of a flow by where they come from."""

    spark: SparkSession
    sources: Mapping[str, Source | DataFrame]
    schemas: Mapping[str, StructType]
    needed: Mapping[str, list[str]]
    numbered: frozenset[str]
    """Those whose tuples have to be in order."""

    @property
    def bounded(self) -> dict[str, DataFrame]:
        """The bounded DataFrames."""
        return {n: s for n, s in self.sources.items() if isinstance(s, DataFrame) and not s.isStreaming}

    @property
    def direct(self) -> dict[str, Source]:
        """The sources that are read directly."""
        return {n: s for n, s in self.sources.items() if not isinstance(s, DataFrame)}

    @property
    def streaming(self) -> dict[str, DataFrame]:
        """The streaming DataFrames of the caller."""
        return {n: s for n, s in self.sources.items() if isinstance(s, DataFrame) and s.isStreaming}

    @property
    def named(self) -> bool:
        """Whether Spark knows the streams by name, so that there can be others at a restart.

        It would have to know the caller's own by name too, which get one only where the caller's session allows it.
        """
        return not self.streaming

    def _reader(self, name: str) -> DataStreamReader:
        reader = self.spark.readStream
        return reader.name(_NOT_IN_NAMES.sub(lambda odd: f"_{ord(odd[0]):x}", name)) if self.named else reader

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

    @property
    def _columnar(self) -> set[str]:
        return {name for name, source in self.direct.items() if source.columnar}

    def prepare(self, session: SparkSession) -> None:
        """Makes what Spark looks for in the session that a stream runs in known there."""
        for source in self.direct.values():
            if isinstance(source, Packets):
                register(session)

    def union(self) -> DataFrame:
        """All streams that are not bounded as one, tagged, direct ones first: of those Spark passes on no rows."""
        for setting, value in {_EVOLUTION: str(self.named).lower(), _OFFSETS: "2" if self.named else "1"}.items():
            self.spark.conf.set(setting, value)
        found = [
            source.stream(self.spark, self._reader(name)).where(F.lit(False)).select(F.lit(name).alias(_STREAM))
            for name, source in self.direct.items()
        ]
        passed = {name: self._passed(name) for name in self.streaming}
        given = [
            df.select(F.lit(name).alias(_STREAM), F.struct(*map(quoted, columns)).alias(name))
            for name, (df, columns) in passed.items()
        ]
        return stacked([*found, *given])

    def _passed(self, name: str) -> tuple[DataFrame, list[str]]:
        """A streaming DataFrame, and which of its columns are passed on."""
        df, needed = self.streaming[name], self.needed[name]
        return (with_place(df), [*needed, *PLACE]) if name in self.in_order else (df, needed)

    @cached_property
    def in_order(self) -> frozenset[str]:
        """The streaming DataFrames whose rows say in which order they came, as they are asked to."""
        return frozenset(n for n, df in self.streaming.items() if n in self.numbered and has_place(df))

    def gone(self, before: Collection[str]) -> list[str]:
        """The streams whose place is gone; an error for one that was gone `before`, as it may be a moment's matter."""
        found = {name: place for name, s in self.direct.items() if (place := s.gone(self.spark)) is not None}
        for name in (name for name in found if name in before):
            raise SourceError(f"stream {name}: {found[name]} is gone, and the flow stops; put it back, and start again")
        return list(found)

    @contextmanager
    def batches(self, df: DataFrame, query: StreamingQuery, reads: Mapping[str, int]) -> Iterator[dict[str, Read]]:
        """What a micro-batch has of each stream.

        What is read several times is held in memory meanwhile, unless to read it again is cheaper.
        """
        found = self._found(df, query)
        held = [
            piece.scan
            for name, read in found.items()
            if reads[name] > 1 and name not in self._columnar
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
                leaf = leaves.apply(i)
                read = source.read(self.spark, self.schemas[name], self.needed[name], leaf, name in self.numbered)
                if read.pieces:
                    found[name] = read
        for name in self.streaming:
            rows = df.where(f"{_STREAM} = '{name}'").select(f"{quoted(name)}.*")
            placed = FILE in rows.columns
            if placed and name not in self.numbered:
                placed, rows = False, rows.drop(*PLACE)
            found[name] = Read([Piece(rows)], place=PLACE if placed else ())
        return found
