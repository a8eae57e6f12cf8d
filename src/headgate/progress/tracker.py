"""The progress of one stream over its micro-batches: what its rule, its groups and the wall clock allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headgate.progress.group import Group, Seen
from headgate.progress.place import Punctuation, furthest, least, read, written
from headgate.progress.rule import Rule


class Tracker:
    """Keeps the punctuation of a stream. What has been told is never taken back.

    Quiet time is measured on a clock of its own, which stands still where the wall clock steps back.

    >>> from headgate.progress import progress
    >>> tracker = Tracker(progress("v", within=5, by="router", idle=30))
    >>> tracker.observe({"a": Seen(rows=3, highest=20), "b": Seen(rows=1, highest=12)}, now=0)
    >>> tracker.punctuation(now=0)
    7
    >>> tracker.observe({"a": Seen(rows=2, highest=41)}, now=31_000_000)
    >>> tracker.punctuation(now=31_000_000)  # b has been quiet for too long
    36
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._groups: dict[str | None, Group] = {}
        self._told: Punctuation = None
        self._clock = 0
        self._wall: int | None = None

    def observe(self, seen: Mapping[str | None, Seen], now: int, *, held: bool = False) -> None:
        """Take in what a batch showed of each group, at wall-clock time `now` in microseconds.

        `held` says that we held the source back since the last batch (throttled, shed, or did not run): then
        that time is not quiet time, as nobody knows what would have arrived.
        """
        self._clock = self._last_arrival if held else self._time(now)
        self._wall = now
        for name, batch in seen.items():
            if batch.rows:
                self._groups.setdefault(name, Group(self.rule)).observe(batch, self._clock)

    def punctuation(self, now: int) -> Punctuation:
        """Give the value that no later tuple is below; None while there is none, infinity after the end."""
        self._told = furthest((self._told, self._due(now)))
        return self._told

    def is_idle(self, now: int) -> bool:
        """Give whether the whole stream has been quiet for longer than the rule's `idle`."""
        return self.rule.idle is not None and self._time(now) - self._last_arrival > self.rule.idle

    def end(self) -> None:
        """Take note that the input is over."""
        self._told = math.inf

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {
            "told": written(self._told),
            "clock": self._clock,
            "wall": self._wall,
            "by": self.rule.by,
            "groups": [[name, group.state()] for name, group in self._groups.items()],
        }

    @classmethod
    def restored(cls, rule: Rule, state: Mapping[str, Any]) -> Tracker:
        """Give the tracker that was in this state. Of other groups than those of the rule only what was told holds."""
        tracker = cls(rule)
        tracker._told = read(state["told"])
        named = any(name is not None for name, _ in state["groups"])
        if state.get("by", rule.by) != rule.by or (named and rule.by is None):
            return tracker
        tracker._clock, tracker._wall = state["clock"], state["wall"]
        tracker._groups = {name: Group.restored(rule, group) for name, group in state["groups"]}
        return tracker

    @property
    def _last_arrival(self) -> int:
        """When the last tuple came; before the first one, when we began to wait."""
        return max((group.last for group in self._groups.values()), default=0)

    def _time(self, now: int) -> int:
        """The tracker's own time, which begins at 0 with the first question or batch."""
        if self._wall is None:
            self._wall = now
        return self._clock + max(0, now - self._wall)

    def _due(self, now: int) -> Punctuation:
        """What can be said now, whatever was said before."""
        time, idle = self._time(now), self.rule.idle
        groups = self._groups.values()
        awake = [group.bound for group in groups if idle is None or time - group.last <= idle]
        if awake:
            return least(awake)
        return self._in_a_lull(time)

    def _in_a_lull(self, time: int) -> Punctuation:
        """Where the last groups to fall quiet had come to, and from there on with the wall clock."""
        known = [(group.last, group.bound) for group in self._groups.values() if group.bound is not None]
        if not known or self.rule.idle is None:
            return None
        last = max(heard for heard, _ in known)
        bound = min(bound for heard, bound in known if heard == last)
        return bound if self.rule.numeric else bound + time - self._last_arrival - self.rule.idle
