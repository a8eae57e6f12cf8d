"""Quantiles from a sample, and their limits: of values with the weights of their tuples, as Spark SQL.

Side by side in their order, values take up as much room as they weigh, one unit at least. A quantile is the mean over
one unit from its place on. Where nothing was dropped, that is a quantile as it is defined, between the values of two
tuples in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as T
from sqlglot import exp

from headgate.aggregates import Partial
from headgate.bounded.rollup import WINDOW_ID
from headgate.plan.logical.nodes import Call
from headgate.shed.estimate.estimators import QuantileShares, quantile_shares
from headgate.shed.estimate.sql import high, low
from headgate.sql.text import Name, own

_VALUE, _END, _TOTAL = "_hg_value", "_hg_end", "_hg_total_"


@dataclass(frozen=True)
class _Place:
    """One quantile by its place; columns on the way to it have its name in theirs."""

    name: str
    fraction: float
    shares: QuantileShares

    def _column(self, word: str) -> Name:
        return own(f"{word} of {self.name}")

    def places(self, top: str) -> list[str]:
        """Where it begins by weight, and where its limits lie, beside each value."""
        holes = {"top": top, **{p.name: f"{_TOTAL}{p.name}" for p in self.shares.partials}}
        total = f"{_TOTAL}w1"
        return [
            f"{self.fraction!r}D * ({total} - 1) AS {self._column('at')}",
            f"({self.shares.low.format(**holes)}) * {total} AS {self._column('from')}",
            f"({self.shares.high.format(**holes)}) * {total} AS {self._column('to')}",
        ]

    def values(self) -> list[str]:
        """The values at these places, of which its own unit may hold two, and how much of it the other one takes."""
        at = self._column("at")
        return [
            f"min({_VALUE}) FILTER (WHERE {_END} > {at}) AS {self._column('one')}",
            f"min({_VALUE}) FILTER (WHERE {_END} - 1 >= {at}) AS {self._column('other')}",
            f"max({at} - ({_END} - 1)) FILTER (WHERE {_END} > {at}) AS {self._column('part')}",
            f"min({_VALUE}) FILTER (WHERE {_END} >= {self._column('from')}) AS {self._column('low')}",
            f"min({_VALUE}) FILTER (WHERE {_END} >= {self._column('to')}) AS {self._column('high')}",
        ]

    def answers(self, top: str) -> tuple[str, str, str]:
        """The quantile and its limits, over the values."""
        one, other, part = map(self._column, ("one", "other", "part"))
        value = f"CASE WHEN {one} = {other} THEN {one} ELSE {one} + {part} * ({other} - {one}) END"
        lower, upper = (f"CASE WHEN {top} = 1 THEN {value} ELSE {self._column(side)} END" for side in ("low", "high"))
        return value, lower, upper


@dataclass(frozen=True)
class Quantile:
    """A median or quantile that is estimated, or several of them as an array."""

    call: str
    places: tuple[_Place, ...]
    is_array: bool

    @classmethod
    def of(cls, call: Call, confidence: float) -> Quantile:
        """The quantiles that a call asks for, with limits of this confidence."""
        is_array = isinstance(call.parameter, exp.Array)
        fractions = [0.5]
        if call.parameter is not None:
            fractions = [float(one.name) for one in (call.parameter.expressions if is_array else [call.parameter])]
        places = (_Place(f"{call.name}_{i}", f, quantile_shares(f, confidence)) for i, f in enumerate(fractions))
        return cls(call.name, tuple(places), is_array)

    @property
    def type(self) -> T.DataType:
        """The type of the answer, and of both limits."""
        return T.ArrayType(T.DoubleType()) if self.is_array else T.DoubleType()

    @property
    def partials(self) -> list[Partial]:
        """What has to be known of the weights of each value."""
        return [partial for place in self.places for partial in place.shares.partials]

    def answers(self, top: str) -> list[str]:
        """The answer and its limits under their names."""
        names = (self.call, low(self.call), high(self.call))
        parts = zip(*(place.answers(top) for place in self.places), strict=True)
        form = "array({})" if self.is_array else "{}"
        return [f"{form.format(', '.join(part))} AS {Name(name)}" for name, part in zip(names, parts, strict=True)]


@dataclass(frozen=True)
class Quantiles:
    """How the quantiles over one table of values are estimated."""

    calls: tuple[Quantile, ...]
    moments: Mapping[str, str]
    """The columns of the table with the partials."""

    def answers(self, source: str, keys: Mapping[str, str], value: str, top: str) -> str:
        """The query for the estimates and limits by group and window; keys get other names.

        The source has a row for each value of a window, and `top` is the largest weight that a tuple of the window may
        have had.
        """
        group = [*keys.values(), WINDOW_ID]
        places = [place for quantile in self.calls for place in quantile.places]
        ordered = f"(SELECT {', '.join(self._ordered(keys, value))} FROM {source})"
        placed = f"(SELECT *, {_listed(p.places(top) for p in places)} FROM {ordered})"
        found = f"SELECT {', '.join(group)}, {_listed(p.values() for p in places)} FROM {placed}"
        answers = _listed(quantile.answers(top) for quantile in self.calls)
        return f"SELECT {', '.join(group)}, {answers} FROM ({found} GROUP BY {', '.join(group)})"

    def _ordered(self, keys: Mapping[str, str], value: str) -> list[str]:
        """The values with where they end by weight, and with the moments of their group as a whole."""
        rows = f"PARTITION BY {', '.join([*keys, WINDOW_ID])} ORDER BY {value} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        # In the same order, so that the last value ends just where the whole does.
        totals = [f"sum({c}) OVER ({rows} UNBOUNDED FOLLOWING) AS {_TOTAL}{m}" for m, c in self.moments.items()]
        end = f"sum({self.moments['w1']}) OVER ({rows} CURRENT ROW) AS {_END}"
        named = [f"{key} AS {name}" for key, name in keys.items()]
        return [*named, WINDOW_ID, f"CAST({value} AS DOUBLE) AS {_VALUE}", end, *totals]


def _listed(texts: Iterable[Sequence[str]]) -> str:
    return ", ".join(sql for own in texts for sql in own)
