"""What becomes of windows: which are dropped, and at which rates the tuples of the others were sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headgate.plan.logical.nodes import ROW_NUM
from headgate.shed.fate import Fate
from headgate.shed.join.plan import PairSample
from headgate.shed.live.spans import Sampled

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.progress.closing import Closing
    from headgate.protocol.decision import Drops
    from headgate.protocol.figures import Figures
    from headgate.protocol.manifest import Manifest
    from headgate.shed.join.plan import JoinPlan
    from headgate.shed.live.joins import JoinShedding
    from headgate.shed.live.ledgers import Subsets
    from headgate.windows import Number


class Fates:
    """Follows where tuples were sampled, until the windows there have closed."""

    def __init__(
        self,
        stages: Mapping[str, Stage],
        queries: Mapping[str, Continuous],
        subsets: Subsets,
        joins: JoinShedding,
        state: Mapping[str, Any],
    ) -> None:
        self._stages, self._queries = stages, queries
        self._subsets, self._joins = subsets, joins
        # A query may have been dropped since.
        known = {name: spans for name, spans in state.get("sampled", {}).items() if name in queries}
        self._sampled = {name: Sampled.restored(spans) for name, spans in known.items()}

    def state(self) -> dict[str, Any]:
        """What the next one needs to go on from here, as JSON has it."""
        sampled = {name: own.state() for name, own in self._sampled.items() if own.spans}
        return {"sampled": sampled} if sampled else {}

    def sampled(
        self,
        figures: Figures,
        rates: Mapping[str, float],
        manifests: tuple[Manifest, Manifest],
        warming: bool,
    ) -> None:
        """Takes note of the rates that the tuples of a batch were taken at, and of where they were.

        While samples take everything to get `warming`, windows are answered as if they were sampled.
        """
        for query, rate in rates.items():
            stage = self._stages[query]
            for stream in stage.streams if stage.aggregate is not None else ():
                if stage.window.attr == ROW_NUM:
                    before, after = (manifest.progress.numbered.get(stream, 0) for manifest in manifests)
                    ends: tuple[Number | None, Number | None] = (before, after - 1)
                else:
                    ends = (figures.of(stream).lowest, figures.of(stream).highest)
                low, high = ends
                if (rate < 1 or warming) and low is not None and high is not None and low <= high:
                    self._sampled[query] = self._sampled.get(query, Sampled()).then(low, high, rate)

    def pairs_sampled(self, figures: Figures, plans: Mapping[str, JoinPlan]) -> None:
        """Takes note of the rates that the pairs of a batch were taken at, and of where their tuples can be.

        A pair has the rate of the batch of its earlier tuple, if that was lower. So it is within reach of either.
        """
        for query, join in self._joins.estimated.items():
            plan, own = plans[join], [figures.of(s) for s in self._queries[query].streams]
            lows = [f.lowest for f in own if f.lowest is not None]
            highs = [f.highest for f in own if f.highest is not None]
            if isinstance(plan, PairSample) and plan.rate < 1 and lows and highs:
                reach, sampled = math.ceil(self._joins.reach(query)), self._sampled.get(query, Sampled())
                self._sampled[query] = sampled.then(min(lows) - reach, max(highs) + reach, plan.rate)

    def of(self, level: Level, closings: Mapping[str, Closing]) -> dict[str, Fate]:
        """What has become of the windows that close."""
        found = {}
        for name, closing in closings.items():
            if (fate := self._subsets.fates(level.stages[name], closing)) is not None:
                found[name] = fate
            elif name in self._sampled:
                tops = self._sampled[name].tops(level.stages[name].window, closing.first, closing.last)
                lost = frozenset(k for k, top in tops.items() if top == math.inf)
                found[name] = Fate({k: top for k, top in tops.items() if k not in lost}, lost or None)
        return found

    def lost(self, decided: Drops, before: Manifest, after: Manifest) -> dict[str, int]:
        """By query, how many windows are not answered: those that a batch dropped, and closed ones without a sample."""
        found = {}
        for name, gone in decided.subsets.get("gone", {}).items():
            found[name] = gone["count"] - before.shedding.get("gone", {}).get(name, {"count": 0})["count"]
        for name, own in self._sampled.items():
            window = self._stages[name].window
            if name in after.windows.closed and not window.growing:
                tops = own.tops(window, before.windows.closed.get(name, -(1 << 62)) + 1, after.windows.closed[name])
                if lost := sum(top == math.inf for top in tops.values()):
                    found[name] = lost
        return found

    def forget(self, manifest: Manifest) -> None:
        """Forgets what only closed windows needed."""
        for name, own in self._sampled.items():
            window = self._stages[name].window if self._stages[name].aggregate is not None else None
            if name in manifest.windows.closed and window is not None and not window.growing:
                self._sampled[name] = own.forget(window.marks(manifest.windows.closed[name] + 1))
