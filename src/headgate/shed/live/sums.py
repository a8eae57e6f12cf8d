"""The sums that batches are asked for, and what statistics learn from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.shed.estimate.sql import plain_calls
from headgate.shed.learn.statistics import Arrived, Passed, Statistics, Summed

if TYPE_CHECKING:
    from headgate.incremental.levels import Level
    from headgate.protocol.figures import Figures
    from headgate.sharing.table import Member, Table

#: What is measured may be anything: no batch is taken to have more tuples.
MOST_TUPLES = 1e15


class Sums:
    """The sums over partial rows that the tables of a level are asked for."""

    def __init__(self, level: Level) -> None:
        self.members: list[tuple[Table, Member]] = [
            (table, member)
            for table in level.tables
            if not table.values and table.state is None
            for member in table.members
        ]
        """The queries whose columns add up, with their tables."""

    def asked(self) -> dict[str, tuple[int, str]]:
        """What to add up of the partial rows of a batch: tables and columns, by the name of the sum."""
        found = {}
        for table, member in self.members:
            number = table.number
            if member.rows is not None:
                found[f"_hg_rows_{member.stage.name}"] = (number, member.rows)
            if member.estimates is not None:
                found[f"_hg_total_{member.stage.name}"] = (number, member.estimates.total)
                for call, (total, squares) in member.estimates.sums.items():
                    found[f"_hg_sum_{member.stage.name}_{call}"] = (number, total)
                    found[f"_hg_squares_{member.stage.name}_{call}"] = (number, squares)
        return found

    @property
    def aggregates(self) -> list[str]:
        """The aggregates whose values matter for their errors, as they are shown."""
        found = [(m, m.estimates.sums) for _, m in self.members if m.estimates is not None]
        return [shown(member, call) for member, sums in found for call in sums]

    def learn(
        self,
        statistics: Statistics,
        amounts: Mapping[str, float | None],
        figures: Figures,
        rates: Mapping[str, float],
        interval: float | None,
    ) -> None:
        """Tell statistics what a batch showed, whose tuples were sampled at these rates."""
        tuples = arrived(amounts, figures)
        segments = {
            by_amount(stream): Passed(amount, tuples[stream], tuples[stream])
            for stream, amount in amounts.items()
            if amount is not None and amount >= 1  # Less than a byte or a tuple tells nothing.
        }
        values: dict[str, dict[str | None, Summed]] = {}
        for table, member in self.members:
            name, query = member.stage.name, member.stage.query
            # Where panes are windows, a tuple is counted in each that holds it.
            copies = table.eager.per_window / table.eager.per_slide if table.eager is not None else 1.0
            seen, total = (count(figures.sums.get(f"_hg_{w}_{name}", 0.0) / copies) for w in ("rows", "total"))
            passed = total if member.estimates is not None else seen
            came = sum(tuples.get(stream, 0) for stream in member.stage.streams)
            if rates.get(query, 1.0) > 0:
                segments[query] = Passed(came, passed, round(came * rates.get(query, 1.0)))
            for call in member.estimates.sums if member.estimates is not None else ():
                sums = [figures.sums.get(f"_hg_{w}_{name}_{call}", 0.0) / copies for w in ("sum", "squares")]
                if seen:
                    values[shown(member, call)] = {None: Summed(total, sums[0], sums[1], seen)}
        streams = {stream: Arrived(n, n) for stream, n in tuples.items()}
        statistics.observe(seconds=interval, streams=streams, segments=segments, aggregates=values)


def arrived(amounts: Mapping[str, float | None], figures: Figures) -> dict[str, int]:
    """The tuples that a batch had of each stream that it had any of."""
    return {stream: figures.of(stream).rows for stream in amounts}


def finite(number: float | None) -> float:
    """A number that was measured, or 0 if it is none."""
    return float(number) if number is not None and math.isfinite(number) else 0.0


def count(number: float) -> int:
    """A number of tuples, whatever was measured."""
    return round(min(max(finite(number), 0.0), MOST_TUPLES))


def shown(member: Member, call: str) -> str:
    """What an aggregate is called: as the column that shows it."""
    assert member.stage.above is not None
    return f"{member.stage.query}.{plain_calls(member.stage.above).get(call, call)}"


def by_amount(stream: str) -> str:
    """What statistics call the part of a stream's amount that is tuples."""
    return f"{stream} by amount"
