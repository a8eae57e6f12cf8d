"""Joins of which a part is left out: who is kept, who looks for others, which pairs are in a sample, as Spark SQL.

A tuple has one coin for all it does, the hash of its place in the batch, which is kept with it. So a share that changes
holds at once for tuples that were kept before, too: one whose coin is above it takes no part.

Two tuples of the same batch count as if they had come in the order of their times: a pair comes out if the earlier one
is kept and the later one looks for it. Left comes before right where they are at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.bounded.join import hashed, join
from headgate.incremental.match import Side, Which, matched
from headgate.plan.logical.nodes import SAMPLING_RATE, Band, Join
from headgate.progress import Punctuation
from headgate.shed.estimate.sql import COIN
from headgate.shed.join.coins import CIRCLE, each_part, misses
from headgate.shed.join.plan import JoinPlan, PairSample, PairSubset
from headgate.shed.subset.sql import threshold
from headgate.sql.text import Name, literal, moving, own, position, quoted, stacked
from headgate.windows import Number

#: The rate at which a tuple was read; the part of tuples like it that look for earlier ones, or 0 where it does not.
_RATE, _LOOK = "_hg_rate", "_hg_look"
#: How likely its coins say yes, the parts of the time for which it flips them, or 0, the slots of each, and the last
#: slot with a success.
_SUCCESS, _PARTS, _EACH, _LAST = "_hg_success", "_hg_parts", "_hg_each", "_hg_last"
_NEW_AT, _WAY = own("new at"), own("way")
#: What is kept with a tuple may not be called like a column of its own.
RESERVED = frozenset((COIN, _RATE, _LOOK, _SUCCESS, _PARTS, _EACH, _LAST))
#: The class of a tuple's keys: those that a plan treats alike.
CLASS = own("class")
#: How many parts of hashes there are by which keys are marked.
_MARKS = 1 << 16


@dataclass(frozen=True)
class ShedSide(Side):
    """A side of a join that is shed: its tuples have coins."""

    @property
    def extra(self) -> T.StructType:
        """What is kept with a tuple besides its own columns."""
        return T.StructType([T.StructField(COIN, T.LongType())])

    @property
    def key(self) -> str | None:
        """The hash of a tuple's keys, as SQL, the same on both sides; NULL where a key is; None for a join without."""
        if not self.node.keys:
            return None
        columns = []
        for pair in self.node.keys:
            types = [self.node.left.types[pair[0]], self.node.right.types[pair[1]]]
            name = quoted(pair[0] if self.which == "left" else pair[1])
            columns.append(name if types[0] == types[1] else f"CAST({name} AS {_common(types)})")
        nothing = " OR ".join(f"{column} IS NULL" for column in columns)
        return f"CASE WHEN {nothing} THEN NULL ELSE xxhash64({', '.join(columns)}) END"

    def inserted(self, plan: PairSubset) -> str:
        """Whether a tuple is kept, as SQL."""
        return self._share(plan, f"insert_{self.which}")

    def probes(self, plan: PairSubset) -> str:
        """Whether a tuple looks for others, as SQL."""
        return self._share(plan, f"probe_{self.which}")

    def _share(self, plan: PairSubset, what: str) -> str:
        others = threshold(getattr(plan.others, what))
        if not self._tells_apart(plan):
            return f"{COIN} < {moving(others, COIN)}"
        limits = [others, *(threshold(getattr(shares, what)) for shares in plan.classes)]
        return f"{COIN} < get(array({', '.join(map(literal, limits))}), {CLASS})"

    def _tells_apart(self, plan: JoinPlan) -> bool:
        return bool(plan.classes) and self.key is not None

    def classed(self, df: DataFrame, plan: JoinPlan) -> DataFrame:
        """Tuples with the class of their keys, if the plan has any: NULL without a key, and 0 for one it does not know.

        A plan names many keys. As a list they would take Spark longer to read than tuples take; so they are marked in
        one literal, by a part of their hashes. A key with the same part is taken for one of them, and
        of two that are known the class that comes later holds.
        """
        if not self._tells_apart(plan) or CLASS.plain in df.columns:
            return df
        marks = bytearray(_MARKS)
        for number, keys in enumerate(plan.classes.values(), 1):
            for key in keys:
                marks[key % _MARKS] = number
        mark = f"substring(X'{marks.hex()}', CAST(pmod({self.key}, {_MARKS}L) AS INT) + 1, 1)"
        return df.withColumn(CLASS.plain, F.expr(f"ascii(CAST({mark} AS STRING))"))

    def taken(self, plan: PairSubset, df: DataFrame) -> DataFrame:
        """The new tuples that do anything at all, with their classes."""
        if plan.exact:
            return df
        return self.classed(df, plan).where(f"({self.inserted(plan)}) OR ({self.probes(plan)})")

    def kept(self, plan: PairSubset, df: DataFrame) -> DataFrame:
        """The tuples that are kept."""
        return df if plan.exact else self.classed(df, plan).where(self.inserted(plan)).drop(CLASS.plain)

    def looking(self, plan: PairSubset, df: DataFrame) -> DataFrame:
        """The tuples that look for others."""
        return self.classed(df, plan).where(self.probes(plan)).drop(CLASS.plain)

    @property
    def window(self) -> Number:
        """How long an earlier tuple can be met."""
        match self.node.conditions[0]:
            case Band(before=before, after=after):
                return after if self.which == "left" else before
            case same:
                return same.size

    @property
    def place(self) -> str:
        """The attribute that tells which of two tuples is earlier."""
        return self.attributes[0]


