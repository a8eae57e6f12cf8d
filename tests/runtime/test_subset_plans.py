"""`subset` over random plans in one flow: what is delivered is exact, gaps are kept, and something is dropped."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.support import Row, assert_same, collected, frame, seeds

import headgate as hg
from headgate import reference
from headgate.shed.builtin import Subset
from headgate.testing import drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.shed.policy import Policy

SCHEMA = {"ts": "bigint", "k": "int", "g": "int", "v": "int"}
TUPLES, LENGTH, DISORDER = 2_500, 2_000, 40
BATCHES = 3
CALLS = ("count(*) AS n", "sum(v) AS n", "max(v) AS n", "avg(v) AS n", "count(*) AS n, min(v) AS m")


class Asked(NamedTuple):
    """A query of the flow, and the same query over the stream alone."""

    sql: str
    alone: str
    policy: Policy
    keys: tuple[str, ...] = ()


def stream(random: Random) -> list[list[Row]]:
    """The tuples of each batch in the order of their arrival, which is disordered."""
    places = sorted((random.randrange(LENGTH) for _ in range(TUPLES)), key=lambda ts: ts + random.randrange(DISORDER))
    rows = [{"ts": ts, "k": random.randrange(9), "g": random.randrange(3), "v": random.randrange(50)} for ts in places]
    cuts = [0, *sorted(random.sample(range(TUPLES), BATCHES - 1)), TUPLES]
    return [rows[low:high] for low, high in pairwise(cuts)]


def asked(random: Random) -> dict[str, Asked]:
    """Random queries: several of each kind, so that some share tables, and some read the answers of others."""
    found: dict[str, Asked] = {}
    for i in range(4):
        keys = random.choice(((), ("k",), ("g",), ("k", "g")))
        sql = aggregate(random, "S", keys, clause(random, random.choice((20, 30, 50)), ", WA ts"))
        found[f"flat{i}"] = Asked(sql, sql, windows(random), keys)
    for i in range(2):
        slide = random.choice((60, 100))
        sql = aggregate(random, "S", (), f"[RANGE {slide * random.choice((1, 2))} ROWS, SLIDE {slide} ROWS]")
        found[f"rows{i}"] = Asked(sql, sql, windows(random))
    for i in range(2):
        keys = random.choice((("k",), ("k", "g")))
        slide = random.choice((30, 100))
        sql = aggregate(random, "S", keys, f"[RANGE {slide * random.randint(1, 3)}, SLIDE {slide}, WA ts]")
        found[f"groups{i}"] = Asked(sql, sql, hg.subset(by="group", drop=random.uniform(0.3, 0.7)), keys)
    for i in range(3):
        inner = aggregate(
            random, "S", random.choice(((), ("k",))), clause(random, random.choice((10, 20, 25)), ", WA ts")
        )
        sql = over(random, f"({inner}) AS inner_", clause(random, random.choice((40, 50, 60))))
        if i == 2:
            sql = over(random, f"({sql}) AS middle", clause(random, random.choice((100, 120))))
        found[f"nested{i}"] = Asked(sql, sql, windows(random))
    read = random.choice(("flat0", "flat1"))
    window = clause(random, 100)
    shape = random.randrange(2**32)
    sql, alone = (over(Random(shape), name, window) for name in (read, f"({found[read].alone}) AS {read}"))
    found["reader"] = Asked(sql, alone, windows(random))
    # Whoever drops, others who share tables with them do not.
    for i, other in enumerate(random.sample(["flat2", "flat3", "groups0", "rows0", "nested1"], 2)):
        found[f"exact{i}"] = found[other]._replace(policy=hg.exact())
    return found


def windows(random: Random) -> Policy:
    return hg.subset(gap=random.randint(1, 4), drop=random.uniform(0.3, 0.8))


def clause(random: Random, slide: int, wa: str = "") -> str:
    """Windows that tumble, that overlap, in step or not, or that leave room between them."""
    range_ = random.choice((slide, slide, 2 * slide, 3 * slide, slide + random.randint(1, slide), slide - 5))
    return f"[RANGE {range_}, SLIDE {slide}{wa}]"


def aggregate(random: Random, stream: str, keys: tuple[str, ...], window: str) -> str:
    where = random.choice(("", "", " WHERE v % 7 > 0", " WHERE k < 6 AND v > 4"))
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, random.choice(CALLS)])} {window} FROM {stream}{where}{group}"


def over(random: Random, answers: str, window: str) -> str:
    where = random.choice(("", " WHERE n > 3"))
    return f"SELECT max(n) AS n, count(*) AS c {window} FROM {answers}{where}"


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", seeds("subset plans"))
def test_what_is_delivered_is_exact_and_gaps_are_kept(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    batches, queries = stream(random), asked(random)
    for batch in batches:
        # Begun anew each time: what was decided is kept.
        flow = hg.Flow(spark, "test", str(tmp_path))
        flow.stream("S", frame(spark, [], SCHEMA), progress=hg.progress("ts", within=DISORDER))
        for name, query in queries.items():
            flow.query(name, query.sql, policy=query.policy)
        driver = drive(flow)
        driver.batch(S=batch)
    driver.finish()
    everything = [row for batch in batches for row in batch]
    for name, query in queries.items():
        given, exact = collected(driver.results(name)), reference.evaluate(query.alone, {"S": SCHEMA}, S=everything)
        told = f"{name}: {query}"
        match query.policy:
            case Subset(by="group"):
                groups = {tuple(row[key] for key in query.keys) for row in given}
                own = [row for row in exact if tuple(row[key] for key in query.keys) in groups]
                assert 0 < len(own) < len(exact), told
                assert_same(given, own)
            case Subset(gap=gap):
                assert_subset(given, exact)
                starts, kept = ({row["window_start"] for row in rows} for rows in (exact, given))
                assert 0 < len(kept) < len(starts), told
                # Of a window that is delivered, all groups are.
                assert_same(given, [row for row in exact if row["window_start"] in kept])
                assert longest_gap(sorted(starts), kept) <= gap, told
            case _:
                assert_same(given, exact)


def assert_subset(given: list[Row], exact: list[Row]) -> None:
    known = {tuple(sorted(row.items())) for row in exact}
    assert [row for row in given if tuple(sorted(row.items())) not in known] == []


def longest_gap(starts: list[int], kept: set[int]) -> int:
    longest = missing = 0
    for start in starts:
        missing = 0 if start in kept else missing + 1
        longest = max(longest, missing)
    return longest
