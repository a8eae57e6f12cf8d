"""Packets by number: the same rows for any cut, at the rate, in the disorder and on the links that are asked for."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headgate.connect.packets.rates import Bursts, Diurnal, Rate, Steps
from headgate.connect.packets.rows import BATCH_ROWS, PacketRows
from headgate.errors import Error

START = 1767225600_000000  # 2026-01-01 in microseconds

EVERYTHING = PacketRows(
    rate=Bursts(base=100, factor=10, every=7, lasting=2),
    disorder=1.5,
    block=0.7,
    links={"main1": 0.5, "main2": 0.3, "main3": 0.2},
    skews={"main2": 3.25},
    lulls={"main1": [(2, 5), (11, 12)], "main3": [(4, 6)]},
)


def rows_of(made: PacketRows, first: int, last: int) -> pa.RecordBatch:
    return made.batch(first, last, made.columns)


def seconds_of(made: PacketRows, first: int, last: int) -> NDArray[np.float64]:
    """The times of packets, in seconds after the start."""
    micros = made.batch(first, last, ["ts"])["ts"].cast(pa.int64()).to_numpy()
    return np.asarray((micros - START) / 1e6)


@given(cuts=st.lists(st.integers(0, 5000)), far=st.integers(0, 10**12))
def test_the_same_rows_for_any_cut(cuts: list[int], far: int) -> None:
    edges = [far, *(far + cut for cut in sorted(cuts)), far + 5000]
    pieces = [rows_of(EVERYTHING, begin, end) for begin, end in pairwise(edges)]
    assert pa.Table.from_batches(pieces).combine_chunks() == pa.table(rows_of(EVERYTHING, far, far + 5000))


def test_batches_are_the_rows_in_order() -> None:
    made = PacketRows()
    batches = list(made.batches(5, 2 * BATCH_ROWS, made.columns))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, BATCH_ROWS - 5]
    assert pa.Table.from_batches(batches).combine_chunks() == pa.table(rows_of(made, 5, 2 * BATCH_ROWS))


def test_a_column_does_not_depend_on_which_others_are_made() -> None:
    whole = rows_of(EVERYTHING, 0, 3000)
    for name in EVERYTHING.columns:
        assert EVERYTHING.batch(0, 3000, [name])[name] == whole[name]


def test_another_seed_gives_other_packets() -> None:
    for name in PacketRows().columns:
        assert PacketRows(seed=1).batch(0, 100, [name]) != PacketRows().batch(0, 100, [name])


def test_parameters_survive_as_text() -> None:
    again = PacketRows.from_json(EVERYTHING.to_json())
    assert rows_of(again, 0, 1000) == rows_of(EVERYTHING, 0, 1000)


def test_addresses_do_not_depend_on_how_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = PacketRows(hosts=70_000, zipf=0).batch(0, 1000, ["srcIP"])["srcIP"]
    assert any(address.startswith("10.1.") for address in kept.to_pylist())
    monkeypatch.setattr("headgate.connect.packets.chunk._KEPT_ADDRESSES", 0)
    assert PacketRows(hosts=70_000, zipf=0).batch(0, 1000, ["srcIP"])["srcIP"] == kept


PROFILES: list[tuple[Rate, list[tuple[float, float]]]] = [
    (Steps([(10, 100), (5, 0), (10, 400)]), [(0, 0), (10, 1000), (12, 1000), (15, 1000), (16, 1400), (1000, 395_000)]),
    (Bursts(100, 10, every=60, lasting=5), [(55, 5500), (57, 7500), (60, 10_500), (115, 16_000), (117, 18_000)]),
    (Diurnal(100, 1.0, period=60), [(15, 1500 + 6000 / (2 * math.pi)), (60, 6000), (630, 63_000 + 6000 / math.pi)]),
]


@pytest.mark.parametrize(("profile", "counts"), PROFILES)
def test_as_many_packets_arrive_as_the_profile_says(profile: Rate, counts: list[tuple[float, float]]) -> None:
    made = PacketRows(rate=profile)
    for seconds, rows in counts:
        assert profile.rows_by(seconds) == pytest.approx(rows, rel=1e-5)
        arrived = math.floor(float(profile.rows_by(seconds)))
        before, after = seconds_of(made, max(arrived - 1, 0), arrived), seconds_of(made, arrived + 1, arrived + 2)
        assert (before <= seconds).all()
        assert (after >= seconds).all()


@pytest.mark.parametrize("profile", [profile for profile, _ in PROFILES])
@given(row=st.floats(0, 1e9))
def test_time_and_rows_are_inverse(profile: Rate, row: float) -> None:
    assert profile.rows_by(profile.time_of(row)) == pytest.approx(row, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("rate", [3.0, 1e6, *(profile for profile, _ in PROFILES)])
@pytest.mark.parametrize("first", [0, 5999, 10**9])
def test_without_disorder_times_never_fall(rate: float | Rate, first: int) -> None:
    assert (np.diff(seconds_of(PacketRows(rate=rate), first, first + 50_000)) >= 0).all()


def test_a_band_of_disorder() -> None:
    ordered, disordered = PacketRows(rate=100), PacketRows(rate=100, disorder=5)
    delay = seconds_of(ordered, 0, 20_000) - seconds_of(disordered, 0, 20_000)
    assert delay.min() >= 0
    assert 4.9 < delay.max() <= 5 + 1e-6
    assert seconds_of(disordered, 0, 20_000).min() >= 0


def test_blocks_come_last_packet_first() -> None:
    ordered, blocks = seconds_of(PacketRows(rate=100), 0, 1000), seconds_of(PacketRows(rate=100, block=2), 0, 1000)
    assert (blocks.reshape(-1, 200)[:, ::-1] == ordered.reshape(-1, 200)).all()


@pytest.mark.parametrize("rate", [7.3, 0.1, *(profile for profile, _ in PROFILES)])
@pytest.mark.parametrize("block", [0.001, 0.7, 3, 1e6])
def test_blocks_lose_and_double_no_packet(rate: float | Rate, block: float) -> None:
    made = PacketRows(rate=rate, block=block)
    edges = np.ceil(made.profile.rows_by(block * np.arange(200))).astype(int)
    for begin, end in pairwise(edges[edges <= 20_000]):
        assert (seconds_of(made, begin, end)[::-1] == seconds_of(PacketRows(rate=rate), begin, end)).all()


@pytest.mark.parametrize("block", [0.001, 0.7, 3, 1e6])
def test_a_packet_stays_in_its_block(block: float) -> None:
    far = 10**6
    ordered, blocks = (seconds_of(PacketRows(rate=10, block=each), far, far + 1000) for each in (0, block))
    assert np.abs(blocks - ordered).max() <= block + 0.1  # The last packet of a block may come just after its end.


def test_links_have_their_shares() -> None:
    made = PacketRows(links={"main1": 0.7, "main2": 0.2, "main3": 0.1})
    assert made.columns[-1] == "link"
    links = made.batch(0, 20_000, ["link"])["link"].to_pylist()
    for link, share in made.links.items():
        assert abs(links.count(link) - 20_000 * share) < 5 * (20_000 * share * (1 - share)) ** 0.5


def test_a_skewed_link_lags() -> None:
    links = {"main1": 0.5, "main2": 0.5}
    even, skewed = PacketRows(links=links), PacketRows(links=links, skews={"main2": 2.5})
    lag = seconds_of(even, 0, 5000) - seconds_of(skewed, 0, 5000)
    late = np.array(skewed.batch(0, 5000, ["link"])["link"].to_pylist()) == "main2"
    assert lag[late] == pytest.approx(2.5)
    assert (lag[~late] == 0).all()


def test_in_a_lull_others_send_the_packets_of_a_link() -> None:
    made = PacketRows(
        rate=1000,
        links={"main1": 0.5, "main2": 0.3, "main3": 0.2},
        lulls={"main1": [(1, 3), (6, 7)], "main3": [(2, 4), (8, math.inf)]},
    )
    arrival = seconds_of(made, 0, 10_000)
    link = np.array(made.batch(0, 10_000, ["link"])["link"].to_pylist())
    for name, lulls in made.lulls.items():
        asleep = np.any([(begin <= arrival) & (arrival < end) for begin, end in lulls], axis=0)
        assert not (asleep & (link == name)).any()
    assert (link[2000:3000] == "main2").all()
    for sender, share in (("main2", 0.6), ("main3", 0.4)):
        assert abs((link[1000:2000] == sender).sum() - 1000 * share) < 80
    assert {*link[4000:6000]} == {"main1", "main2", "main3"}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rate": 0}, "rate must be above 0"),
    ({"rate": -5}, "rate must be above 0"),
    ({"rate": math.nan}, "rate must be above 0"),
    ({"rate": []}, "rate must have a step"),
    ({"rate": [(10, -1), (10, 5)]}, "rate must not be below 0"),
    ({"rate": [(0, 1)]}, "rate must have steps of more than 0 seconds"),
    ({"rate": [(10, 5), (10, 0)]}, "rate must end with a step above 0"),
    ({"hosts": 0}, "hosts must lie between"),
    ({"zipf": math.nan}, "zipf must not be below 0"),
    ({"disorder": -1}, "disorder must not be below 0"),
    ({"block": -1}, "block must not be below 0"),
    ({"start": "noon"}, "start must be a time"),
    ({"links": {"a": 0.5, "b": 0.4}}, "links must share 1 in all, not 0.9"),
    ({"links": {"a": 1.5, "b": -0.5}}, "links must have shares above 0"),
    ({"skews": {"a": 1}}, "skews must name one of the links, not a"),
    ({"links": {"a": 1}, "skews": {"a": -1}}, "skews must not be below 0, and that of a is -1"),
    ({"links": {"a": 1}, "lulls": {"b": [(1, 2)]}}, "lulls must name one of the links, not b"),
    ({"links": {"a": 1}, "lulls": {"a": [(2, 1)]}}, r"lulls must end after they begin, not as \(2, 1\) of a"),
    (
        {"links": {"a": 0.5, "b": 0.5}, "lulls": {"a": [(1, 9)], "b": [(5, 6)]}},
        "lulls must leave a link awake, and at second 5 do not",
    ),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_an_impossible_parameter_is_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(Error, match=f"^packets: {message}"):
        PacketRows(**parameters)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (lambda: Bursts(0, 2, 10, 1), "rate must have a base above 0"),
        (lambda: Bursts(1, -2, 10, 1), "rate must have a factor above 0"),
        (lambda: Bursts(1, 2, 10, 10), "rate must have bursts that are shorter than `every`"),
        (lambda: Diurnal(-1, 0.5), "rate must have a base above 0"),
        (lambda: Diurnal(1, 1.5), "rate must have an amplitude from 0 to 1"),
        (lambda: Diurnal(1, 0.5, 0), "rate must have a period above 0"),
    ],
)
def test_an_impossible_profile_is_named(profile: Any, message: str) -> None:
    with pytest.raises(Error, match=f"^packets: {message}"):
        profile()
