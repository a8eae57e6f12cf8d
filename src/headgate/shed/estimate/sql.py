"""Answers from samples: estimates and their limits, over merged partials, as Spark SQL."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from headgate.plan.stream.feeds import Feed
from headgate.shed.estimate.estimators import Estimator
from headgate.shed.subset.groups import GroupRange
from headgate.shed.subset.needs import Range
from headgate.shed.subset.sql import in_groups, outside, threshold
from headgate.sql.text import Name, ddl, moving, own

#: The uniform number of a tuple, by which it is taken or not: a BIGINT.
COIN = "_hg_coin"
#: The rate at which a tuple was taken that has been sampled before.
TAKEN_AT = own("taken at")
#: Some number that Spark does not know before it runs.
_PARTITION = "spark_partition_id()"
_LOW, _HIGH = "_low", "_high"
_OUTLOOK = "_hg_outlook_"


def tossed(df: DataFrame, seed: int) -> DataFrame:
    """Tuples with a coin each. The same tuples in the same partitions get the same coins."""
    # In one step: Spark moves no filter below numbers that are given on the way, and so makes each coin once.
    return df.withColumn(COIN, F.expr(f"xxhash64(monotonically_increasing_id(), {moving(seed, _PARTITION)})"))


def taken(rate: float) -> str:
    """Whether a tuple is taken at a rate, as SQL. What a lower rate takes, a higher one takes too."""
    # The largest BIGINT is as good as a rate of 1: one coin in 2 ** 64 shows it.
    return f"{COIN} < {moving(threshold(rate), COIN)}"


def low(name: str) -> str:
    """The column of the lower limit.

    >>> low("n"), high("n")
    ('n_low', 'n_high')
    """
    return f"{name}{_LOW}"


def high(name: str) -> str:
    """The column of the upper limit."""
    return f"{name}{_HIGH}"


def plain_calls(above: Feed) -> dict[str, str]:
    """The calls that are a column of the answer as they are, which has limits then, and what it is called."""
    return {e.name: name for name, e in above.columns.items() if isinstance(e, exp.Column)}


def outlook(query: str) -> Name:
    """The column of what the answers of a query say about its errors; it is looked at, and not kept."""
    return Name(f"{_OUTLOOK}{query}")


def observed_outlook(column: Name) -> list[str]:
    """What to observe of such a column, as a few aggregates in SQL.

    They are the squared error that no more than a twentieth of the tuples exceed, as a logarithm, by their groups; how
    many tuples the answers stand for; and how many more there are in groups of which none was taken. As many groups
    of n tuples are missed as (1 - p) / p * n have just one that was taken, at a rate p.
    """
    squared, tuples, missed = (outlook_figure(column, what) for what in ("squared", "tuples", "missed"))
    return [
        f"percentile({column}.squared, 0.95D, {column}.tuples) AS {squared}",
        f"sum({column}.tuples) AS {tuples}",
        f"sum({column}.missed) AS {missed}",
    ]


def outlook_figure(column: Name, what: str) -> Name:
    """What one of these aggregates is called."""
    return Name(f"{column.plain}_{what}")


def is_outlook(column: str) -> bool:
    """Whether a column is one of these."""
    return column.startswith(_OUTLOOK)


@dataclass(frozen=True)
class Sampling:
    """What is left out of queries in a batch: the rates of samples, and what their coins depend on.

    A query that is sampled at a rate of 1 has the same form as at any other: rates change from batch to batch.
    """

    rates: Mapping[str, float]
    batch: int
    dropped: Mapping[str, Sequence[Range]] = field(default_factory=dict)
    """By query, the places that no kept window needs."""
    groups: Mapping[str, Sequence[GroupRange]] = field(default_factory=dict)
    """By query, the share of groups that is kept, by places."""
    weighed: frozenset[str] = frozenset()
    """The queries whose tuples have been sampled before, and say their rate."""

    def leaves_out(self, query: str) -> bool:
        """Whether tuples may be left out for a query."""
        return query in self.rates or query in self.dropped or query in self.groups

    def samples(self, queries: Iterable[str]) -> bool:
        """Whether tuples of all these queries are sampled."""
        return all(query in self.rates for query in queries)

    def kept(self, query: str, place: str, keys: Sequence[str]) -> list[str]:
        """The conditions for a tuple not to be left out with windows or groups, by its place and its group."""
        found = [outside(place, self.dropped[query])] if query in self.dropped else []
        return found + ([in_groups(place, keys, self.groups[query])] if query in self.groups else [])

    def rate(self, query: str) -> float:
        """The rate of a query, or 1."""
        return self.rates.get(query, 1.0)

    def taken(self, query: str) -> list[str]:
        """The condition by which a tuple is taken for a query, if it is sampled."""
        return [taken(self.rates[query])] if query in self.rates else []

    def weight(self, query: str) -> str | None:
        """How many tuples a taken one stands for, as SQL over a group of alike ones; None if all are taken."""
        if query in self.weighed:
            return f"1 / {TAKEN_AT}"
        rate = self.rates.get(query)
        return None if rate is None else moving(f"{1 / rate if rate else 1.0!r}D", "count(*)")

    def seed(self, stream: str, piece: int) -> int:
        """A number of its own for each piece of a stream in a batch."""
        digest = hashlib.blake2b(f"{self.batch} {stream} {piece}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True)


EVERYTHING = Sampling({}, 0)


@dataclass(frozen=True)
class Estimated:
    """A call that is estimated: how, the columns of its partials, and their types."""

    how: Estimator
    partials: Mapping[str, str]
    types: tuple[str, ...]


@dataclass
class Estimates:
    """How the calls of a query are estimated."""

    total: str
    """The column with the weight of all its tuples: how many they stand for."""
    calls: dict[str, Estimated] = field(default_factory=dict)
    types: dict[str, T.DataType] = field(default_factory=dict)
    """The type of each call's exact answer. Its estimate has the same."""
    squared: list[str] = field(default_factory=list)
    """Of each call whose values matter for its error, their squares over the square of their sum."""
    sums: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of such a call, the columns with the sum of its values and with that of their squares."""

    def add(self, call: str, estimated: Estimated, type_: T.DataType) -> None:
        """Adds a call, whose answer has this type."""
        self.types[call], self.calls[call] = type_, estimated
        if estimated.how.squared:
            self.squared.append(estimated.how.squared.format(**estimated.partials))
            self.sums[call] = (estimated.partials["s1"], estimated.partials["s2"])

    def add_column(self, call: str, type_: T.DataType) -> None:
        """Adds a call whose estimate and limits are columns by then, made from a table of its own."""
        self.types[call] = type_

    @property
    def columns(self) -> dict[str, tuple[str, str, str]]:
        """The estimates and limits of calls that have such columns."""
        calls = [c for c in self.types if c not in self.calls]
        return {c: (str(Name(c)), str(Name(low(c))), str(Name(high(c)))) for c in calls}

    def outlook(self, rows: str | None) -> str:
        """What an answer says about the errors of samples, as a struct in SQL, by the column that counts its tuples.

        Logarithms are rounded, so that however many groups there are, only so many different ones are looked at.
        """
        squared = ", ".join([f"1 / {self.total}", *self.squared])
        worst = f"greatest({squared})" if self.squared else squared
        missed = f"CASE WHEN {rows} = 1 THEN {self.total} - 1 ELSE 0D END"
        return f"struct(round(ln({worst}), 1) AS squared, CAST({self.total} AS BIGINT) AS tuples, {missed} AS missed)"

    def typed(self, call: str, estimate: str, lower: str, upper: str) -> tuple[str, str, str]:
        """The estimate of a call and its limits in the types that they have."""
        value = f"round({estimate})" if isinstance(self.types[call], T.IntegralType) else estimate
        limit = ddl(self.limit_type(call))
        return f"CAST({value} AS {ddl(self.types[call])})", f"CAST({lower} AS {limit})", f"CAST({upper} AS {limit})"

    def limit_type(self, call: str) -> T.DataType:
        """The type of the limits of a call: those of a whole number need not be whole."""
        return T.DoubleType() if isinstance(self.types[call], T.NumericType) else self.types[call]
