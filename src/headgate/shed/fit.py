"""Whether a query can be shed as its policy says, and how."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.errors import FlowError
from headgate.plan.stream.stages import Continuous
from headgate.shed.estimate.estimators import check_estimated
from headgate.shed.losses import Groups, Loss, Nothing, Pairs, RandomPairs, Tuples, Windows
from headgate.shed.policy import Policy
from headgate.shed.shape import aggregated_pairs_of, pairs_of, shape_of
from headgate.shed.subset.fill import group_columns
from headgate.shed.subset.rules import chain, pipeline


def loss_of(query: Continuous, policy: Policy) -> Loss:
    """Give what a policy may leave out of a query, or an error if that cannot be left out of it."""
    loss = policy.loss(shape_of(query))
    match loss:
        case Nothing():
            pass
        case Tuples():
            _check_estimated(query)
        case Windows() | Groups():
            _check_subset(query, loss)
        case Pairs():
            _check_pairs(query, pairs_of(query) is not None)
        case RandomPairs(confidence=None):
            _check_pairs(query, pairs_of(query) is not None)
        case RandomPairs():
            _check_pairs(query, aggregated_pairs_of(query) is not None)
            _check_estimated(query)
        case _:
            raise FlowError(f"query {query.name}: {type(policy).__name__}.loss gave {loss!r}: give one of hg.losses")
    return loss


def losses_of(queries: Mapping[str, Continuous], policies: Mapping[str, Policy]) -> dict[str, Loss]:
    """Give the loss of each query."""
    return {name: loss_of(queries[name], policy) for name, policy in policies.items()}


def confidences(queries: Mapping[str, Continuous], policies: Mapping[str, Policy]) -> dict[str, float | None]:
    """Give the confidence of the limits of each query that anything may be left out of; None for one without limits."""
    return {
        name: loss.confidence for name, loss in losses_of(queries, policies).items() if not isinstance(loss, Nothing)
    }


def check_tuples_shed(query: Continuous, policy: Policy) -> None:
    """Raises an error if there are no tuples of its streams that can be left out for a query."""
    if isinstance(loss_of(query, policy), Nothing):
        raise FlowError(
            f"query {query.name} is answered exactly, so that nothing of it is shed: give it another policy,"
            " hg.estimate(...) or hg.subset(...), or leave this sink out"
        )
    if any(stage.looks_up for stage in query.stages):
        raise FlowError(
            f"query {query.name} joins its tuples with a table before any are left out, so that those cannot be had:"
            " leave this sink out"
        )


def _check_estimated(query: Continuous) -> None:
    """Raises an error if answers cannot be estimated, or a column is called as the limit of another one is."""
    check_estimated(query, aggregated_pairs_of(query))
    names = {field.name.lower() for field in query.plan.fields}
    for field in query.plan.fields:
        for limit in (f"{field.name}_low", f"{field.name}_high"):
            if limit.lower() in names:
                raise FlowError(
                    f"query {query.name}: {limit} is what an estimate calls a limit of {field.name}: give one of the"
                    " two columns another name with AS"
                )


def _check_pairs(query: Continuous, there: bool) -> None:
    if not there:
        raise FlowError(f"query {query.name} has no pairs to leave out: only a join of streams has")


def _check_subset(query: Continuous, loss: Windows | Groups) -> None:
    """Raises an error if no windows, or groups, of a query can be dropped."""
    windows = chain(query)
    if isinstance(loss, Windows):
        pipeline(windows, loss.gap)
        if loss.fill is not None:
            group_columns(query)
        return
    aggregate = query.stages[0].aggregate
    if len(query.stages) > 1 or aggregate is None or not aggregate.keys:
        raise FlowError(
            f"query {query.name} cannot drop groups: only one aggregate over streams that has keys can; drop windows"
            " instead, hg.subset(gap=...)"
        )
    if windows[0].range < windows[0].slide:
        raise FlowError(f"query {query.name} cannot drop groups: there is room between its windows; drop these instead")