@dataclass(frozen=True)
class SampledSide(ShedSide):
    """A side of a join whose pairs are sampled. A tuple knows when its last coin that says yes is flipped."""

    @property
    def extra(self) -> T.StructType:
        fields = [T.StructField(COIN, T.LongType())]
        fields += [T.StructField(name, T.DoubleType()) for name in (_RATE, _LOOK, _SUCCESS)]
        fields += [T.StructField(name, T.IntegerType()) for name in (_PARTS, _EACH, _LAST)]
        return T.StructType(fields)

    def flipped(self, df: DataFrame, plan: PairSample) -> DataFrame:
        """New tuples, tossed, with what is kept of their coins, and their classes."""
        number = 0 if self.which == "left" else 1
        ways = [(coins, plan.success(coins)[number]) for coins in (plan.others, *plan.classes)]
        cuts = [getattr(coins, self.which) or 0 for coins, _ in ways]
        looks = [getattr(coins, f"look_{self.which}") for coins, _ in ways]
        # The same code for all kinds of coins, which is warm when it is needed. And one thing that all columns are made
        # of: where there are more, Spark writes them down now in this order and now in that, which is other code.
        way = self._by_class(
            plan,
            [
                f"struct({n}L, {each_part(n)}L, {own!r}D, {misses(own)!r}D, {look!r}D)"
                for n, (_, own), look in zip(cuts, ways, looks, strict=True)
            ],
        )
        many, each, success, scale, look = (f"{_WAY}.col{number}" for number in range(1, 6))
        last = f"greatest({many} - 1 - floor(ln({_place(-1, 1)} / {CIRCLE}D) * {scale}), -1L)"
        columns = {
            _RATE: moving(f"{plan.rate!r}D", COIN),
            _LOOK: f"{look} * CAST({_place(-2)} < {look} * {CIRCLE}D AS DOUBLE)",
            _SUCCESS: success,
            _PARTS: f"CAST({many} div {each} AS INT)",
            _EACH: f"CAST({each} AS INT)",
            _LAST: f"CAST({last} AS INT)",
        }
        found = self.classed(df, plan).withColumn(_WAY.plain, F.expr(way))
        return found.withColumns({name: F.expr(sql) for name, sql in columns.items()}).drop(_WAY.plain)

    def _by_class(self, plan: PairSample, values: Sequence[str]) -> str:
        """A property of the class of a tuple's key, as SQL. Without a key, it is as for others, and meets nobody."""
        if not self._tells_apart(plan):
            return moving(values[0], COIN)
        return f"get(array({', '.join(values)}), coalesce({CLASS}, 0))"

    @property
    def succeeds(self) -> str:
        """Whether any coin of a tuple says yes, as SQL."""
        return f"({_PARTS} = 0 OR {_LAST} >= 0)"

    @property
    def looks(self) -> str:
        """Whether a tuple looks for earlier ones, as SQL."""
        return f"{_LOOK} > 0"

    def taking_part(self, flipped: DataFrame) -> DataFrame:
        """The new tuples that can be in any pair of the sample."""
        return flipped.where(f"{self.succeeds} OR {self.looks}").drop(CLASS.plain)

    def can_match(self, df: DataFrame, told: Mapping[str, Punctuation]) -> str:
        """Whether a tuple can still be in a pair of the sample, as SQL.

        That is so up to the end of its last slot with a success, and, if it looks for earlier ones, while one may come:
        that one has the coins then.
        """
        known = super().can_match(df, told)
        condition, own, other = self._conditions[0]
        p = told.get(other)
        if p is None or isinstance(p, float) or not isinstance(condition, Band):
            return known
        place = position(df, own)
        end = f"CASE WHEN {_LAST} >= 0 THEN -{literal(self.window)} * ({_LAST} div {_EACH} + 1) END"
        looking = f"CASE WHEN {self.looks} THEN 0L END"
        # Its place is named once: what is named often comes in another order each time, which is other code.
        return (
            f"({known}) AND ({place} - {moving(p, place)}) * greatest({_PARTS}, 1)"
            f" >= CASE WHEN {_PARTS} = 0 THEN {literal(-(1 << 62))} ELSE least({end}, {looking}) END"
        )


