"""Which tuples come too late, and for which stages: below what punctuation has told them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headgate.batch.propagate import read_places
from headgate.plan.logical.nodes import ROW_NUM
from headgate.plan.stream.stages import origins
from headgate.sql.text import literal, position, text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.plan.stream.feeds import Feed
    from headgate.plan.stream.stages import Stage
    from headgate.protocol.figures import Figures
    from headgate.protocol.manifest import Manifest
    from headgate.windows import Number


class Lateness:
    """The bounds of the stages of a flow, as a manifest has them."""

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        self._stages = stages

    def closed_before(self, manifest: Manifest) -> dict[str, Number]:
        """For each stage the end of the last window that was closed: a tuple below it is late."""
        return {name: self._stages[name].window.bounds(last)[1] for name, last in manifest.windows.closed.items()}

    def bounds(self, manifest: Manifest, stage: str) -> dict[str, Number]:
        """For each windowing attribute of a stage the place below which a tuple is late."""
        if stage in manifest.windows.closed:
            window = self._stages[stage].window
            return {window.attr: window.bounds(manifest.windows.closed[stage])[1]} if window.attr != ROW_NUM else {}
        told = read_places(manifest.windows.told).get(stage, {})
        return {name: p for name, p in told.items() if name != ROW_NUM and p is not None and not isinstance(p, float)}

    def of(self, manifest: Manifest, stream: str, figures: Figures) -> dict[str, Number]:
        """The stages that a stream has brought late tuples for, with the place below which they are late."""
        places = [figures.of(s).lowest for s in origins(stream, self._stages)]
        lowest = min((p for p in places if p is not None), default=None)
        if lowest is None:
            return {}
        found: dict[str, Number] = {}
        for name, stage in self._stages.items():
            if stream in stage.streams:
                own = [b for attribute, b in self.bounds(manifest, name).items() if _feeds(stage, stream, attribute)]
                found |= {name: max(own)} if own and lowest < max(own) else {}
        return found

    def any_of(self, manifest: Manifest, streams: Iterable[str], figures: Figures) -> bool:
        """Whether any of some streams has brought late tuples."""
        return any(self.of(manifest, stream, figures) for stream in streams)

    def condition(self, manifest: Manifest, df: DataFrame, stage: str, stream: str) -> str:
        """Whether a tuple of a stream is late for a stage, as SQL."""
        conditions = []
        for attribute, bound in self.bounds(manifest, stage).items():
            for feed in _feeds(self._stages[stage], stream, attribute):
                below = f"{position(df, feed.columns[attribute].name)} < {literal(bound)}"
                conditions.append(below if feed.where is None else f"({below}) AND ({text(feed.where)})")
        return " OR ".join(f"({c})" for c in conditions)


def _feeds(stage: Stage, stream: str, attribute: str) -> list[Feed]:
    """The ways from a stream into a stage that have this attribute."""
    return [feed for feed in stage.feeds if feed.stream == stream and attribute in feed.columns]
