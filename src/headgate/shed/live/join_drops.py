"""What is left out of joins in one batch, carried out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType
from sqlglot import exp

from headgate.bounded.answer import answer
from headgate.incremental.match import Side, Which
from headgate.plan.logical.nodes import SAMPLING_RATE, Field, Filter, Named, Node, Project, Source
from headgate.plan.stream.stages import ANSWERS
from headgate.shed.estimate.sql import tossed
from headgate.shed.fit import losses_of
from headgate.shed.join.look import Look
from headgate.shed.join.plan import JoinPlan, PairSubset, restored
from headgate.shed.join.sql import SampledSide, ShedSide, sampled_pairs, subset_pairs
from headgate.shed.losses import Pairs, RandomPairs
from headgate.shed.shape import aggregated_pairs_of, pairs_of
from headgate.store.tuples import Keeper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.shed.losses import Loss
    from headgate.shed.policy import Policy

SIDES: tuple[Which, Which] = ("left", "right")


def shed_keeper(keeper: Keeper, queries: Mapping[str, Continuous], policies: Mapping[str, Policy]) -> Keeper:
    """What keeps the tuples of a side of a join: with their coins, if the join is shed."""
    own = joins_shed(queries, losses_of(queries, policies))
    loss = next((loss for stage, loss in own.values() if stage.name == keeper.stage), None)
    if loss is None or not isinstance(keeper.side, Side):
        return keeper
    kind = SampledSide if isinstance(loss, RandomPairs) else ShedSide
    side = kind(keeper.side.node, keeper.side.which)
    return replace(keeper, side=side, schema=StructType([*keeper.schema, *side.extra]))


def joins_shed(
    queries: Mapping[str, Continuous], losses: Mapping[str, Loss]
) -> dict[str, tuple[Stage, Pairs | RandomPairs]]:
    """The joins that are shed, and how, by query."""
    found: dict[str, tuple[Stage, Pairs | RandomPairs]] = {}
    for name, loss in losses.items():
        if isinstance(loss, Pairs | RandomPairs):
            stage = pairs_of(queries[name]) or aggregated_pairs_of(queries[name])
            assert stage is not None
            found[name] = (stage, loss)
    return found


class JoinDrops:
    """What is left out of joins in one batch, carried out."""

    def __init__(self, plans: Mapping[str, Any], batch: int) -> None:
        self.plans: dict[str, JoinPlan] = {stage: restored(document) for stage, document in plans.items()}
        self._parts = {stage: document["parts"] for stage, document in plans.items()}
        self._batch = batch
        self._came: dict[str, DataFrame] = {}
        self.looks: dict[str, dict[Which, Look]] = {}
        """By join, what is seen of the new tuples of each side on the way to where they are kept."""

    def new(self, keeper: Keeper, df: DataFrame) -> DataFrame:
        """The new tuples of a side, with their coins, without those that do nothing."""
        plan, side = self.plans[keeper.stage], keeper.side
        assert isinstance(side, ShedSide)
        digest = hashlib.blake2b(f"{self._batch} {keeper.column}".encode(), digest_size=8).digest()
        coins = tossed(df, int.from_bytes(digest, signed=True))
        if isinstance(plan, PairSubset):
            self._came[keeper.column] = coins
            return side.taken(plan, coins)
        assert isinstance(side, SampledSide)
        self._came[keeper.column] = side.flipped(coins, plan)
        return side.taking_part(self._came[keeper.column])

    def kept(self, keepers: Sequence[Keeper]) -> dict[str, DataFrame]:
        """Of joins that are shed, the new tuples that are kept. All that came are looked at on the way."""
        found = {}
        for keeper in (k for k in keepers if k.stage in self.plans):
            plan, side = self.plans[keeper.stage], keeper.side
            assert isinstance(side, ShedSide)
            part = self._parts[keeper.stage][SIDES.index(side.which)]
            look = self.looks.setdefault(keeper.stage, {})[side.which] = Look(side, plan, part)
            df = look.over(self._came[keeper.column])
            if isinstance(plan, PairSubset):
                df = side.kept(plan, df)
                df = df if plan.room is None else side.kept(plan.room, df)
            elif isinstance(side, SampledSide):
                df = side.taking_part(df)
            found[keeper.column] = df
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
            return None if found is None else answer(stage.after, {ANSWERS: found})
        found = sampled_pairs(stage.join, [s for s in sides if isinstance(s, SampledSide)], plan, kept, new)
        return None if found is None else answer(_with_rate(stage.after), {ANSWERS: found})


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
