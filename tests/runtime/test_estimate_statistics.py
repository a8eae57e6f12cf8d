"""Estimates in a flow as statistics: unbiased, and within their limits as often as promised, while rates change.

Coins are independent from tuple to tuple. So as many copies of the same tuples as there are replicas, told apart by a
key, are as many samples of them, in one flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import headgate as hg
from headgate.testing import drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

Floats: TypeAlias = NDArray[np.float64]

REPLICAS, WINDOWS, LENGTH = 200, 9, 100
KINDS = ("uniform", "zipf", "pareto")
#: How many tuples of each kind of value a window has; window after window, over and over.
SIZES = (24, 60, 150, 40, 90)
#: In each window, one batch goes on where the one before it stopped; those before this one have nothing in the third.
THIRD = 3
#: The rates of the three batches, by query.
RATES = {
    "sums": (0.9, 0.5, 0.25),
    "filtered": (0.6, 1.0, 0.3),
    "sliding": (0.4, 0.2, 0.1),
    "ranks": (0.5, 0.8, 0.3),
}
#: All share one table of partials, and `ranks` has one of values besides.
QUERIES = {
    "sums": "SELECT kind, replica, count(*) AS n, sum(v) AS s, avg(v) AS a, stddev(v) AS sd,"
    " min(v) AS lo, max(v) AS hi [RANGE 100, SLIDE 100, WA ts] FROM S GROUP BY kind, replica",
    "filtered": "SELECT kind, replica, count(*) AS n, sum(w) AS s [RANGE 100, SLIDE 100, WA ts]"
    " FROM (SELECT ts, kind, replica, flag, 10 - v AS w FROM S WHERE flag > 0) WHERE flag < 4 GROUP BY kind, replica",
    "sliding": "SELECT kind, replica, count(*) AS n, avg(v) AS a [RANGE 300, SLIDE 100, WA ts]"
    " FROM S GROUP BY kind, replica",
    "ranks": "SELECT kind, replica, median(v) AS m, quantile(v, 0.9) AS q [RANGE 100, SLIDE 100, WA ts]"
    " FROM S GROUP BY kind, replica",
}
CALLS: dict[str, Callable[[Floats], float]] = {
    "n": np.size,
    "s": np.sum,
    "a": np.mean,
    "sd": lambda x: float(np.std(x, ddof=1)),
    "lo": np.min,
    "hi": np.max,
    "m": np.median,
    "q": lambda x: float(np.quantile(x, 0.9)),
}


def tuples() -> list[tuple[int, int, int, int, float]]:
    """The tuples of one replica, each with the batch that brings it."""
    rng, ranks, found = np.random.default_rng(11), np.arange(1.0, 1001.0), []
    for window in range(WINDOWS):
        size = SIZES[window % len(SIZES)]
        zipf = rng.choice(ranks, size, p=ranks**-1.2 / sum(ranks**-1.2))
        for kind, values in enumerate((rng.random(size), zipf, rng.pareto(1.5, size) + 1)):
            for i, (value, flag) in enumerate(zip(values, rng.integers(0, 5, size), strict=True)):
                at = i / size
                batch = int(at >= 0.3) + int(at >= 0.6 and window >= THIRD)
                found.append((batch, LENGTH * window + int(LENGTH * at), kind, int(flag), float(value)))
    return found


TUPLES = tuples()


def groups(query: str) -> dict[tuple[int, int], Floats]:
    """The values of all tuples of one replica, by group and window."""
    found: dict[tuple[int, int], list[float]] = {}
    for _, ts, kind, flag, value in TUPLES:
        match query:
            case "filtered" if not 0 < flag < 4:
                continue
            case "filtered":
                starts, of = [ts // 100 * 100], 10 - value
            case "sliding":
                starts, of = [ts // 100 * 100 - back for back in (0, 100, 200)], value
            case _:
                starts, of = [ts // 100 * 100], value
        for start in starts:
            found.setdefault((kind, start), []).append(of)
    return {key: np.array(values) for key, values in found.items()}


class Answers:
    """The answers of a query: a row for each group in a window, a column for each replica, NaN where there is none."""

    def __init__(self, query: str, df: DataFrame) -> None:
        table = df.toArrow()
        self.groups = groups(query)
        rows = {key: i for i, key in enumerate(self.groups)}
        keys = zip(table["kind"].to_pylist(), table["window_start"].to_pylist(), strict=True)
        self._where = np.array([rows[key] for key in keys]), table["replica"].to_numpy()
        self._table = table

    def __getitem__(self, column: str) -> Floats:
        found = np.full((len(self.groups), REPLICAS), np.nan)
        found[self._where] = self._table[column].cast("double").to_numpy()
        return found

    def exact(self, call: str) -> Floats:
        """The exact answers, a row for each group in a window."""
        return np.array([[CALLS[call](values)] for values in self.groups.values()])

    @property
    def calls(self) -> list[str]:
        """The aggregates of the query."""
        return [call for call in CALLS if call in self._table.column_names]

    @property
    def kinds(self) -> dict[str, NDArray[np.bool_]]:
        """Which rows are about which kind of values."""
        return {name: np.array([[kind == i] for kind, _ in self.groups]) for i, name in enumerate(KINDS)}


@pytest.fixture(scope="module")
def answers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    """The answers of a flow that is begun anew with other rates before each batch."""
    folder = str(tmp_path_factory.mktemp("estimates"))
    one = spark.createDataFrame(TUPLES, "batch INT, ts BIGINT, kind INT, flag INT, v DOUBLE")
    rows = spark.range(REPLICAS, numPartitions=2).selectExpr("CAST(id AS INT) AS replica").crossJoin(one)
    for number in range(3):
        flow = hg.Flow(spark, "test", folder)
        flow.stream("S", rows.where("false"), progress=hg.progress("ts", within=WINDOWS * LENGTH))
        for name, sql in QUERIES.items():
            flow.query(name, sql, hg.estimate(confidence=0.99, rate=RATES[name][number]), strategy="paned")
        driver = drive(flow)
        driver.batch(S=rows.where(f"batch = {number}"))
    driver.finish()
    return {name: Answers(name, driver.results(name)) for name in QUERIES}


@pytest.mark.parametrize("query", QUERIES)
def test_limits_hold_the_answer_as_often_as_promised(query: str, answers: dict[str, Answers]) -> None:
    given = answers[query]
    for call in given.calls:
        exact, low, high = given.exact(call), given[f"{call}_low"], given[f"{call}_high"]
        slack = 1e-9 * np.abs(exact)
        held = (np.isnan(low) | (low <= exact + slack)) & (np.isnan(high) | (exact - slack <= high))
        delivered = ~np.isnan(given[call])
        assert np.count_nonzero(delivered) >= 5_000
        shares = {kind: held[of & delivered].mean() for kind, of in given.kinds.items()}
        print(f"{query:8} {call:2} {', '.join(f'{kind} {share:.2%}' for kind, share in shares.items())}")
        assert min(shares.values()) >= 0.985, (call, shares)


@pytest.mark.parametrize("query", ["sums", "filtered", "sliding"])
def test_estimates_are_unbiased(query: str, answers: dict[str, Answers]) -> None:
    """Over all replicas, the mean is within three of its own standard errors of the exact answer."""
    given = answers[query]
    for call in (call for call in given.calls if call in ("n", "s", "a")):
        for kind, of in given.kinds.items():
            # Of a group that is not delivered, nothing was taken: that counts as none.
            errors = np.where(of, np.nan_to_num(given[call]) - given.exact(call), 0).sum(axis=0)
            off = errors.mean() / (errors.std(ddof=1) / np.sqrt(REPLICAS))
            print(f"{query:8} {call:2} {kind:8} off by {off:5.2f} standard errors")
            assert abs(off) < 3, (call, kind)


def test_extremes_are_bounds(answers: dict[str, Answers]) -> None:
    given = answers["sums"]
    assert np.all(given["lo"] >= given.exact("lo"))
    assert np.all(given["hi"] <= given.exact("hi"))
    assert np.all(given["lo_high"] == given["lo"])
    assert np.all(given["hi_low"] == given["hi"])
    assert np.all(np.isnan(given["lo_low"]) & np.isnan(given["hi_high"]))
