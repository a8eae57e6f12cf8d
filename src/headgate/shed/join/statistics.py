"""What is known of the tuples that come to a join: how many, of which keys, how far apart, and what they find.

All of it is by batch: rates are tuples a batch, and windows are as many batches long as the streams take to go on by
them. Older batches count less and less, so that keys which drift are followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headgate.shed.join.keys import KeyLoads, KeyRates, key_loads
from headgate.shed.join.plan import JoinPlan, PairSample, PairSubset
from headgate.shed.join.stock import Stock, Stretch
from headgate.shed.join.work import Work, parts, work
from headgate.shed.learn.statistics import Smoothed

#: The part of what was counted that is left after a batch.
_KEEP = 0.7
#: So many keys of a side are known at most. A subset is of the few that find the most; of a sample, it matters for
#: every tuple how many it finds.
KEYS: dict[type[JoinPlan], int] = {PairSubset: 500, PairSample: 2000}
#: How much the last batch counts in figures that are averages.
_RECENT = 0.3
#: The window of a side of which nothing is there.
_TINY = 1e-12


@dataclass(frozen=True)
class SideSeen:
    """What a look at the new tuples of a side found. Keys are given by their hashes."""

    tuples: int = 0
    keyed: int = 0
    """How many of them have a key. In a join without keys, all count."""
    keys: int = 1
    frequent: Mapping[int, float] = field(default_factory=dict)
    lowest: float | None = None
    highest: float | None = None


@dataclass
class _Side:
    """What is known of one side."""

    tuples: float = 0.0
    keyed: float = 0.0
    keys: float = 1.0
    counted: float = 0.0
    frequent: dict[int, float] = field(default_factory=dict)
    highest: float | None = None

    def observe(self, seen: SideSeen, keys: int) -> float | None:
        """Takes in a batch, and remembers so many of its keys; gives how far it went."""
        part = _RECENT if self.counted else 1.0
        self.tuples += part * (seen.tuples - self.tuples)
        if seen.tuples:
            self.keyed += part * (seen.keyed / seen.tuples - self.keyed)
            self.keys += part * (seen.keys - self.keys)
        self.counted = _KEEP * self.counted + seen.keyed
        known = {key: _KEEP * count for key, count in self.frequent.items()}
        for key, count in seen.frequent.items():
            known[key] = known.get(key, 0.0) + count
        self.frequent = dict(sorted(known.items(), key=lambda item: -item[1])[:keys])
        if seen.highest is None or seen.lowest is None:
            return None
        since = self.highest if self.highest is not None else seen.lowest
        self.highest = max(seen.highest, since)
        return self.highest - since

    def rates(self, tuples: float) -> KeyRates:
        """The rates of its keys if so many tuples come in a batch."""
        total = tuples * min(self.keyed, 1.0)
        # Sketches count a little too much rather than too little.
        counted = max(self.counted, sum(self.frequent.values()))
        each = total / counted if counted else 0.0
        return KeyRates(total, {key: count * each for key, count in self.frequent.items()})


class JoinStatistics:
    """Follows the tuples of one join. Its sides are kept for the lengths of its windows.

    >>> from headgate.shed.join.plan import PairSubset
    >>> seen = SideSeen(tuples=100, keyed=100, keys=10, lowest=0.0, highest=50.0)
    >>> statistics = JoinStatistics((100.0, 200.0))
    >>> statistics.observe((seen, seen), pairs=500, plan=PairSubset())
    >>> loads = statistics.loads((100, 100))
    >>> loads.others.left_window, loads.others.right_window, loads.others.selectivity
    (2.0, 4.0, 0.1)
    """

    def __init__(self, windows: tuple[float, float], state: Mapping[str, Any] | None = None) -> None:
        self._windows = windows
        self._sides = [_Side(), _Side()]
        self._advanced: Smoothed | None = None
        self._scaled: Smoothed | None = None
        self._stock = Stock()
        self._each: KeyLoads | None = None
        if state:
            self._sides = [
                _Side(**{**side, "frequent": {int(k): count for k, count in side["frequent"].items()}})
                for side in state["sides"]
            ]
            self._stock = Stock.restored(state["stock"])
            self._advanced, self._scaled = (Smoothed(**s) if s else None for s in (state["advance"], state["scale"]))

    def state(self) -> dict[str, Any]:
        """What is known, as JSON has it."""
        return {
            "sides": [asdict(side) for side in self._sides],
            "advance": asdict(self._advanced) if self._advanced else None,
            "stock": self._stock.state(),
            "scale": asdict(self._scaled) if self._scaled else None,
        }

    def copy(self) -> JoinStatistics:
        """What is known now, to compare with what will be."""
        return JoinStatistics(self._windows, self.state())

    @property
    def known(self) -> bool:
        """Whether a batch has told anything."""
        return self._advance > 0

    @property
    def scale(self) -> float:
        """The pairs that come out for each one that the keys alone would make."""
        return self._scaled.value if self._scaled is not None else 1.0

    @property
    def _advance(self) -> float:
        """How far the streams go on in a batch."""
        return self._advanced.value if self._advanced is not None else 0.0

    @property
    def tuples(self) -> tuple[float, ...]:
        """How many tuples of each side come in a batch."""
        return tuple(side.tuples for side in self._sides)

    @property
    def frequent(self) -> frozenset[int]:
        """The keys that are known."""
        return frozenset[int]().union(*(side.frequent for side in self._sides))

    def observe(self, seen: Sequence[SideSeen], pairs: int, plan: JoinPlan) -> None:
        """Takes in what a batch brought, and how many pairs it made under a plan."""
        self._each = None
        went = [side.observe(s, KEYS[type(plan)]) for side, s in zip(self._sides, seen, strict=True)]
        advances = [step for step in went if step is not None and step > 0]
        if advances:
            self._advanced = _then(self._advanced, sum(advances) / len(advances))
        lows, highs = ([at for s in seen if (at := getattr(s, end)) is not None] for end in ("lowest", "highest"))
        if not lows:
            return
        tuples = (seen[0].tuples, seen[1].tuples)
        if (expected := self.next(tuples, plan, (min(lows), max(highs))).pairs) > 0:
            self._scaled = _then(self._scaled, pairs / expected)
        new = self._stretch(tuples, plan, min(lows), max(highs))
        self._stock = self._stock.then(new, max(self._windows))

    def next(self, tuples: Sequence[float], plan: JoinPlan, span: tuple[float, float] | None = None) -> Work:
        """The work of a batch of so many tuples under a plan, with the tuples held now and without the scale."""
        if span is None:
            # As far after the last one, and as long, as batches are.
            last = self._stock.stretches[-1] if self._stock.stretches else None
            end = self._advance + (last.high if last is not None else 0.0)
            span = (end - (last.high - last.low if last is not None else self._advance), end)
        # Of a side that brings nothing now, tuples may be held.
        some = (max(tuples[0], 1.0), max(tuples[1], 1.0))
        new = self._stretch(some, plan, *span)
        left, right = (self._stock.filled(side, new, window) for side, window in enumerate(self._windows))
        found = work(self.loads(some, (left, right)), plan)
        return replace(found, held=self._stock.held, came=sum(tuples))

    def _stretch(self, tuples: Sequence[float], plan: JoinPlan, low: float, high: float) -> Stretch:
        return Stretch(low, high, (tuples[0], tuples[1]), *parts(self.loads(tuples), plan))

    def loads(self, tuples: Sequence[float], filled: tuple[float, float] | None = None) -> KeyLoads:
        """The components of the join, where so many tuples of each side come in a batch, without the scale.

        Windows are as long as they are, or `filled` with so many batches like that.
        """
        if self._each is None:
            left, right = (side.rates(1.0) for side in self._sides)
            count = max(1, round(max(side.keys for side in self._sides)), len({*left.known, *right.known}))
            self._each = key_loads(left, right, 1.0, 1.0, count)
        a, b = filled or (w / self._advance if self._advance else 1.0 for w in self._windows)
        return replace(self._each, rates=self._each.rates * list(tuples), windows=(max(a, _TINY), max(b, _TINY)))


def _then(known: Smoothed | None, figure: float) -> Smoothed:
    """A figure followed from batch to batch: smooth while it is steady, at once where it jumps."""
    return Smoothed.first(figure) if known is None else known.then(figure, keep=_KEEP)
