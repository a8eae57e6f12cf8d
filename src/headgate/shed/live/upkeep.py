"""What batches do besides taking tuples in: they answer windows that close, and merge state.

Not every batch does. One that does has less time for its tuples, so before each batch we tell whether it will: windows
close when punctuation passes their ends, and state is merged when there are many files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headgate.plan.logical.nodes import ROW_NUM
from headgate.progress import Punctuation, closed
from headgate.progress.place import read

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.plan.stream.stages import Stage
    from headgate.protocol.manifest import Manifest

#: How much the last batch counts in what is usual.
_RECENT = 0.2


@dataclass(frozen=True)
class Upkeep:
    """What a batch does besides taking tuples in, or what batches do on average."""

    closings: float = 0.0
    """One if windows close, however many."""
    answers: float = 0.0
    merges: float = 0.0
    """One if state is merged."""
    merged: float = 0.0
    """The rows of state that are merged."""

    def towards(self, other: Upkeep, part: float) -> Upkeep:
        """This one, moved by a part of the way to another one."""
        mine, others = asdict(self), asdict(other)
        return Upkeep(**{name: mine[name] + part * (others[name] - mine[name]) for name in mine})


class Rhythm:
    """Follows how far streams go on with their tuples, and how many answers a window has, to tell what is to come."""

    def __init__(self, level: Level, state: Mapping[str, Any]) -> None:
        self._level = level
        self._stages = {n: s for n, s in level.aggregating.items() if not s.window.growing}
        self._pace: dict[str, float] = dict(state.get("pace", {}))
        self._speed: dict[str, float] = dict(state.get("speed", {}))
        self._answers: float = state.get("answers", 0.0)
        self.usual = Upkeep(**state.get("usual", {}))
        """What batches do on average."""

    def state(self) -> dict[str, Any]:
        """What the next one needs to go on from here, as JSON has it."""
        return {"pace": self._pace, "speed": self._speed, "answers": self._answers, "usual": asdict(self.usual)}

    def expected(
        self,
        manifest: Manifest,
        told: Mapping[str, Punctuation],
        tuples: Mapping[str, float],
        due: Mapping[bool, float],
        seconds: float | None = None,
    ) -> Upkeep:
        """What a batch with so many tuples will do, where streams are punctuated so far.

        So many rows of state are `due` to be merged, by whether windows close. Streams that are followed live go on
        with the time that has passed, however many tuples it has brought.
        """
        further = {stream: self._further(stream, count, seconds) for stream, count in tuples.items()}
        windows = 0
        for name, stage in self._stages.items():
            ahead = tuples if stage.window.attr == ROW_NUM else further
            now, then = (self._closed(stage, manifest, told, by) for by in ({}, ahead))
            if now is not None and then is not None:
                windows += max(then - manifest.windows.closed.get(name, now), 0)
        merged = due[windows > 0]
        return Upkeep(float(windows > 0), windows * self._answers, float(merged > 0), merged)

    def _further(self, stream: str, tuples: float, seconds: float | None) -> float:
        """How far a stream goes on with so many tuples, which have come within so many seconds, if it is live."""
        if seconds is not None and stream in self._speed:
            return seconds * self._speed[stream]
        return tuples * self._pace.get(stream, 0.0)

    def _closed(
        self, stage: Stage, manifest: Manifest, told: Mapping[str, Punctuation], ahead: Mapping[str, float]
    ) -> int | None:
        """The last window that is closed when streams are so far ahead; None if that cannot be told."""
        places = []
        for stream in self._level.origins(stage):
            place = manifest.progress.numbered.get(stream) if stage.window.attr == ROW_NUM else told.get(stream)
            if place is None or isinstance(place, float):
                return None
            places.append(place + round(ahead.get(stream, 0.0)))
        last = closed(stage.window, min(places)) if places else None
        return None if last is None or isinstance(last, float) else int(last)

    def observe(
        self,
        before: Manifest,
        after: Manifest,
        tuples: Mapping[str, int],
        answers: int,
        seconds: float | None = None,
    ) -> Upkeep:
        """Takes in what became of the manifest by a batch, before it is committed; gives what the batch did."""
        for stream, count in tuples.items():
            first, last = (read(manifest.progress.highest.get(stream)) for manifest in (before, after))
            if count and first is not None and last is not None and not isinstance(last, float):
                _follow(self._pace, stream, float(last - first) / count)
                if seconds:
                    _follow(self._speed, stream, float(last - first) / seconds)
        windows = sum(
            max(after.windows.closed[n] - before.windows.closed.get(n, after.windows.closed[n]), 0)
            for n in after.windows.closed
        )
        if windows:
            each = answers / windows
            self._answers = each if not self._answers else self._answers + _RECENT * (each - self._answers)
        kept = {f.folder for f in after.state.files}
        whole = {f.folder: f.rows for f in before.state.files}
        merges = any(f.merges and f.folder not in whole for f in after.state.files)
        merged = sum(rows for folder, rows in whole.items() if folder not in kept) if merges else 0
        did = Upkeep(float(windows > 0), float(answers), float(merges), float(merged))
        self.usual = self.usual.towards(did, _RECENT)
        return did


def _follow(known: dict[str, float], stream: str, new: float) -> None:
    """Moves what is known of a stream towards what the last batch showed."""
    known[stream] = known.get(stream, new) + _RECENT * (new - known.get(stream, new))
