"""What users are told about shedding: what is left out, why, and what that costs answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scipy.optimize import brentq

from headgate.protocol.decision import Drops
from headgate.shed.live.rates import rates_of
from headgate.shed.live.workload import SET, Taken, leaf, sharing

if TYPE_CHECKING:
    from headgate.shed.estimate.plan import EstimatePlan
    from headgate.shed.live.shedding import Shedding
    from headgate.shed.live.workload import Workload

#: Rates below it are not told apart.
_FINEST = 1e-4
#: Groups of which no tuple was taken are warned of when they have more than this part of the tuples.
_MATTERS = 0.05


def status(shedding: Shedding, decided: Drops | None) -> dict[str, Any]:
    """What is shed, what is known, and what follows from it; the same keys always."""
    now, overload, learned = decided or Drops(), shedding.overload, shedding.learned
    rates = now.rates
    sampled = {name: rate for name, rate in rates.items() if rate < 1}
    return {
        "joins": shedding.joins.status(now.joins),
        "shedding": {
            "active": now.shedding,
            "target": overload.target if overload is not None else None,
            "rates": sampled,
            "alike": _alike(shedding, rates) if sampled else 1.0,
            "subsets": {name: str(ledger) for name, ledger in shedding.subsets.ledgers.items() if ledger.rate},
            "suspended": now.suspended,
            "errors": _errors(shedding),
            "missed": _missed(shedding),
            "costs": learned.costs.explain() if overload is not None else None,
            "cost_error": learned.costs.error,
            "events": shedding.events,
            "streams": {s: learned.statistics.rate(s) for s in learned.workload.streams},
            "selectivity": {q: learned.statistics.selectivity(q) for q in shedding.policies},
            "values": {a: learned.statistics.values(a) for a in learned.sums.aggregates},
        },
    }


def explain(shedding: Shedding, decided: Drops | None) -> str:
    """The trees of the streams with what is kept where, and what is expected of it."""
    if decided is None:
        return ""
    return "\n".join(filter(None, [_explained(shedding, decided), *shedding.joins.explain(decided.joins)]))


def _explained(shedding: Shedding, decided: Drops) -> str:
    if shedding.overload is None:
        return ""
    allowed = f"Overload: batches take at most {shedding.overload.target:g} s"
    if not decided.shedding:
        return f"{allowed}; the last one was not shed, and predicted to take {decided.predicted:.3g} s"
    lines = [f"{allowed}; the last one was shed, and predicted to take {decided.predicted:.3g} s then"]
    if (plan := shedding.decider.plan) is not None:
        lines += [f"  {plan.why}", *_tree(shedding.learned.workload, plan)]
    dropped = {name: ledger for name, ledger in shedding.subsets.ledgers.items() if ledger.rate}
    lines += [f"  {ledger}" for name, ledger in dropped.items() if name not in decided.suspended]
    return "\n".join([*lines, *(f"  {name} is suspended: {why}" for name, why in decided.suspended.items())])


def _tree(workload: Workload, plan: EstimatePlan) -> list[str]:
    lines = []
    for stream in workload.streams:
        lines.append(f"  Stream {stream}")
        tables = workload.shared(stream)
        rates = {t: max(plan.queries[leaf(q, t, stream)].rate for q in own) for t, own in tables.items()}
        shared = sharing(rates)
        for table, queries in tables.items():
            of = f", of {rates[table]:.3g} of the tuples" if rates[table] < 1 else ""
            lines.append(f"    Table {table}{of}{', in a sample that is shared' if table in shared else ''}")
            for query in queries:
                outlook = plan.queries[leaf(query, table, stream)]
                error = f", error at most {outlook.error:.2%}" if 0 < outlook.error < 1 else ""
                lines.append(f"      {query} at {outlook.rate:.3g}{error}: {outlook.why}")
    for query, streams in workload.sets.items():
        outlooks = [plan.queries[leaf(query, SET, stream)] for stream in streams]
        lines += [f"    {query} at {outlook.rate:.3g}: {outlook.why}" for outlook in outlooks]
    return lines


def _errors(shedding: Shedding) -> dict[str, float]:
    """The relative error that the plan expects of each sampled query; of a set, the part that is missing."""
    if shedding.decider.plan is None:
        return {}
    rates, sets = rates_of(shedding.decider.plan, shedding.learned), shedding.learned.workload.sets
    constants = shedding.learned.constants()
    sampled = {name: rate for name, rate in rates.items() if 0 < rate < 1}
    aggregated = {n: min(constants.get(n, 1.0) / r, 1.0) for n, r in sampled.items() if n not in sets}
    return aggregated | {name: 1 - rate for name, rate in sampled.items() if name in sets}


def _alike(shedding: Shedding, rates: Mapping[str, float]) -> float:
    """The rate at which all queries could be sampled in the time that these rates take, as at the input."""
    learned, load = shedding.learned, shedding.learned.load
    if load is None:
        return 1.0
    taken = learned.predicted(load, Taken(rates))

    def excess(rate: float) -> float:
        return learned.predicted(load, Taken(dict.fromkeys(rates, rate))) - taken

    if excess(1.0) <= 0 or excess(_FINEST) >= 0:
        return 1.0 if excess(1.0) <= 0 else _FINEST
    return float(brentq(excess, _FINEST, 1.0, xtol=_FINEST))


def _missed(shedding: Shedding) -> dict[str, str]:
    """By query, how many tuples belong to groups of which none was taken, where that matters."""
    found = {}
    for name, (missed, tuples) in shedding.learned.missed.items():
        share = missed / (missed + tuples) if missed else 0.0
        if share > _MATTERS:
            found[name] = (
                f"about {missed:.0f} tuples, {share:.0%} of all, belong to groups that were not delivered: small"
                " groups vanish from a sample; take fewer keys, or hg.subset(by='group')"
            )
    return found
