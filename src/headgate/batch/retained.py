"""What stages do with the tuples that they keep: which are new, what they meet, and which are needed from now on."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headgate.batch.propagate import read_places
from headgate.bounded.answer import answer
from headgate.bounded.lower import lower
from headgate.incremental.hold import HeldByPartition, HeldByTuple, HeldInRange
from headgate.incremental.match import matched
from headgate.plan.stream.feeds import feeds
from headgate.plan.stream.stages import ANSWERS
from headgate.progress import furthest
from headgate.progress.place import read
from headgate.shed.join.sql import ShedSide
from headgate.sql.text import literal, position, stacked
from headgate.store.faults import reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.batch.lateness import Lateness
    from headgate.incremental.levels import Level
    from headgate.plan.stream.stages import Stage
    from headgate.protocol.figures import Figures
    from headgate.protocol.manifest import Manifest
    from headgate.shed.live.join_drops import JoinDrops
    from headgate.store.tuples import Tuples

#: The tuples of streams in a batch; of one without any, its columns.
Inputs = Callable[[Iterable[str]], Mapping[str, "DataFrame"]]
#: New tuples by what keeps them.
New = Mapping[str, "DataFrame"]


@dataclass(frozen=True)
class Retained:
    """The tuples that stages keep as they are, in one batch."""

    tuples: Tuples
    lateness: Lateness
    drops: JoinDrops
    """What is left out of joins."""

    def new(
        self,
        stages: Iterable[str],
        came: Collection[str],
        inputs: Inputs,
        manifest: Manifest,
        figures: Figures,
    ) -> dict[str, DataFrame]:
        """The new tuples of some stages, from the streams that came, without those that came too late."""
        found: dict[str, DataFrame] = {}
        for name in stages:
            for keeper in self.tuples.of(name):
                own = {feed.stream for feed in feeds(keeper.side.plan)}
                if not own & set(came):
                    continue
                df = lower(keeper.side.plan, inputs(own))
                late = self.lateness.any_of(manifest, own & set(came), figures)
                for attribute, bound in self.lateness.bounds(manifest, name).items() if late else ():
                    if attribute in keeper.side.attributes:
                        df = df.where(f"{position(df, attribute)} >= {literal(bound)}")
                if isinstance(keeper.side, HeldByPartition):
                    df = keeper.side.ranked(df, self.tuples.kept(manifest, keeper, {}))
                elif isinstance(keeper.side, ShedSide):
                    df = self.drops.new(keeper, df)
                found[keeper.column] = df
        return found

    def pairs(self, stage: Stage, manifest: Manifest, new: New) -> DataFrame | None:
        """The answers of a join: its pairs with a tuple of this batch."""
        assert stage.join is not None
        keepers, told = self.tuples.of(stage.name), read_places(manifest.windows.told).get(stage.name, {})
        own = [new.get(keeper.column) for keeper in keepers]
        if all(df is None for df in own):
            return None
        kept = [self.tuples.kept(manifest, keeper, told) for keeper in keepers]
        if isinstance(keepers[0].side, ShedSide):
            return self.drops.answers(stage, keepers, kept, own)
        found = matched(stage.join, kept, own)
        return None if found is None else answer(stage.after, {ANSWERS: found})

    def decided(self, stage: Stage, before: Manifest, now: Manifest, new: New) -> DataFrame | None:
        """The tuples that are known to be no duplicates, or the answers of windows by tuple or rows that close."""
        (keeper,) = self.tuples.of(stage.name)
        told, tells = (read_places(m.windows.told).get(stage.name, {}) for m in (before, now))
        kept, own = self.tuples.kept(before, keeper, told), new.get(keeper.column)
        known = [df for df in (kept, own) if df is not None]
        if not known:
            return None
        if isinstance(keeper.side, HeldByPartition):
            over = math.inf in tells.values()
            if own is None and not (over and told != tells):
                return None
            found = keeper.side.closing(own if own is not None else known[0].limit(0), kept, over)
        elif told == tells or None in tells.values():
            return None
        else:
            assert isinstance(keeper.side, HeldInRange)
            skipped, attribute = before.windows.skipped.get(stage.name, 0), keeper.side.attribute
            since = furthest((told.get(attribute), read(before.windows.first.get(stage.name))))
            found = keeper.side.closing(stacked(known), skipped, since, tells.get(attribute))
        return answer(stage.after, {ANSWERS: found})

    def kept(self, level: Level, before: Manifest, now: Manifest, new: New, batch: int) -> Manifest:
        """The manifest with the new tuples of a level that are needed from now on."""
        told, skipped = read_places(now.windows.told), dict(now.windows.skipped)
        for name in level.holding:
            (keeper,) = self.tuples.of(name)
            if isinstance(keeper.side, HeldByTuple) and keeper.side.window.order == "rank":
                kept = self.tuples.kept(before, keeper, read_places(before.windows.told).get(name, {}))
                known = [df for df in (kept, new.get(keeper.column)) if df is not None]
                passed = sum(keeper.side.passed(df, told[name]) for df in known)
                skipped[name] = skipped.get(name, 0) + passed
        now = replace(now, windows=replace(now.windows, skipped=skipped))
        own = {k: df for k, df in new.items() if k.rpartition(":")[0] in level.stages}
        if own:
            own |= self.drops.kept([k for k in self.tuples.keepers if k.column in own])
            now = self.tuples.add(now, batch, level.depth, own, told)
            reach("kept")
        return now
