"""Answers from samples: estimates and their limits, over merged partials, as Spark SQL."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from headgate.operators.dropping import in_groups, outside, threshold
from headgate.operators.sql import ddl, moving, quoted
from headgate.plan.feeds import Feed
from headgate.shedding.estimators import Estimator
from headgate.shedding.subset_groups import Piece
from headgate.shedding.subset_needs import Range

#: The uniform number of a tuple, by which it is taken or not: a BIGINT.
COIN = "_hg_coin"
_ID = "_hg_id"
_LOW, _HIGH = "_low", "_high"
_OUTLOOK = "_hg_outlook_"


def tossed(df: DataFrame, seed: int) -> DataFrame:
    """Tuples with a coin each. The same tuples in the same partitions get the same coins."""
    numbered = df.withColumn(_ID, F.monotonically_increasing_id())
    return numbered.withColumn(COIN, F.expr(f"xxhash64({_ID}, {moving(seed, _ID)})")).drop(_ID)


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


def outlook(query: str) -> str:
    """The column of what the answers of a query say about its errors; it is looked at, and not kept."""
    return f"{_OUTLOOK}{query}"


def observed_outlook(column: str) -> list[str]:
    """What to observe of such a column, as a few aggregates in SQL.

    They are the squared error that no more than a twentieth of the tuples exceed, as a logarithm, by their groups; how
    many tuples the answers stand for; and how many more there are in groups of which none was taken. As many groups
    of n tuples are missed as (1 - p) / p * n have just one that was taken, at a rate p.
    """
    return [
        f"percentile({column}.squared, 0.95D, {column}.tuples) AS {column}_squared",
        f"sum({column}.tuples) AS {column}_tuples",
        f"sum({column}.missed) AS {column}_missed",
    ]


def is_outlook(column: str) -> bool:
    """Whether a column is one of these."""
    return column.startswith(_OUTLOOK)


@dataclass(frozen=True)
class Sampling:
    """Of which queries tuples are left out in a batch: at which rates they are sampled, and what the coins depend on.

    A query that is sampled at a rate of 1 has the same form as at any other: rates change from batch to batch.
    """

    rates: Mapping[str, float]
    batch: int
    dropped: Mapping[str, Sequence[Range]] = field(default_factory=dict)
    """By query, the places that none of its windows needs which are not dropped."""
    groups: Mapping[str, Sequence[Piece]] = field(default_factory=dict)
    """By query, the share of groups that is kept, by places."""

    def leaves_out(self, query: str) -> bool:
        """Whether tuples may be left out for a query."""
        return query in self.rates or query in self.dropped or query in self.groups

    def samples(self, queries: Iterable[str]) -> bool:
        """Whether tuples of all these queries are sampled."""
        return all(query in self.rates for query in queries)

    def kept(self, query: str, place: str, keys: Sequence[str]) -> list[str]:
        """The conditions by which a tuple is not left out with windows or groups, by its place and its group."""
        found = [outside(place, self.dropped[query])] if query in self.dropped else []
        return found + ([in_groups(place, keys, self.groups[query])] if query in self.groups else [])

    def rate(self, query: str) -> float:
        """The rate of a query, or 1."""
        return self.rates.get(query, 1.0)

    def taken(self, query: str) -> list[str]:
        """The condition by which a tuple is taken for a query, if it is sampled."""
        return [taken(self.rates[query])] if query in self.rates else []

    def weight(self, query: str) -> str | None:
        """How many tuples one that is taken stands for, as SQL; nothing where all are taken."""
        rate = self.rates.get(query)
        return None if rate is None else moving(f"{1 / rate if rate else 1.0!r}D", COIN)

    def seed(self, stream: str, piece: int) -> int:
        """A number of its own for each piece of a stream in a batch."""
        digest = hashlib.blake2b(f"{self.batch} {stream} {piece}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True)


EVERYTHING = Sampling({}, 0)


@dataclass
class Estimates:
    """How the calls of a query are estimated."""

    total: str
    """The column with the weight of all its tuples: how many they stand for."""
    steps: dict[str, str] = field(default_factory=dict)
    """Expressions on the way, each over columns and those before it."""
    answers: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """The estimate of each call, and both of its limits."""
    types: dict[str, T.DataType] = field(default_factory=dict)
    """The type of each call's exact answer, which its estimate has too."""
    squared: list[str] = field(default_factory=list)
    """Of each call whose values matter for its error, their squares over the square of their sum."""
    sums: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of such a call, the columns with the sum of its values and with that of their squares."""

    def add(self, call: str, how: Estimator, partials: Mapping[str, str], type_: T.DataType) -> None:
        """Adds a call, whose partials are columns of these names, and whose answer has this type."""
        self.types[call] = type_
        own = f"_hg_e{len(self.answers)}_"
        holes = {**partials, "top": "{top}"}
        for step in how.steps:
            self.steps[f"{own}{step.name}"] = step.sql.format(**holes)
            holes[step.name] = f"{own}{step.name}"
        if how.squared:
            self.squared.append(how.squared.format(**partials))
            self.sums[call] = (partials["s1"], partials["s2"])
        self.answers[call] = (how.value.format(**holes), how.low.format(**holes), how.high.format(**holes))

    def add_columns(self, call: str, type_: T.DataType) -> None:
        """Adds a call whose estimate and limits are columns by then, made from a table of its own."""
        self.types[call] = type_
        self.answers[call] = (quoted(call), quoted(low(call)), quoted(high(call)))

    def layers(self, prefix: str, top: str) -> list[dict[str, str]]:
        """The steps, those that need no other one first; names begin with a prefix of the query's own."""
        depths: dict[str, int] = {}
        for name, sql in self.steps.items():
            before = [depths[word] for word in re.findall(r"\w+", sql) if word in depths]
            depths[name] = 1 + max(before, default=-1)
        found: list[dict[str, str]] = [{} for _ in range(1 + max(depths.values(), default=-1))]
        for name, sql in self.steps.items():
            found[depths[name]][f"{prefix}{name}"] = self._filled(sql, prefix, top)
        return found

    def outlook(self, rows: str | None) -> str:
        """What an answer says about the errors of samples, as a struct in SQL, by the column that counts its tuples.

        Logarithms are rounded, so that however many groups there are, only so many different ones are looked at.
        """
        squared = ", ".join([f"1 / {self.total}", *self.squared])
        worst = f"greatest({squared})" if self.squared else squared
        missed = f"CASE WHEN {rows} = 1 THEN {self.total} - 1 ELSE 0D END"
        return f"struct(round(ln({worst}), 1) AS squared, CAST({self.total} AS BIGINT) AS tuples, {missed} AS missed)"

    def values(self, call: str, prefix: str, top: str) -> tuple[str, str, str]:
        """The estimate of a call and its limits, over the steps."""
        value, *limits = (self._filled(sql, prefix, top) for sql in self.answers[call])
        value = f"round({value})" if isinstance(self.types[call], T.IntegralType) else value
        lower, upper = (f"CAST({limit} AS {ddl(self.limit_type(call))})" for limit in limits)
        return f"CAST({value} AS {ddl(self.types[call])})", lower, upper

    def limit_type(self, call: str) -> T.DataType:
        """The type of the limits of a call: those of a whole number need not be whole."""
        return T.DoubleType() if isinstance(self.types[call], T.NumericType) else self.types[call]

    def _filled(self, sql: str, prefix: str, top: str) -> str:
        names = re.sub(r"\w+", lambda word: prefix + word[0] if word[0] in self.steps else word[0], sql)
        return names.replace("{top}", top)
