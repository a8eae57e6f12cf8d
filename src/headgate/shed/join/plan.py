"""What is left out of a join in a batch, as the decision of the batch has it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

from headgate.shed.join.cost import EVERYTHING, JoinShares
from headgate.shed.join.sample import Coins

#: Why a plan that leaves nothing out is run as one that does: its code is warm, and its price known, when it is needed.
WARM = "to get warm"
#: Every tuple is kept, and looks for others.
BY_PAIRS = Coins(None, None)
#: No tuple is kept, and none looks for others.
_NOBODY = Coins(1, 1, 0.0, 0.0)


@dataclass(frozen=True)
class PairSubset:
    """The shares of a join's tuples that are kept and that look for others; keys are given by their hashes.

    >>> plan = PairSubset(JoinShares(0.5, 0.5), {7: EVERYTHING, 8: EVERYTHING}, "an example")
    >>> PairSubset.restored(plan.document()) == plan
    True
    """

    others: JoinShares = EVERYTHING
    known: Mapping[int, JoinShares] | None = None
    why: str = ""
    room: PairSubset | None = None
    """What is kept after the batch, where there is no room for all of it."""

    @cached_property
    def classes(self) -> Mapping[JoinShares, Sequence[int]]:
        """The keys that are known, by how they are treated."""
        found: dict[JoinShares, list[int]] = {}
        for key, shares in (self.known or {}).items():
            found.setdefault(shares, []).append(key)
        return found

    @property
    def keyed(self) -> dict[Hashable, JoinShares]:
        """The shares of the keys that are known."""
        return {key: shares for key, shares in (self.known or {}).items()}  # noqa: C416 (a mapping of other keys)

    @property
    def exact(self) -> bool:
        """Whether nothing is left out, and nothing has to be looked at for that."""
        return self.others == EVERYTHING and not self.known and self.why != WARM

    def document(self) -> dict[str, Any]:
        """The plan as JSON has it: keys that are treated alike stand together."""
        known = [[astuple(shares), keys] for shares, keys in self.classes.items()]
        room = self.room.document() if self.room is not None else None
        return {"others": astuple(self.others), "known": known, "why": self.why, "room": room}

    @classmethod
    def restored(cls, document: Mapping[str, Any]) -> PairSubset:
        """The plan of a document."""
        known = {key: JoinShares(*shares) for shares, keys in document["known"] for key in keys}
        room = cls.restored(document["room"]) if document["room"] is not None else None
        return cls(JoinShares(*document["others"]), known or None, document["why"], room)


@dataclass(frozen=True)
class PairSample:
    """The rate at which the pairs of a join are sampled, and the coins that the new tuples of each side flip.

    >>> plan = PairSample(0.5, Coins(4, None), {BY_PAIRS: (7, 8)}, "an example")
    >>> PairSample.restored(plan.document()) == plan
    True
    """

    rate: float = 1.0
    others: Coins = BY_PAIRS
    classes: Mapping[Coins, Sequence[int]] = field(default_factory=dict)
    """The coins of frequent keys, which are given by their hashes."""
    why: str = ""

    def success(self, coins: Coins) -> tuple[float, float]:
        """By side, how likely a coin of a tuple says yes: it makes up for tuples that do not look."""
        return self._success(coins.left, coins.look_right), self._success(coins.right, coins.look_left)

    def _success(self, cut: int | None, looking: float) -> float:
        if cut is None:
            return 1.0
        return min(1.0, self.rate / looking) if looking else 0.0

    @cached_property
    def numbers(self) -> Mapping[Hashable, int]:
        """The class of each key that is known, from 1 on."""
        return {key: number for number, keys in enumerate(self.classes.values(), 1) for key in keys}

    def document(self) -> dict[str, Any]:
        """The plan as JSON has it: keys that are treated alike stand together."""
        classes = [[astuple(coins), keys] for coins, keys in self.classes.items()]
        return {"rate": self.rate, "others": astuple(self.others), "classes": classes, "why": self.why}

    @classmethod
    def restored(cls, document: Mapping[str, Any]) -> PairSample:
        """The plan of a document."""
        classes = {Coins(*coins): tuple(keys) for coins, keys in document["classes"]}
        return cls(document["rate"], Coins(*document["others"]), classes, document["why"])


JoinPlan = PairSubset | PairSample
#: A sample that nothing is in.
NO_SAMPLE = PairSample(0.0, _NOBODY)


def restored(document: Mapping[str, Any]) -> JoinPlan:
    """The plan of a document of either kind."""
    return PairSample.restored(document) if "rate" in document else PairSubset.restored(document)
