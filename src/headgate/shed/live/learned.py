"""What the batches of a flow have told so far: what work costs, how tuples come, how large errors of samples are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headgate.shed.learn.costs import Coefficients, CostModel
from headgate.shed.learn.statistics import Statistics
from headgate.shed.live.sums import MOST_TUPLES, Sums, arrived, by_amount, finite
from headgate.shed.live.upkeep import Rhythm
from headgate.shed.live.workload import PRIOR, BatchLoad, Knowledge, Taken, Workload, join_prices, with_joins
from headgate.shed.losses import Tuples

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.protocol.figures import Figures
    from headgate.protocol.manifest import Manifest
    from headgate.shed.join.work import Prices
    from headgate.shed.live.joins import JoinShedding
    from headgate.shed.losses import Loss
    from headgate.shed.policy import Policy

#: How much the last answers count in what is known of errors.
_RECENT = 0.3
#: What is measured may be anything: no logarithm of an error is taken to be larger.
_MOST_SQUARED = 600.0


class Learned:
    """Learns from each batch, and predicts how long one will take."""

    def __init__(
        self,
        level: Level,
        policies: Mapping[str, Policy],
        losses: Mapping[str, Loss],
        joins: JoinShedding,
        state: Mapping[str, Any],
    ) -> None:
        self.joins, self.sums = joins, Sums(level)
        self.workload = Workload(level, policies, losses, joins.stages)
        self.confidences = {name: loss.confidence for name, loss in losses.items() if isinstance(loss, Tuples)}
        """The queries whose tuples are sampled, with the confidence of their limits."""
        self.statistics, self.costs = Statistics(), CostModel(PRIOR)
        if "costs" in state:
            self.statistics, self.costs = Statistics.restored(state["statistics"]), CostModel.restored(state["costs"])
        self.rhythm = Rhythm(level, state.get("rhythm", {}))
        self._squared: dict[str, float] = dict(state.get("squared", {}))
        self.missed: dict[str, list[float]] = dict(state.get("missed", {}))
        """By query, the tuples of groups of which none was taken, and of the others."""
        self._partials: float = state.get("partials", 0.0)
        self.load: BatchLoad | None = None
        """What the last batch brought."""

    def state(self, queries: Mapping[str, object]) -> dict[str, Any]:
        """What the next one needs to go on from here, as JSON has it, about the queries that there are."""
        return {
            "statistics": self.statistics.state(),
            "costs": self.costs.state(),
            "squared": {name: value for name, value in self._squared.items() if name in queries},
            "partials": self._partials,
            "rhythm": self.rhythm.state(),
            "missed": {name: value for name, value in self.missed.items() if name in queries},
        }

    # Before a batch

    def expected(self, amounts: Mapping[str, float | None], interval: float) -> BatchLoad:
        """What a batch will bring: by how much there is to read, or else as it used to be."""
        tuples = {}
        for stream, amount in amounts.items():
            each, rate = self.statistics.selectivity(by_amount(stream)), self.statistics.rate(stream)
            if amount is not None and each is not None:
                tuples[stream] = amount * each
            elif rate is not None:
                tuples[stream] = rate.a_batch if rate.a_second is None else rate.a_second * interval
        limited = {stream: min(max(expected, 0.0), MOST_TUPLES) for stream, expected in tuples.items()}
        return BatchLoad(limited, self._partials, self.rhythm.usual)

    def predicted(self, load: BatchLoad, taken: Taken, costs: Coefficients | None = None) -> float:
        """The seconds that a batch with such a load will take."""
        amounts = self.workload.amounts(load, taken, self.statistics)
        work = with_joins(amounts, self.joins.work(load.tuples, taken.joins).values())
        return self.costs.predict(work) if costs is None else costs.seconds(work)

    @property
    def prices(self) -> Prices:
        """What the work of joins costs."""
        return join_prices(self.costs.coefficients)

    @property
    def knowledge(self) -> Knowledge:
        """All that the planner of samples needs to know."""
        return Knowledge(self.statistics, self.costs.coefficients, self.constants())

    def constants(self) -> dict[str, float]:
        """The constants of the queries' errors, as far as answers have told."""
        found = {}
        for name, confidence in self.confidences.items():
            if name in self._squared:
                squared = min(max(self._squared[name], -_MOST_SQUARED), _MOST_SQUARED)
                bound = math.log(2 / (1 - confidence)) / 2 * math.exp(squared)
                found[name] = min(math.sqrt(bound), 1.0)
        return found

    # After a batch

    def did(
        self,
        taken: Taken,
        amounts: Mapping[str, float | None],
        figures: Figures,
        manifests: tuple[Manifest, Manifest],
        answers: int,
        interval: float | None,
    ) -> dict[str, float]:
        """Take in what a batch showed; give the amounts of work that it did."""
        self.sums.learn(self.statistics, amounts, figures, taken.rates, interval)
        self._partials = float(figures.panes)
        tuples = arrived(amounts, figures)
        upkeep = self.rhythm.observe(*manifests, tuples, answers, interval)
        self.load = BatchLoad({s: float(n) for s, n in tuples.items()}, self._partials, upkeep)
        return with_joins(self.workload.amounts(self.load, taken, self.statistics), self.joins.did.values())

    def judge(self, outlooks: Mapping[str, Any]) -> None:
        """Take in what the answers of a batch say about errors, and about groups that were missed."""
        for query, (squared, tuples, missed) in outlooks.items():
            if squared is not None and math.isfinite(squared):  # Values may be infinite, or not be numbers.
                known = self._squared.get(query, squared)
                self._squared[query] = known + _RECENT * (squared - known)
            self.missed[query] = [finite(missed), finite(tuples)]
