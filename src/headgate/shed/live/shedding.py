"""Shedding in a flow: what of each batch is left out, decided before it is read, and what became of it.

What policies say themselves holds always. With a promise about overload, the cost model says before each batch how long
it would take, the controller how long it may take, and the planners what to leave out for it. What is learned for that
is part of the manifest. (A restart forgets only which plan a join would rather stay with.) The decision itself is
written down before the batch: one that runs again leaves out the same.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headgate.shed.controller import Controller, Overload
from headgate.shed.estimate.sql import Sampling
from headgate.shed.fit import losses_of
from headgate.shed.live.decide import SHORTEST, Agreed, Decider
from headgate.shed.live.fates import Fates
from headgate.shed.live.joins import JoinShedding
from headgate.shed.live.learned import Learned
from headgate.shed.live.ledgers import Subsets
from headgate.shed.live.status import status
from headgate.shed.live.workload import Taken
from headgate.shed.shape import shape_of

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.progress.closing import Closing
    from headgate.protocol.decision import Drops
    from headgate.protocol.figures import Figures
    from headgate.protocol.manifest import Manifest
    from headgate.shed.fate import Fate
    from headgate.shed.join.plan import JoinPlan
    from headgate.shed.live.ahead import Ahead
    from headgate.shed.policy import Policy

_log = logging.getLogger(__name__)
#: So many changes of plan are remembered.
_EVENTS = 50
#: The rate that is tried while the model is calibrated, by batches that leave this part of the target free.
_TRIED, _FREE = 0.1, 0.5
#: The rate that is tried of queries whose table is read apart from the others.
_APART = 0.9


class Shedding:
    """Decides what is left out, and follows what that does."""

    def __init__(
        self,
        levels: Sequence[Level],
        stages: Mapping[str, Stage],
        queries: Mapping[str, Continuous],
        policies: Mapping[str, Policy],
        overload: Overload | None,
        state: Mapping[str, Any],
    ) -> None:
        losses = losses_of(queries, policies)
        agreed = {name: Agreed(shape_of(queries[name]), policies[name], loss) for name, loss in losses.items()}
        self.policies, self.overload = policies, overload
        self.subsets = Subsets(queries, losses, state)
        self.joins = JoinShedding(queries, losses, state)
        self.learned = Learned(levels[0], policies, losses, self.joins, state)
        self.decider = Decider(agreed, overload, self.learned, self.subsets, self.joins, state)
        self._fates = Fates(stages, queries, self.subsets, self.joins, state)
        self._learns = overload is not None or "costs" in state
        self.events: list[dict[str, Any]] = list(state.get("events", []))
        """The last changes of plan."""

    @property
    def controller(self) -> Controller | None:
        """What keeps batches within the target, if one was promised."""
        return self.decider.controller

    def status(self, dropped: Drops | None) -> dict[str, Any]:
        """What users are told, after a batch that left this out."""
        return status(self, dropped)

    def state(self) -> dict[str, Any]:
        """What the next one needs to go on from here, as JSON has it."""
        decided = self.subsets.state() | self.joins.state() | self._fates.state()
        if chosen := {name: share for name, share in self.decider.chosen.items() if name in self.policies}:
            decided["chosen"] = chosen
        if not self._learns:
            return decided
        return {
            **decided,
            **self.learned.state(self.policies),
            "suspended": self.decider.suspended,
            "controller": self.controller.state() if self.controller else None,
            "events": self.events,
        }

    # Before a batch

    def decide(self, manifest: Manifest, ahead: Ahead) -> Drops:
        """What to leave out of a batch."""
        return self.decider.decide(manifest, ahead)

    def sampling(self, batch: int, rates: Mapping[str, float]) -> Sampling:
        """What tables take of a batch, at the rates that were decided."""
        warm = self.decider.warms(batch)
        return Sampling(rates, batch, self.subsets.dropped(warm), self.subsets.pieces(warm))

    def sums(self) -> dict[str, tuple[int, str]]:
        """What has to be added up of the partial rows of a batch: tables and columns, by name."""
        return {} if self.overload is None else self.learned.sums.asked()

    # During a batch

    def sampled(self, figures: Figures, rates: Mapping[str, float], before: Manifest, after: Manifest) -> None:
        """Takes note of the rates that the tuples of a batch were taken at, and of where they were."""
        self._fates.sampled(figures, rates, (before, after), self.decider.warming)

    def pairs_sampled(self, figures: Figures, plans: Mapping[str, JoinPlan]) -> None:
        """Takes note of the rates that the pairs of a batch were taken at, and of where their tuples can be."""
        self._fates.pairs_sampled(figures, plans)

    def fates(self, level: Level, closings: Mapping[str, Closing]) -> dict[str, Fate]:
        """What has become of the windows that close."""
        return self._fates.of(level, closings)

    def lost(self, decided: Drops, before: Manifest, after: Manifest) -> dict[str, int]:
        """How many windows are not answered, by query."""
        return self._fates.lost(decided, before, after)

    def closed(self, manifest: Manifest) -> None:
        """Forgets what only closed windows needed."""
        self.subsets.forget(manifest)
        self._fates.forget(manifest)

    # After a batch

    def observe(
        self,
        decided: Drops,
        amounts: Mapping[str, float | None],
        figures: Figures,
        outlooks: Mapping[str, Any],
        manifests: tuple[Manifest, Manifest],
        answers: int,
        seconds: float,
        interval: float | None,
    ) -> None:
        """Takes in what a batch did, with what it made of the manifest, and how long it took."""
        if self.controller is None:
            return
        seconds, interval = max(seconds, SHORTEST), None if interval is None else max(interval, SHORTEST)
        taken = Taken(decided.rates, decided.needed)
        did = self.learned.did(taken, amounts, figures, manifests, answers, interval)
        self.learned.judge(outlooks)
        self.controller.observe(predicted=self.learned.costs.predict(did), observed=seconds)
        self.learned.costs.observe(did, seconds)

    def to_try(self, batch: int, seconds: float) -> dict[str, float]:
        """The rates at which a batch is ingested once more, to know what that costs, if it took so long without it.

        While all tuples are taken, the cost of reading them cannot be told from the cost of using them. In turns, all
        tables share a sample, and one reads apart: both are warm when they are needed.
        """
        learned = self.learned
        if self.controller is None or learned.costs.calibrated or learned.load is None:
            return {}
        if seconds >= (1 - _FREE) * self.controller.overload.target:
            return {}
        rates = {name: _TRIED for name in learned.confidences if name not in self.decider.chosen}
        first = learned.workload.apart(learned.constants())[1:2] if batch % 4 < 2 else []
        apart = {query for tables in first for query in learned.workload.queries(tables)}
        return {name: _APART if name in apart else rate for name, rate in rates.items()}

    def tried(self, rates: Mapping[str, float], seconds: float) -> None:
        """Takes in how long the last batch would have taken at these rates."""
        learned = self.learned
        assert learned.load is not None
        learned.costs.observe(learned.workload.amounts(learned.load, Taken(rates), learned.statistics), seconds)

    def happened(self, batch: int, decided: Drops) -> None:
        """Takes note of a decision that was carried out, and logs a change of plan."""
        self.decider.chosen = dict(decided.chosen)
        if decided.event:
            self.events = [
                *self.events[1 - _EVENTS :],
                {"batch": batch, "shed": decided.shedding, "why": decided.event},
            ]
            _log.warning("batch %d: %s: %s", batch, "sheds" if decided.shedding else "exact again", decided.event)