def subset_pairs(
    node: Join,
    sides: Sequence[ShedSide],
    plan: PairSubset,
    kept: Sequence[DataFrame | None],
    new: Sequence[DataFrame | None],
) -> DataFrame | None:
    """The pairs with a tuple of this batch that are not left out; None where there can be none."""
    if plan.exact:
        old, fresh = ([None if df is None else df.drop(COIN) for df in dfs] for dfs in (kept, new))
        return matched(node, old, fresh, by_hash=True)
    looking = [None if df is None else s.looking(plan, df).drop(COIN) for s, df in zip(sides, new, strict=True)]
    stock = []
    for side, *both in zip(sides, kept, new, strict=True):
        before, now = (None if df is None else side.kept(plan, df).drop(COIN) for df in both)
        stock.append(_stock(side, before, now))
    return _met(node, sides, stock, looking)


def _met(
    node: Join, sides: Sequence[ShedSide], stock: Sequence[DataFrame | None], looking: Sequence[DataFrame | None]
) -> DataFrame | None:
    """The pairs of new tuples that look for others with those that can be found: of two new ones, the earlier is."""
    (left, right), pairs = sides, []
    if looking[1] is not None and stock[0] is not None:
        found = join(node, stock[0], hashed(looking[1]), near=True)
        pairs.append(found.where(f"{_NEW_AT} IS NULL OR {_NEW_AT} <= {position(looking[1], right.place)}"))
    if looking[0] is not None and stock[1] is not None:
        found = join(node, hashed(looking[0]), stock[1], near=True)
        pairs.append(found.where(f"{_NEW_AT} IS NULL OR {_NEW_AT} < {position(looking[0], left.place)}"))
    return stacked(pairs).drop(_NEW_AT.plain) if pairs else None


def _stock(side: ShedSide, kept: DataFrame | None, new: DataFrame | None) -> DataFrame | None:
    """The tuples of a side that can be found: those kept before, and new ones, with their places."""
    parts = []
    for df, at in ((kept, None), (new, side.place)):
        if df is not None:
            place = position(df, side.place)
            came = place if at is not None else f"CASE WHEN false THEN {place} END"
            parts.append(df.withColumn(_NEW_AT.plain, F.expr(came)))
    return stacked(parts) if parts else None


