"""The limits of estimates, made for all queries in the same steps.

A limit takes some twenty steps from the partials of a call. Were they written down for every call of every query,
Spark would be busy longer with the text than with the rows. So a row of merged partials is taken once for each query
that it answers, and calls that are estimated in the same way go through the same columns, whichever query has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from headgate.shed.estimate.estimators import Estimator
from headgate.shed.estimate.sql import Estimated, Estimates

#: The number of the query that a row is for.
OF = "_hg_of"
#: The largest weight that a tuple of its window may have had.
TOP = "_hg_top"

#: By call, the estimate and both limits, over the columns of the steps.
Limits = dict[str, tuple[str, str, str]]


def for_each(source: str, spec: str, queries: Mapping[int, Sequence[int]]) -> str:
    """The rows of a source, once for each query that they answer: their spec has its number in this column."""
    arrays = " ".join(f"WHEN {number} THEN array({', '.join(map(str, own))})" for number, own in queries.items())
    return f"(SELECT *, explode(CASE {spec} {arrays} END) AS {OF} FROM {source})"


def with_steps(source: str, queries: Mapping[int, Estimates], tops: Mapping[int, str]) -> tuple[str, dict[int, Limits]]:
    """The rows with the steps to the limits of some queries, by number, and with these the limits.

    `tops` gives the largest weight of a tuple, as SQL, for the queries whose windows have tuples that were sampled.
    """
    slots: dict[tuple[Estimator, tuple[str, ...], int], dict[int, tuple[str, Estimated]]] = {}
    for number, estimates in queries.items():
        alike = Counter[tuple[Estimator, tuple[str, ...]]]()
        for call, estimated in estimates.calls.items():
            kind = (estimated.how, estimated.types)
            slots.setdefault((*kind, alike[kind]), {})[number] = (call, estimated)
            alike[kind] += 1
    layers: list[dict[str, str]] = [{TOP: f"{_by_query(tops)[:-4]} ELSE 1D END"}]
    limits = {number: estimates.columns for number, estimates in queries.items()}
    for i, ((how, _, _), users) in enumerate(slots.items()):
        holes = _add(layers, f"_hg_l{i}_", how, {number: estimated for number, (_, estimated) in users.items()})
        for number, (call, _) in users.items():
            limits[number][call] = (how.value.format(**holes), how.low.format(**holes), how.high.format(**holes))
    for layer in layers:
        source = f"(SELECT *, {', '.join(f'{sql} AS {name}' for name, sql in layer.items())} FROM {source})"
    return source, limits


def _add(layers: list[dict[str, str]], prefix: str, how: Estimator, users: Mapping[int, Estimated]) -> dict[str, str]:
    """Adds the steps of calls to the layers, each after those that it needs; gives the names of all columns."""
    holes, depths = {"top": TOP}, {"top": 0}
    for partial in how.partials:
        columns = {number: user.partials[partial.name] for number, user in users.items()}
        (first, *others), depths[partial.name] = dict.fromkeys(columns.values()), -1
        holes[partial.name] = first
        if others:
            holes[partial.name], depths[partial.name] = f"{prefix}{partial.name}", 0
            layers[0][holes[partial.name]] = _by_query(columns)
    for step in how.steps:
        depth = 1 + max((depths[name] for name in re.findall(r"{(\w+)}", step.sql)), default=-1)
        while len(layers) <= depth:
            layers.append({})
        layers[depth][f"{prefix}{step.name}"] = step.sql.format(**holes)
        holes[step.name], depths[step.name] = f"{prefix}{step.name}", depth
    return holes


def _by_query(texts: Mapping[int, str]) -> str:
    cases = " ".join(f"WHEN {number} THEN {sql}" for number, sql in texts.items())
    return f"CASE {OF} {cases} END"
