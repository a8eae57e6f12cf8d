"""The progress of one stream from batch to batch: what its rule, its groups and the wall clock allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headgate.progress.group import Group
from headgate.progress.place import Punctuation, furthest, least, read, written
from headgate.progress.rule import ProgressRule, Seen
from headgate.progress.slack import SlackRows
from headgate.progress.stream import StreamProgress


class Tracker:
    """Keeps the punctuation of a stream, which never goes back.

    Quiet time is measured on a clock of its own. It stands still while the wall clock steps back.

    >>> from headgate.progress import progress
    >>> tracker = Tracker(progress("v", within=5, by="router", idle=30))
    >>> tracker.observe({"a": Seen(rows=3, highest=20), "b": Seen(rows=1, highest=12)}, now=0)
    >>> tracker.punctuation(now=0)
    7
    >>> tracker.observe({"a": Seen(rows=2, highest=41)}, now=31_000_000)
    >>> tracker.punctuation(now=31_000_000)  # b has been quiet for too long
    36
    """

    def __init__(self, progress: StreamProgress) -> None:
        self.progress = progress
        self._groups: dict[str | None, Group] = {}
        self._told: Punctuation = None
        self._clock = 0
        self._wall: int | None = None

    def observe(self, seen: Mapping[str | None, Seen], now: int, *, held: bool = False) -> None:
        """Take in what a batch showed of each group, at wall-clock time `now` in microseconds.

        `held` says that we held the source back since the last batch: throttled it, shed it, or did not run. That time
        is not quiet time, because nobody knows what would have arrived.
        """
        self._clock = self._last_arrival if held else self._time(now)
        self._wall = now
        for name, batch in seen.items():
            if batch.rows:
                self._groups.setdefault(name, Group(self.progress)).observe(batch, self._clock)

    def punctuation(self, now: int) -> Punctuation:
        """Give the place that no later tuple is below: None while there is none, infinity after the end."""
        self._told = furthest((self._told, self._due(now)))
        return self._told

    def is_idle(self, now: int) -> bool:
        """Give whether the whole stream has been quiet for longer than `idle`."""
        idle = self.progress.idle
        return idle is not None and self._time(now) - self._last_arrival > idle

    def end(self) -> None:
        """Take note that the input is over."""
        self._told = math.inf

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {
            "told": written(self._told),
            "clock": self._clock,
            "wall": self._wall,
            "by": self.progress.by,
            "kind": _kind(self.progress.rule),
            "groups": [[name, group.state()] for name, group in self._groups.items()],
        }

    @classmethod
    def restored(cls, progress: StreamProgress, state: Mapping[str, Any]) -> Tracker:
        """Give the tracker that was in this state. Where groups are by another column now, only what was told holds."""
        tracker = cls(progress)
        tracker._told = read(state["told"])
        named = any(name is not None for name, _ in state["groups"])
        if state.get("by", progress.by) != progress.by or (named and progress.by is None):
            return tracker
        tracker._clock, tracker._wall = state["clock"], state["wall"]
        same = state.get("kind", _OLD_KIND) == _kind(progress.rule)
        tracker._groups = {name: Group.restored(progress, group, same) for name, group in state["groups"]}
        return tracker

    @property
    def _last_arrival(self) -> int:
        """When the last tuple came, or when we began to wait for the first one."""
        return max((group.last for group in self._groups.values()), default=0)

    def _time(self, now: int) -> int:
        """The tracker's own time, which begins at 0 with the first question or batch."""
        if self._wall is None:
            self._wall = now
        return self._clock + max(0, now - self._wall)

    def _due(self, now: int) -> Punctuation:
        """What holds now, whatever was told before."""
        time, idle = self._time(now), self.progress.idle
        groups = self._groups.values()
        awake = [group.bound for group in groups if idle is None or time - group.last <= idle]
        if awake:
            return least(awake)
        return self._in_a_lull(time)

    def _in_a_lull(self, time: int) -> Punctuation:
        """Where the groups that fell quiet last had come to. A time goes on from there with the wall clock."""
        known = [(group.last, group.bound) for group in self._groups.values() if group.bound is not None]
        idle = self.progress.idle
        if not known or idle is None:
            return None
        last = max(heard for heard, _ in known)
        bound = min(bound for heard, bound in known if heard == last)
        return bound if self.progress.numeric else bound + time - self._last_arrival - idle


def _kind(rule: ProgressRule) -> str:
    return type(rule).__name__


#: Before checkpoints told the kind of the rule, slack was the only one with a state.
_OLD_KIND = _kind(SlackRows(0))
