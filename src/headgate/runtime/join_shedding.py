"""Joins that are shed in a flow: what is left out of each in a batch, and how the batch is run without it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType
from sqlglot import exp

from headgate.operators.join_dropping import SampledSide, ShedSide, sampled_pairs, subset_pairs
from headgate.operators.matching import Side
from headgate.plan.nodes import SAMPLING_RATE, Field, Filter, Named, Node, Project, Source
from headgate.plan.stages import ANSWERS
from headgate.runtime.evaluate import answer
from headgate.runtime.tuples import Keeper
from headgate.shedding.join_cost import Shares
from headgate.shedding.join_plan import JoinPlan, PairSample, PairSubset, restored
from headgate.shedding.policy import Sample, Subset, shed_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.plan.stages import Continuous, Stage
    from headgate.shedding.policy import Policy


def shed_keeper(keeper: Keeper, queries: Mapping[str, Continuous], policies: Mapping[str, Policy]) -> Keeper:
    """What keeps the tuples of a side of a join: with their coins, if the join is shed."""
    query = next((q for q in queries.values() if (join := shed_join(q)) and join.name == keeper.stage), None)
    if query is None or not isinstance(keeper.side, Side):
        return keeper
    match policies[query.name]:
        case Subset():
            side: ShedSide = ShedSide(keeper.side.node, keeper.side.which)
        case Sample():
            side = SampledSide(keeper.side.node, keeper.side.which)
        case _:
            return keeper
    return replace(keeper, side=side, schema=StructType([*keeper.schema, *side.extra]))


class JoinDrops:
    """What is left out of joins in one batch, carried out."""

    def __init__(self, plans: Mapping[str, Any], batch: int) -> None:
        self.plans: dict[str, JoinPlan] = {stage: restored(document) for stage, document in plans.items()}
        self._batch = batch

    def new(self, keeper: Keeper, df: DataFrame) -> DataFrame:
        """The new tuples of a side, with their coins, without those that do nothing."""
        plan, side = self.plans[keeper.stage], keeper.side
        assert isinstance(side, ShedSide)
        digest = hashlib.blake2b(f"{self._batch} {keeper.column}".encode(), digest_size=8).digest()
        coins = side.tossed(df, int.from_bytes(digest, signed=True))
        if isinstance(plan, PairSubset):
            return side.taken(plan, coins)
        assert isinstance(side, SampledSide)
        return side.flipped(coins, plan)

    def kept(self, keepers: Sequence[Keeper], new: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Of joins of which not all new tuples are kept, those that are."""
        found = {}
        for keeper in keepers:
            plan = self.plans.get(keeper.stage)
            if isinstance(plan, PairSubset):
                assert isinstance(keeper.side, ShedSide)
                found[keeper.column] = keeper.side.kept(plan, new[keeper.column])
        return found

    def answers(
        self,
        stage: Stage,
        keepers: Sequence[Keeper],
        kept: Sequence[DataFrame | None],
        new: Sequence[DataFrame | None],
    ) -> DataFrame | None:
        """The pairs with a tuple of this batch that are not left out, as the query gives them."""
        plan, sides = self.plans[stage.name], [k.side for k in keepers if isinstance(k.side, ShedSide)]
        assert stage.join is not None
        if isinstance(plan, PairSubset):
            found = subset_pairs(stage.join, sides, plan, kept, new)
            return None if found is None else answer(stage.behind, {ANSWERS: found})
        found = sampled_pairs(stage.join, [s for s in sides if isinstance(s, SampledSide)], plan, kept, new)
        return None if found is None else answer(_with_rate(stage.behind), {ANSWERS: found})


class JoinShedding:
    """Decides what is left out of joins."""

    def __init__(self, queries: Mapping[str, Continuous], policies: Mapping[str, Policy]) -> None:
        joins = {
            name: shed_join(query) for name, query in queries.items() if isinstance(policies[name], Subset | Sample)
        }
        self._stages = {name: stage for name, stage in joins.items() if stage is not None}
        self._policies = {name: policies[name] for name in self._stages}

    def decide(self) -> dict[str, Any]:
        """What to leave out of a batch, by join."""
        found = {}
        for name, stage in self._stages.items():
            match self._policies[name]:
                case Sample(rate=rate):
                    plan: JoinPlan = PairSample(rate or 1.0)
                case Subset(drop=drop):
                    share = 1 - (drop or 0.0)
                    plan = PairSubset(Shares(share, share)) if drop else PairSubset()
            found[stage.name] = plan.document()
        return found


def _with_rate(plan: Node) -> Node:
    """The plan over pairs with the rate of each as one more column."""
    match plan:
        case Source():
            return replace(plan, columns=(*plan.columns, Field(SAMPLING_RATE, "double")))
        case Project():
            rate = Named(SAMPLING_RATE, exp.column(SAMPLING_RATE))
            return replace(plan, input=_with_rate(plan.input), columns=(*plan.columns, rate))
        case Filter():
            return replace(plan, input=_with_rate(plan.input))
    raise TypeError(f"{type(plan).__name__} is not over pairs")
