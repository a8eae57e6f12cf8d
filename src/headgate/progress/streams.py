"""The progress of all streams of a flow: what each batch shows, and the punctuation that follows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from headgate.plan.logical.nodes import ROW_NUM
from headgate.plan.stream.stages import Stage, origins
from headgate.progress.granularity import coarsened
from headgate.progress.place import Punctuation
from headgate.progress.propagation import Reached
from headgate.progress.rule import Seen
from headgate.progress.stream import StreamProgress
from headgate.progress.tracker import Tracker


class Streams:
    """A tracker for each stream that has a progress rule, and the stages that wait for punctuation."""

    def __init__(
        self, rules: Mapping[str, StreamProgress | None], states: Mapping[str, Any], stages: Mapping[str, Stage]
    ) -> None:
        self._stages = stages
        self.trackers = {
            name: Tracker.restored(rule, states[name]) if name in states else Tracker(rule)
            for name, rule in rules.items()
            if rule is not None
        }
        self.told: dict[str, Punctuation] = {}
        """The punctuation that was told last."""

    def over(self, stages: Mapping[str, Stage]) -> Streams:
        """The same streams, below other stages."""
        found = Streams({}, {}, stages)
        found.trackers, found.told = self.trackers, self.told
        return found

    def observe(
        self, seen: Mapping[str, Mapping[str | None, Seen]], now: int, ended: Collection[str], held: bool
    ) -> None:
        """Takes in what a batch showed of the groups of each stream."""
        for name, tracker in self.trackers.items():
            tracker.observe(seen.get(name, {}), now, held=held)
            if name in ended:
                tracker.end()

    def asked(self, now: int) -> dict[str, Punctuation]:
        """The punctuation of each stream at a time; asking changes nothing."""
        return {name: _asked(tracker, now) for name, tracker in self.trackers.items()}

    def punctuation(self, now: int, ended: Iterable[str]) -> dict[str, Punctuation]:
        """The punctuation of each stream, no finer than the windows over it; asking changes nothing."""
        found: dict[str, Punctuation] = dict.fromkeys(ended, math.inf)
        for name, p in self.asked(now).items():
            stages = [s for s in self._stages.values() if any(name in origins(r, self._stages) for r in s.streams)]
            windows = [s.window for s in stages if s.aggregate and not s.holds and s.window.attr != ROW_NUM]
            # Kept tuples are let go one by one.
            found[name] = p if any(s.join is not None or s.holds for s in stages) else coarsened(p, windows)
        return found

    def tell(self, now: int, ended: Iterable[str]) -> dict[str, Punctuation]:
        """Tells how far the streams have come: what closes windows may not be taken back."""
        for tracker in self.trackers.values():
            tracker.punctuation(now)
        self.told = self.punctuation(now, ended)
        return self.told

    def idle(self, now: int) -> set[str]:
        """The streams that have been quiet for longer than their rules wait."""
        return {name for name, tracker in self.trackers.items() if tracker.is_idle(now)}

    def reached(
        self, punctuation: Mapping[str, Punctuation], numbered: Mapping[str, int], idle: Collection[str]
    ) -> dict[str, Punctuation | Reached]:
        """How far each stream has come; streams with arrival numbers also by how many they have."""
        found: dict[str, Punctuation | Reached] = dict(punctuation)
        for name, count in numbered.items():
            p = punctuation.get(name)
            at: dict[str, Punctuation] = {ROW_NUM: count}
            if name in self.trackers:
                at[self.trackers[name].progress.attr] = p
            found[name] = Reached(at, p == math.inf, name in idle)
        return found

    def state(self) -> dict[str, Any]:
        """The states of the trackers, as JSON has them."""
        return {name: tracker.state() for name, tracker in self.trackers.items()}


def _asked(tracker: Tracker, now: int) -> Punctuation:
    return Tracker.restored(tracker.progress, tracker.state()).punctuation(now)
