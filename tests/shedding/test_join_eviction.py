"""Which kept tuples go when the state is full: as many results come of it as of any other order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shedding.join_simulation import Floats, poisson, zipf

from headgate.errors import FlowError
from headgate.shed.join.eviction import Kept, evicted
from headgate.shed.join.keys import KeyLoads, KeyRates, key_loads

WINDOWS = {"left": 6.0, "right": 4.0}
Order = Callable[[Kept], float]


def loads_of(left: Floats, right: Floats) -> KeyLoads:
    lefts, rights = (KeyRates(float(rates.sum()), dict(enumerate(rates.tolist()))) for rates in (left, right))
    return key_loads(lefts, rights, WINDOWS["left"], WINDOWS["right"], keys=len(left))


def results(left: Floats, right: Floats, let_go: Callable[[list[Kept]], list[Kept]]) -> int:
    """The pairs that come out of two streams in batches of half a second, if so much is let go after each."""
    rng = np.random.default_rng(4)
    streams = {"left": poisson(rng, left, 60), "right": poisson(rng, right, 60)}
    arrivals = sorted(
        (ts, key, side)
        for side, stream in streams.items()
        for ts, key in zip(stream.ts.tolist(), stream.key.tolist(), strict=True)
    )
    state: dict[int, tuple[float, int, str]] = {}
    found, batch = 0, 0.0
    for number, (ts, key, side) in enumerate(arrivals):
        if ts > batch:
            batch = ts + 0.5
            state = {i: t for i, t in state.items() if ts - t[0] < WINDOWS[t[2]]}
            kept = {Kept(k, s, WINDOWS[s] - (ts - t)): i for i, (t, k, s) in state.items()}  # type: ignore[arg-type]
            for gone in let_go(list(kept)):
                del state[kept[gone]]
        found += sum(k == key and s != side and ts - t < WINDOWS[s] for t, k, s in state.values())
        state[number] = (ts, key, side)
    return found


@pytest.mark.parametrize("shape", ["correlated", "anti-correlated", "unrelated"])
def test_more_comes_out_than_by_lifetime_or_at_random(shape: str) -> None:
    frequencies = zipf(60)
    other = {
        "correlated": frequencies,
        "anti-correlated": frequencies[::-1],
        "unrelated": np.random.default_rng(3).permutation(frequencies),
    }[shape]
    left, right = 20 * frequencies, 15 * other
    loads = loads_of(left, right)
    rng = np.random.default_rng(1)
    full = 50  # 180 are kept where there is room for all.

    def partners(kept: Kept) -> float:
        return float((right if kept.side == "left" else left)[kept.key])  # type: ignore[call-overload]

    def last(order: Order) -> Callable[[list[Kept]], list[Kept]]:
        return lambda kept: sorted(kept, key=order)[: max(0, len(kept) - full)]

    ours = results(left, right, lambda kept: evicted(kept, loads, full))
    by_lifetime = results(left, right, last(lambda kept: partners(kept) * kept.remaining))
    oldest_first = results(left, right, last(lambda kept: kept.remaining))
    at_random = results(left, right, last(lambda _: rng.random()))
    everything = results(left, right, lambda _: [])
    print(
        f"{shape}: {ours / everything:.2f} of all results; partners times lifetime {by_lifetime / everything:.2f},"
        f" oldest first {oldest_first / everything:.2f}, at random {at_random / everything:.2f}"
    )
    assert ours > by_lifetime
    assert ours > 1.5 * oldest_first
    assert ours > 1.5 * at_random


@given(
    st.lists(
        st.builds(Kept, st.sampled_from([0, 1, 2, None]), st.sampled_from(["left", "right"]), st.floats(-1, 6)),
        max_size=12,
    ),
    st.integers(0, 14),
)
def test_what_stays_is_worth_no_less_than_what_goes(kept: list[Kept], max_state: int) -> None:
    left, right = np.array([5.0, 2.0, 0.0]), np.array([1.0, 4.0, 3.0])
    gone = evicted(kept, loads_of(left, right), max_state)
    assert len(gone) == max(0, len(kept) - max_state)
    stays = list(kept)
    for one in gone:
        stays.remove(one)

    def rate(one: Kept) -> float:
        if one.key is None or one.remaining <= 0:
            return 0.0
        return float((right if one.side == "left" else left)[one.key])  # type: ignore[call-overload]

    assert max(map(rate, gone), default=0.0) <= min(map(rate, stays), default=9.0)


def test_between_equals_the_one_that_has_less_time_left_goes() -> None:
    loads = loads_of(np.array([1.0]), np.array([1.0]))
    assert evicted([Kept(0, "left", 3), Kept(0, "left", 1), Kept(0, "right", 2)], loads, 1) == [
        Kept(0, "left", 1),
        Kept(0, "right", 2),
    ]


def test_a_state_has_no_negative_size() -> None:
    with pytest.raises(FlowError, match="max_state=-1: give a number of tuples, zero or more"):
        evicted([], loads_of(np.array([1.0]), np.array([1.0])), -1)