def sampled_pairs(
    node: Join,
    sides: Sequence[SampledSide],
    plan: PairSample,
    kept: Sequence[DataFrame | None],
    new: Sequence[DataFrame | None],
) -> DataFrame | None:
    """The pairs with a tuple of this batch that are in the sample, each with its rate; None where there can be none."""
    looking = [None if df is None else _named(side, df) for side, df in zip(sides, new, strict=True)]
    stock = []
    for side, before, now in zip(sides, kept, new, strict=True):
        # Those that no coin speaks for are found by nobody, but look for the earlier ones of the other side.
        found_by = (before, None if now is None else now.where(side.succeeds))
        stock.append(_stock(side, *(None if df is None else _named(side, df) for df in found_by)))
    found = _met(node, sides, stock, looking)
    if found is None:
        return None
    left, right = sides
    here, there = position(found, left.place), position(found, right.place)
    age = f"abs({here} - {there})"
    pairs = [_Pair(left, right, age, plan.rate), _Pair(right, left, age, plan.rate)]
    taken, rate = (
        f"CASE WHEN {here} <= {there} THEN {first} ELSE {second} END"
        for first, second in ([pair.taken for pair in pairs], [pair.rate for pair in pairs])
    )
    names = [_of(side.which, field.name).plain for side in sides for field in side.extra]
    return found.where(taken).withColumn(SAMPLING_RATE, F.expr(rate)).drop(*names)


@dataclass(frozen=True)
class _Pair:
    """A pair whose earlier tuple is on one side, as SQL, and by how much it is earlier."""

    earlier: SampledSide
    later: SampledSide
    age: str
    current: float

    def _first(self, column: str) -> Name:
        return _of(self.earlier.which, column)

    @property
    def _coins(self) -> list[str]:
        return [str(_of(which, COIN)) for which in ("left", "right")]

    @property
    def _chance(self) -> str:
        """How likely the coins of both tuples say yes."""
        return f"({self._first(_SUCCESS)} * {_of(self.later.which, _LOOK)})"

    @property
    def rate(self) -> str:
        """How likely the pair is in the sample: as the lower of the rates says, and no more than coins allow."""
        return f"least({self._first(_RATE)}, {moving(f'{self.current!r}D', self._coins[0])}, {self._chance})"

    @property
    def taken(self) -> str:
        """Whether the pair is in the sample."""
        places = " + ".join(f"pmod({c}, {CIRCLE}L)" for c in self._coins)
        by_pairs = f"pmod({places}, {CIRCLE}L) * {_of(self.later.which, _LOOK)} < {self.rate} * {CIRCLE}D"
        # A rate that is lower than when the earlier tuple was read is made up for by a coin of the pair's own.
        thinned = f"pmod(xxhash64({', '.join(self._coins)}), {CIRCLE}L) * {self._chance} < {self.rate} * {CIRCLE}D"
        return f"CASE WHEN {self._first(_PARTS)} = 0 THEN {by_pairs} ELSE {self._says_yes} AND {thinned} END"

    @property
    def _says_yes(self) -> str:
        """Whether the coin of the earlier tuple says yes, by slots."""
        parts, each, last = (self._first(c) for c in (_PARTS, _EACH, _LAST))
        part = f"least(CAST(floor({self.age} * {parts} / {literal(self.earlier.window)}) AS INT), {parts} - 1)"
        slot = f"({part} * {each} + pmod(xxhash64({_of(self.later.which, COIN)}, -3L), {each}))"
        coin = f"pmod(xxhash64({self._first(COIN)}, {slot}), {CIRCLE}L) < {self._first(_SUCCESS)} * {CIRCLE}D"
        return f"{slot} <= {last} AND ({slot} = {last} OR {coin})"


def _place(number: int, more: int = 0) -> str:
    """The place of a tuple on the circle, as SQL, for one of the coins that it flips once."""
    return f"(pmod(xxhash64({COIN}, {number}L), {CIRCLE}L) + {more})"


def _named(side: SampledSide, df: DataFrame) -> DataFrame:
    return df.withColumnsRenamed({field.name: _of(side.which, field.name).plain for field in side.extra})


def _of(which: Which, column: str) -> Name:
    return own(f"{column} {which}")


def _common(types: Sequence[str]) -> str:
    """A type in which equal values of two types hash alike."""
    numbers = ("int", "tinyint", "smallint", "bigint", "float", "double", "decimal")
    return "DOUBLE" if all(t.startswith(numbers) for t in types) else "STRING"
