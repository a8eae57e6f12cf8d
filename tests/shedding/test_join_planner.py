"""What is planned for a join stays within the time, and the room, that it has; what is known follows the streams."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from headgate.errors import FlowError, WindowError
from headgate.lang import parse_query
from headgate.plan import Catalog, Field, Source, bind
from headgate.plan.stream.stages import Continuous, continuous
from headgate.shed.builtin import estimate, sample, subset
from headgate.shed.fit import loss_of
from headgate.shed.join.cost import EVERYTHING, NOTHING, JoinShares
from headgate.shed.join.keys import KeyLoads, KeyRates, key_loads
from headgate.shed.join.plan import PairSubset, restored
from headgate.shed.join.planner import (
    dropped_always,
    sampled_always,
    sampled_within,
    within_room,
    within_time,
)
from headgate.shed.join.statistics import JoinStatistics, SideSeen
from headgate.shed.join.work import Prices, work
from headgate.shed.losses import METHODS, Pairs, RandomPairs

PRICES = Prices(looking=1e-6, kept=2e-6, held=5e-7, pair=1e-6)


def loads(
    skew: float = 1.0, anti: bool = False, keys: int = 2_000, order: np.random.Generator | None = None
) -> KeyLoads:
    rates = 20_000 * np.arange(1, keys + 1) ** -skew / (np.arange(1, keys + 1) ** -skew).sum()
    if order is not None:
        rates = order.permutation(rates)
    left: dict[Hashable, float] = {key: float(rate) for key, rate in enumerate(rates)}
    right = dict(zip(left, reversed(left.values()) if anti else left.values(), strict=True))
    return key_loads(KeyRates(20_000, left), KeyRates(20_000, right), 4.0, 2.0, keys)


def seconds(load: KeyLoads, plan: PairSubset) -> float:
    return PRICES.seconds(work(load, plan))


@pytest.mark.parametrize("method", [None, *METHODS])
@pytest.mark.parametrize("part", [0.02, 0.3, 0.7])
@pytest.mark.parametrize("anti", [False, True])
def test_a_plan_takes_as_long_as_it_may(method: str | None, part: float, anti: bool) -> None:
    load = loads(anti=anti)
    budget = part * seconds(load, PairSubset())
    plan = within_time(Pairs(method=method), load, PRICES, 1.0, budget)
    if method == "insert-no-probe" and plan.others == NOTHING:
        return
    assert 0.5 * budget < seconds(load, plan) < 1.02 * budget
    assert restored(plan.document()) == plan


def test_by_key_gives_more_where_keys_differ_and_says_why_not_where_they_do_not() -> None:
    even, uneven = loads(skew=0.0), loads(anti=True)
    by_key, alike = Pairs(), Pairs(method="probe-no-insert")
    budget = 0.3 * seconds(uneven, PairSubset())
    plans = [within_time(policy, uneven, PRICES, 1.0, budget) for policy in (by_key, alike)]
    assert work(uneven, plans[0]).pairs > 1.05 * work(uneven, plans[1]).pairs
    assert plans[0].known
    plan = within_time(by_key, even, PRICES, 1.0, 0.3 * seconds(even, PairSubset()))
    assert plan.known is None
    assert plan.why.startswith("all keys alike: ranking them gives 1")
    assert plan.why.endswith("as they differ too little to pay for counting them")


def test_keys_pay_unless_they_change_too_fast() -> None:
    load = loads(anti=True)
    budget = 0.3 * seconds(load, PairSubset())
    assert within_time(Pairs(), load, PRICES, 1.0, budget, before=load).known
    others = loads(anti=True, order=np.random.default_rng(1))
    plan = within_time(Pairs(), load, PRICES, 1.0, budget, before=others)
    assert plan.known is None
    assert plan.why.endswith("as they change too fast for the statistics")


def test_plans_do_not_change_sides_for_little() -> None:
    load = loads(skew=0.0)
    budget, policy = 0.2 * seconds(load, PairSubset()), Pairs(method="probe-no-insert")
    first = within_time(policy, load, PRICES, 1.0, budget)
    assert first.others.insert_right == 0
    other = key_loads(KeyRates(20_000, {}), KeyRates(20_000, {}), 4.0, 4.4, 2_000)
    anew, stayed = (within_time(policy, other, PRICES, 1.0, budget, last=last) for last in (None, first))
    assert anew.others.insert_left == stayed.others.insert_right == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_fraction_is_dropped_always(method: str) -> None:
    load = loads()
    plan = dropped_always(Pairs(method), 0.4, load)
    assert work(load, plan).pairs == pytest.approx(0.6 * work(load, PairSubset()).pairs, rel=1e-6)
    assert dropped_always(Pairs(method), 0.0, load).exact


def test_no_more_is_kept_than_there_is_room_for() -> None:
    load = loads()
    policy = Pairs(max_state=5_000)
    room = within_room(policy, load, PairSubset()).room
    assert room is not None
    assert work(load, room).held == pytest.approx(4_500)
    assert within_room(Pairs(), load, PairSubset()) == PairSubset()
    assert within_room(Pairs(max_state=10**9), load, PairSubset()) == PairSubset()


@pytest.mark.parametrize("spread", [1.0, 1.25])
def test_a_sample_takes_as_long_as_it_may(spread: float) -> None:
    load = loads(skew=0.0, keys=20_000)
    everything = PRICES.seconds(work(load, sampled_always(RandomPairs(), 1.0, load, PRICES)))
    for part in (0.9, 0.98):
        plan = sampled_within(RandomPairs(spread=spread), load, PRICES, 1.0, part * everything)
        assert 0.01 <= plan.rate < 1
        assert PRICES.seconds(work(load, plan)) == pytest.approx(part * everything, rel=0.02)
        assert (plan.others.left is None) == (spread == 1 or part > 0.9)


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("part", [0.05, 0.2, 0.5])
def test_there_is_a_sample_for_every_budget(part: float, skew: float) -> None:
    load = loads(skew=skew, keys=2_000)
    everything = PRICES.seconds(work(load, sampled_always(RandomPairs(), 1.0, load, PRICES)))
    plan = sampled_within(RandomPairs(), load, PRICES, 1.0, part * everything)
    print(f"skew {skew}, {part} of the time: {plan.why}")
    assert PRICES.seconds(work(load, plan)) == pytest.approx(part * everything, rel=0.05)


def test_a_sample_that_there_is_no_time_for_does_little() -> None:
    load = loads(skew=0.0, keys=2_000)
    plan, every = (
        sampled_within(RandomPairs(), load, PRICES, 1.0, 0.0),
        sampled_always(RandomPairs(), 1.0, load, PRICES),
    )
    assert "or less" in plan.why
    assert 0 < PRICES.seconds(work(load, plan)) < 0.05 * PRICES.seconds(work(load, every))


def test_statistics_follow_the_streams() -> None:
    statistics = JoinStatistics((200.0, 100.0))
    assert not statistics.known
    for number in range(6):
        key = 7 if number < 3 else 8
        seen = SideSeen(100, 90, 10, {key: 60}, lowest=100.0 * number, highest=100.0 * (number + 1))
        statistics.observe((seen, seen), pairs=400, plan=PairSubset())
    statistics = JoinStatistics((200.0, 100.0), statistics.state())
    found = statistics.loads((200, 200))
    assert (found.others.left_window, found.others.right_window) == pytest.approx((2.0, 1.0))
    assert found.known[8].left_rate > 1.5 * found.known[7].left_rate
    assert found.rates[:, 0].sum() == pytest.approx(180)


@pytest.mark.parametrize("rising", [False, True])
def test_pairs_of_the_next_batch_are_told_by_what_is_held(rising: bool) -> None:
    """Tuples at random places, kept and looking by shares and rates that change; pairs are counted one by one."""
    rng, windows, keys = np.random.default_rng(4), (30.0, 18.0), 5
    statistics = JoinStatistics(windows)
    held = [np.empty((3, 0)), np.empty((3, 0))]
    off = []
    for number in range(14):
        shares = JoinShares(0.3 if (number >= 7) is not rising else 1.0, 0.5)
        tuples, plan, low = (400 if number >= 10 else 200), PairSubset(shares), 10.0 * number
        # Their places, keys, and coins.
        new = [rng.uniform(size=(3, tuples)) * [[10], [keys], [1]] + [[low], [0], [0]] for _ in range(2)]
        pairs = 0
        for side, share in enumerate((shares.insert_left, shares.insert_right)):
            known, later = np.hstack([held[side], new[side]]), new[1 - side]
            held[side] = known[:, known[2] < share]
            apart = later[0][:, None] - held[side][0]
            same = later[1].astype(int)[:, None] == held[side][1].astype(int)
            pairs += int(((apart >= 0) & (apart <= windows[side]) & same).sum())
        if number:
            expected = statistics.next((tuples, tuples), plan, (low, low + 10)).pairs
            off.append(expected * statistics.scale / pairs - 1)
        seen = [SideSeen(tuples, tuples, keys, {}, float(side[0].min()), float(side[0].max())) for side in new]
        statistics.observe(seen, pairs, plan)
        statistics = JoinStatistics(windows, statistics.state())
    assert max(map(abs, off)) < 0.12


def query(sql: str) -> Continuous:
    fields = (Field("ts", "int"), Field("k", "string"))
    plan = bind(parse_query(sql), Catalog([Source(name, fields, "ts") for name in "AB"]))
    return continuous("q", plan)


PAIRS = "SELECT A.ts AS at, B.ts AS bt, A.k FROM A [RANGE 4, WA ts], B [RANGE 3, WA ts] WHERE A.k = B.k"


def test_what_cannot_be_shed_is_refused() -> None:
    loss_of(query(PAIRS), subset(method="by-key", max_state=0))
    loss_of(query(f"SELECT count(*) AS n [RANGE 5, SLIDE 5, WA at] FROM ({PAIRS})"), estimate())
    with pytest.raises(FlowError, match="leave out gap and by"):
        loss_of(query(PAIRS), subset(gap=3))
    with pytest.raises(FlowError, match="no pairs to sample"):
        loss_of(query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM A"), sample())
    with pytest.raises(FlowError, match="max_state is for joins"):
        loss_of(query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM A"), subset(max_state=5))
    with pytest.raises(FlowError, match="method='best'"):
        subset(method="best")
    with pytest.raises(FlowError, match="max_state=-1"):
        subset(max_state=-1)
    with pytest.raises(FlowError, match="rate=0"):
        sample(rate=0)
    with pytest.raises(FlowError, match=r"spread=0\.5"):
        sample(spread=0.5)
    with pytest.raises(WindowError):
        query(PAIRS.replace("RANGE 4", "RANGE 0"))


def test_nothing_is_made_of_nothing() -> None:
    empty = key_loads(KeyRates(0, {}), KeyRates(0, {}), 1.0, 1.0, 1)
    assert within_time(Pairs(), empty, PRICES, 1.0, 0.0).others == EVERYTHING
    statistics = JoinStatistics((10.0, 10.0))
    statistics.observe((SideSeen(), SideSeen(5, 0, 1, {}, 0.0, 4.0)), pairs=0, plan=PairSubset())
    assert work(statistics.loads((0, 5)), PairSubset(JoinShares())).pairs == 0
