"""Estimates from samples against the answers over all tuples: unbiased, and within their limits as promised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from headgate.aggregates import AggregateFunction, builtin
from headgate.aggregates.builtin import COUNT_ROWS
from headgate.errors import FlowError
from headgate.shed.estimate.estimators import Estimator, QuantileShares, estimator, quantile_shares, samplable

Floats: TypeAlias = NDArray[np.float64]
Answers: TypeAlias = dict[str, Floats]

#: How many tuples a cell (a group in a window) has, and how many cells there are of that size.
SIZES = {20: 2100, 60: 1700, 200: 1200, 600: 600, 2_000: 250, 10_000: 40, 100_000: 4}
STEADY, CHANGING, LOW = (0.5, 0.1, 0.02), (1.0, 0.5, 0.1, 0.02), (0.1, 0.02)
#: What 0.9, 0.95 and 0.99 have to reach.
PROMISED = {0.9: 0.89, 0.95: 0.94, 0.99: 0.985}
ZIPF = np.arange(1.0, 1001.0) ** -1.2 / np.sum(np.arange(1.0, 1001.0) ** -1.2)


def draw(values: str, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    match values:
        case "uniform":
            return rng.random(shape)
        case "zipf":
            return rng.choice(np.arange(1.0, 1001.0), shape, p=ZIPF)
        case "pareto":
            return rng.pareto(1.5, shape) + 1
        case "lognormal":
            return rng.lognormal(0, 2, shape)
        case "normal":
            return rng.standard_normal(shape)
        case _:
            return np.sign(rng.random(shape) - 0.5) * (rng.pareto(1.5, shape) + 1)


@dataclass
class Sample:
    """The tuples kept of many cells, by cell, the largest weight of each, and the answers over all its tuples."""

    cell: NDArray[np.int64]
    x: Floats
    w: Floats
    top: Floats
    truth: Answers


def sampled(values: str, rates: tuple[float, ...], seed: int) -> Sample:
    """Samples of cells of all sizes, at a rate that is steady in a cell, or that changes within it."""
    rng, parts, tops, truth, cells = np.random.default_rng(seed), [], [], [], 0
    for size, number in SIZES.items():
        x = draw(values, rng, (number, size))
        if rates == STEADY:
            steady = rng.choice(rates, number)
            p, top = np.broadcast_to(steady[:, None], x.shape), 1 / steady
        else:
            cuts = np.sort(rng.random((number, len(rates) - 1))) * size
            stretch = sum((np.arange(size) >= cuts[:, [i]]).astype(np.intp) for i in range(len(rates) - 1))
            order = rng.permuted(np.tile(rates, (number, 1)), axis=1)
            p, top = np.take_along_axis(order, np.asarray(stretch), axis=1), np.full(number, 1 / min(rates))
        kept = rng.random(x.shape) < p
        parts.append((cells + np.nonzero(kept)[0], x[kept], 1 / p[kept]))
        tops.append(top)
        lowest, *quantiles, highest = np.quantile(x, (0, 0.5, 0.9, 1), axis=1)
        size_truth = (
            np.full(number, size),
            x.sum(1),
            x.mean(1),
            x.var(1),
            x.std(1, ddof=1),
            lowest,
            highest,
            *quantiles,
        )
        truth.append(
            dict(
                zip(
                    ("count", "sum", "avg", "var_pop", "stddev_samp", "min", "max", "0.5", "0.9"),
                    size_truth,
                    strict=True,
                )
            )
        )
        cells += number
    cell, x, w = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Sample(cell, x, w, np.concatenate(tops), {k: np.concatenate([t[k] for t in truth]) for k in truth[0]})


def select(found: Estimator | QuantileShares, table: str = "moments") -> str:
    """The query for an estimate from a table of moments, with a SELECT for each step."""
    names = {"top": "top"} | {p.name: f'"{p.name}"' for p in found.partials}
    for step in found.steps if isinstance(found, Estimator) else ():
        table = f"(SELECT *, {step.sql.format(**names)} AS step_{step.name} FROM {table})"
        names[step.name] = f"step_{step.name}"
    texts = {"value": found.value} if isinstance(found, Estimator) else {}
    texts |= {"low": found.low, "high": found.high}
    return f"SELECT {', '.join(f'{sql.format(**names)} AS {name}' for name, sql in texts.items())} FROM {table}"


def partials(found: list[Estimator | QuantileShares], x: str = "x", where: str = "") -> str:
    texts = {f'"{p.name}"': p.sql for e in found for p in e.partials}
    return ", ".join(f"{sql.format(x=x, w='w', f=where)} AS {name}" for name, sql in texts.items())


def merged(found: list[Estimator | QuantileShares]) -> str:
    texts = {f'"{p.name}"': p.merge.value for e in found for p in e.partials}
    return ", ".join(f"{merge}({name}) AS {name}" for name, merge in texts.items())


def function(name: str) -> AggregateFunction:
    found = builtin(name)
    assert found is not None
    return found


@dataclass
class Estimates:
    """A connection whose table `moments` has the moments of a sample, for cells of which anything was kept."""

    connection: duckdb.DuckDBPyConnection
    delivered: NDArray[np.int64]

    def of(self, found: Estimator | QuantileShares) -> Answers:
        table = self.connection.execute(select(found) + " ORDER BY cell").fetchnumpy()
        return {k: np.ma.filled(table[k].astype(float), np.nan) for k in ("value", "low", "high") if k in table}


def estimates(sample: Sample, connection: duckdb.DuckDBPyConnection) -> Estimates:
    connection.register("kept", pa.table({"cell": sample.cell, "x": sample.x, "w": sample.w}))
    connection.register("cells", pa.table({"cell": np.arange(len(sample.top)), "top": sample.top}))
    every: list[Estimator | QuantileShares] = [estimator(function(n), 0.99) for n in ("count", "sum", "avg", "var_pop")]
    connection.execute(
        f"CREATE OR REPLACE TABLE moments AS SELECT cell, top, {merged(every)} FROM"
        f" (SELECT cell, {partials(every)} FROM kept GROUP BY cell, w) JOIN cells USING (cell) GROUP BY cell, top"
    )
    delivered = connection.execute("SELECT cell FROM moments ORDER BY cell").fetchnumpy()["cell"]
    return Estimates(connection, delivered)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield connection


def covered(limits: Answers, truth: Floats) -> NDArray[np.bool_]:
    """Whether the answer is inside; rounding aside, and with no limit where there is none."""
    slack = 1e-9 * np.abs(truth)
    above = np.isnan(limits["low"]) | (limits["low"] <= truth + slack)
    return above & (np.isnan(limits["high"]) | (truth - slack <= limits["high"]))


@pytest.mark.parametrize("rates", [STEADY, CHANGING, LOW], ids=["steady", "changing", "low"])
@pytest.mark.parametrize("values", ["uniform", "zipf", "pareto", "lognormal", "normal", "two tails"])
def test_limits_hold_the_answer_as_often_as_promised(
    values: str, rates: tuple[float, ...], connection: duckdb.DuckDBPyConnection
) -> None:
    sample = sampled(values, rates, seed=5)
    found = estimates(sample, connection)
    assert len(found.delivered) >= 5_000
    truth = {name: answers[found.delivered] for name, answers in sample.truth.items()}
    small = truth["count"] <= 200
    ordered = Ordered.of(sample)
    for name in ("count", "sum", "avg", "var_pop", "stddev_samp", "min", "max", "0.5", "0.9"):
        shown = ""
        for confidence, promised in PROMISED.items():
            if name in ("0.5", "0.9"):
                limits = ordered.between(found.delivered, found.of(quantile_shares(float(name), confidence)))
            else:
                limits = found.of(estimator(function(name), confidence))
            inside = covered(limits, truth[name])
            shown += f"{inside.mean():9.2%} ({inside[small].mean():7.2%})"
            assert min(inside.mean(), inside[small].mean()) >= promised, (name, confidence)
        unlimited = f"{np.isnan(limits['high']).mean():5.0%} without an upper limit"
        print(f"{values:9} {rates!s:21} {name:11} {shown} {unlimited}")


@dataclass
class Ordered:
    """The kept tuples in the order of their values, cell by cell, and where in their cell they end, by weight."""

    cell: NDArray[np.int64]
    x: Floats
    end: Floats

    @classmethod
    def of(cls, sample: Sample) -> Ordered:
        order = np.lexsort((sample.x, sample.cell))
        cell, w = sample.cell[order], sample.w[order]
        total = np.bincount(cell, w)
        before = np.concatenate([[0.0], np.cumsum(total)])[cell]
        return cls(cell, sample.x[order], cell + np.minimum((np.cumsum(w) - before) / total[cell], 1))

    def between(self, cells: NDArray[np.int64], shares: Answers) -> Answers:
        """The values of each cell at both shares of its weight."""
        last = np.searchsorted(self.cell, cells, side="right") - 1
        places = {
            side: np.minimum(np.searchsorted(self.end, cells + share - 1e-9), last) for side, share in shares.items()
        }
        return {side: np.where(np.isnan(shares[side]), np.nan, self.x[place]) for side, place in places.items()}


@pytest.mark.parametrize("rate", [0.99, 0.95, 0.7, 0.3])
def test_limits_of_quantiles_hold_them_far_out_and_where_hardly_any_tuple_is_dropped(
    rate: float, connection: duckdb.DuckDBPyConnection
) -> None:
    for size in (30, 200):
        rng, top = np.random.default_rng(size), np.full(1500, 1 / rate)
        x = rng.random((1500, size))
        kept = rng.random(x.shape) < rate
        cell = np.nonzero(kept)[0]
        sample = Sample(cell, x[kept], np.full(len(cell), 1 / rate), top, {})
        found, ordered = estimates(sample, connection), Ordered.of(sample)
        for fraction in (0.01, 0.1, 0.9, 0.99):
            limits = ordered.between(found.delivered, found.of(quantile_shares(fraction, 0.99)))
            inside = covered(limits, np.quantile(x, fraction, axis=1)[found.delivered])
            assert inside.mean() >= PROMISED[0.99], (size, fraction)


def normal_width(found: Estimates, name: str) -> Floats:
    """The width of the normal interval, which is all that is needed of many values without a tail."""
    squares = {"count": "w2", "sum": "a2", "avg": "(a2 - 2 * s1 / w1 * a1 + pow(s1 / w1, 2) * w2) / pow(w1, 2)"}[name]
    deviations: Floats = found.connection.execute(
        f"SELECT sqrt({squares}) AS d FROM moments ORDER BY cell"
    ).fetchnumpy()["d"]
    return 2 * float(stats.norm.ppf(0.995)) * deviations


@pytest.mark.parametrize("name", ["count", "sum", "avg"])
def test_limits_of_many_values_without_a_tail_are_hardly_wider_than_normal_ones(
    name: str, connection: duckdb.DuckDBPyConnection
) -> None:
    rng = np.random.default_rng(2)
    for size, rate, allowed in ((200, 0.5, 1.7), (2_000, 0.5, 1.15), (10_000, 0.2, 1.1), (100_000, 0.02, 1.1)):
        kept = rng.random((20, size)) < rate
        cell, x = np.nonzero(kept)[0], rng.random((20, size))[kept]
        found = estimates(Sample(cell, x, np.full(len(x), 1 / rate), np.full(20, 1 / rate), {}), connection)
        limits = found.of(estimator(function(name), 0.99))
        ratio = (limits["high"] - limits["low"]) / normal_width(found, name)
        print(f"{name:6} {size:7} tuples at {rate}: {ratio.mean():.3f} times the normal width")
        assert 0.97 < ratio.min() <= ratio.max() < allowed


def test_counts_and_sums_are_unbiased_and_the_others_nearly(connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(3)
    x, p = rng.lognormal(0, 1, 500), rng.choice([1, 0.5, 0.1], 500)
    kept = rng.random((200, 500)) < p
    cell, tuple_ = np.nonzero(kept)
    found = estimates(Sample(cell, x[tuple_], 1 / p[tuple_], np.full(200, 10.0), {}), connection)
    truth = {"count": 500, "sum": x.sum(), "avg": x.mean(), "var_pop": x.var(), "var_samp": x.var(ddof=1)}
    for name, answer in truth.items():
        values = found.of(estimator(function(name), 0.99))["value"]
        error, deviation = values.mean() - answer, values.std(ddof=1) / np.sqrt(200)
        print(f"{name:8} {error / deviation:5.2f} standard errors, {error / answer:.2%}")
        assert abs(error) < 3 * deviation


@pytest.mark.parametrize("confidence", PROMISED)
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
def test_limits_of_a_count_hold_it_in_the_binomial_distribution(
    rate: float, confidence: float, connection: duckdb.DuckDBPyConnection
) -> None:
    kept = np.arange(0.0, 400.0)
    moments = pa.table(
        {"n": kept, "w1": kept / rate, "w2": kept / rate * (1 / rate - 1), "top": np.full(400, 1 / rate)}
    )
    connection.register("counts", moments)
    limits = connection.execute(select(estimator(COUNT_ROWS, confidence), "counts") + " ORDER BY n").fetchnumpy()
    assert (limits["low"] >= kept).all()
    number = np.arange(1, round(200 / rate), max(1, round(0.1 / rate)))
    inside = (limits["low"][:, None] <= number) & (number <= limits["high"][:, None])
    chance = np.asarray(stats.binom.pmf(kept[:, None], number, rate))
    delivered = (inside * chance)[1:].sum(0) / chance[1:].sum(0)
    print(f"{rate}: {confidence} is at least {delivered.min():.4f}, {delivered.mean():.4f} on average")
    assert delivered.min() >= confidence - (1 - confidence)
    assert delivered.mean() >= confidence


#: Sets of kept tuples (value, weight), with NULLs, zeros and equal values among them, and some whose largest weight
#: is that of no tuple.
tuples = st.lists(
    st.tuples(
        st.none() | st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6, width=32),
        st.sampled_from([1.0, 2.0, 10.0, 50.0]),
    ),
    min_size=1,
    max_size=12,
)
NAMES = ["count", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "min", "max"]
Row: TypeAlias = tuple[float | None, ...]
Kept: TypeAlias = list[tuple[float | None, float]]


def literal(x: float | None) -> str:
    return f"{'NULL' if x is None else repr(x)}::DOUBLE"


def answer(found: Estimator, kept: Kept, top: float, panes: int = 1) -> Row:
    """The estimate and its limits from some kept tuples, whose partials are merged from those of several panes."""
    rows = ", ".join(
        f"({i % panes}, {'NULL' if x is None else repr(x)}::DOUBLE, {w!r}::DOUBLE)" for i, (x, w) in enumerate(kept)
    )
    moments = (
        f"(SELECT {top!r}::DOUBLE AS top, {merged([found])} FROM"
        f" (SELECT {partials([found])} FROM (VALUES {rows}) AS kept(pane, x, w) GROUP BY pane, w))"
    )
    row: Row | None = duckdb.execute(select(found, moments)).fetchone()
    assert row is not None
    return row


def same(one: Row, other: Row) -> bool:
    return all(
        (a is None) == (b is None) and (a is None or b is None or a == pytest.approx(b, rel=1e-6, abs=1e-6 * scale))
        for scale in [max(abs(v or 0) for v in one)]
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8)
@given(kept=tuples)
def test_estimates_lie_between_their_limits(name: str, kept: Kept) -> None:
    found = estimator(function(name), 0.95)
    value, low, high = answer(found, kept, 50.0)
    if value is None:
        assert all(x is None for x, _ in kept) or name in ("var_samp", "stddev_samp")
    else:
        assert low is None or low <= value
        assert high is None or value <= high
    if name == "count":
        assert low is not None
        assert low >= sum(x is not None for x, _ in kept)


@pytest.mark.parametrize("name", ["count", "sum", "avg", "var_pop", "min", "max"])
@settings(max_examples=8)
@given(kept=tuples, panes=st.integers(2, 4))
def test_partials_of_panes_add_up(name: str, kept: Kept, panes: int) -> None:
    found = estimator(function(name), 0.95)
    kept = [(x if x is None else round(x), w) for x, w in kept]  # Whole numbers add up the same in any order.
    assert same(answer(found, kept, 50.0), answer(found, kept, 50.0, panes))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8)
@given(kept=tuples)
def test_what_is_not_sampled_is_exact(name: str, kept: Kept) -> None:
    value, low, high = answer(estimator(function(name), 0.95), [(x, 1.0) for x, _ in kept], 1.0)
    assert value == low == high
    rows = ", ".join(f"({literal(x)})" for x, _ in kept)
    exact = duckdb.execute(f"SELECT {name}(x) FROM (VALUES {rows}) AS all_of_them(x)").fetchone()
    largest = max((abs(x) for x, _ in kept if x is not None), default=0.0)
    digits = 1e-6 if name.startswith("stddev") else 1e-12  # Of a root, half as many are left.
    assert exact is not None
    assert (value is None) == (exact[0] is None)
    assert value is None or value == pytest.approx(
        exact[0], rel=1e-9, abs=digits * max(largest, largest**2 if "var" in name else 0)
    )


@pytest.mark.parametrize("name", ["sum", "avg", "min"])
@settings(max_examples=8)
@given(kept=tuples)
def test_limits_are_mirrored_with_the_values(name: str, kept: Kept) -> None:
    value, low, high = answer(estimator(function(name), 0.95), kept, 50.0)
    mirror = estimator(function("max" if name == "min" else name), 0.95)
    mirrored = answer(mirror, [(x and -x, w) for x, w in kept], 50.0)
    assert same((value, low, high), tuple(v if v is None else -v for v in (mirrored[0], mirrored[2], mirrored[1])))


@pytest.mark.parametrize("name", ["sum", "avg", "stddev_pop"])
@settings(max_examples=8)
@given(kept=tuples, factor=st.sampled_from([0.125, 8.0]))
def test_limits_go_with_the_unit_of_the_values(name: str, kept: Kept, factor: float) -> None:
    found = estimator(function(name), 0.95)
    scaled = answer(found, [(x if x is None else x * factor, w) for x, w in kept], 50.0)
    assert same(answer(found, kept, 50.0), tuple(v if v is None else v / factor for v in scaled))


def test_an_average_goes_with_the_zero_of_the_values_and_a_variance_does_not() -> None:
    kept: Kept = [(float(x * x), w) for x, w in zip(range(60), [2.0, 10.0, 50.0] * 20, strict=True)]
    shifted = [(x if x is None else x + 1e4, w) for x, w in kept]
    average, variance = (estimator(function(name), 0.99) for name in ("avg", "var_pop"))
    moved = answer(average, shifted, 50.0)
    assert same(answer(average, kept, 50.0), tuple(v if v is None else v - 1e4 for v in moved))
    assert same(answer(variance, kept, 50.0), answer(variance, shifted, 50.0))


def test_tuples_of_a_lower_rate_may_all_be_lost() -> None:
    exact: Kept = [(1.0, 1.0)] * 1_000
    for name in ("count", "sum"):
        value, low, high = answer(estimator(function(name), 0.99), exact, 50.0)
        assert value == 1_000
        assert high is not None
        # Of 261 tuples, each kept once in fifty times, none is kept as often as 0.5 %.
        assert 1_261 <= high <= 2_000
        assert low == 1_000 or (name == "sum" and low is not None and low < 1_000)


def test_nothing_seen_tells_nothing() -> None:
    none: Kept = [(None, 10.0), (None, 10.0)]
    assert answer(estimator(function("sum"), 0.99), none, 10.0) == (None, None, None)
    assert answer(estimator(function("avg"), 0.99), none, 10.0) == (None, None, None)
    value, low, high = answer(estimator(function("count"), 0.99), none, 10.0)
    assert (value, low) == (0, 0)
    assert high is not None
    assert 50 < high < 60  # Of 51 tuples, each kept once in ten times, none is kept as often as 0.5 %.
    assert answer(estimator(function("sum"), 0.99), [(0.0, 10.0)] * 9, 10.0) == (0, None, None)
    assert answer(estimator(function("avg"), 0.99), [(7.0, 10.0)], 10.0) == (7, None, None)
    assert answer(estimator(function("var_pop"), 0.99), [(7.0, 10.0)], 10.0) == (0, 0, None)


def test_large_values_that_differ_by_little_have_no_false_limits() -> None:
    kept: Kept = [(1e9 + x, 10.0) for x in np.random.default_rng(4).random(500).tolist()]
    _, low, high = answer(estimator(function("avg"), 0.99), kept, 10.0)
    assert low is not None
    assert high is not None
    assert low <= 1e9 + 0.5 <= high


def test_shares_of_a_quantile_are_the_fraction_itself_where_nothing_was_shed() -> None:
    shares = quantile_shares(0.9, 0.99)
    moments = "(SELECT 1e0 AS top, 40e0 AS w1, 0e0 AS w2)"
    assert duckdb.execute(select(shares, moments)).fetchone() == (0.9, 0.9)


def test_what_can_be_sampled() -> None:
    names = [*NAMES, "bool_and", "bool_or", "median", "quantile", "percentile", "mean", "VARIANCE"]
    assert all(samplable(name) for name in names)
    assert not any(samplable(name, distinct=True) for name in names)
    assert not any(samplable(name) for name in ("first", "last", "min_by", "max_by", "mode", "no_such_aggregate"))
    assert answer(estimator(function("bool_or"), 0.9), [(1.0, 2.0)], 2.0) == (1, 1, None)


def test_errors_say_what_to_give() -> None:
    with pytest.raises(FlowError, match=r"^confidence=1: give a number between 0 and 1, such as 0\.99$"):
        estimator(function("sum"), 1)
    with pytest.raises(FlowError, match=r"^mode cannot be estimated from partials of a sample: answer it exactly"):
        estimator(function("mode"), 0.99)
    with pytest.raises(FlowError, match=r"^fraction=-0\.1: give a number from 0 to 1"):
        quantile_shares(-0.1, 0.99)
