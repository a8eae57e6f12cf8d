"""What a join holds, by stretches: as much as one by one, however many batches a window is long."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.shed.join.stock import Stock, Stretch


def stretch(number: int, tuples: float = 100.0, taken: float = 1.0) -> Stretch:
    return Stretch(10.0 * number, 10.0 * number + 10, (tuples, tuples), (taken, taken), (taken, taken))


def test_windows_of_many_batches_take_little_room() -> None:
    stock, window = Stock(), 1000.0
    for number in range(500):
        stock = stock.then(stretch(number), window)
    assert len(stock.stretches) <= 2 * 32 + 2
    assert stock.held == pytest.approx(100 * 200, rel=0.1)
    assert stock.filled(0, stretch(500), window) == pytest.approx(100, rel=0.05)
    assert Stock.restored(stock.state()) == stock


@pytest.mark.parametrize("window", [3.0, 12.0, 25.0])
def test_pairs_within_a_window_are_as_many_as_counted(window: float) -> None:
    rng = np.random.default_rng(2)
    for low, high in ((0.0, 10.0), (4.0, 16.0), (-30.0, -20.0)):
        earlier, later = rng.uniform(low, high, 2_000), rng.uniform(5.0, 15.0, 2_000)
        apart = later[:, None] - earlier
        counted = ((apart >= 0) & (apart <= window)).mean()
        held = Stretch(low, high, (1, 1), (1, 1), (1, 1))
        assert held.met(5.0, 15.0, window) == pytest.approx(counted, abs=0.02)


def test_what_was_kept_by_another_plan_counts_as_far_as_both_take_it() -> None:
    stock = Stock().then(stretch(0, taken=0.2), 20.0)
    # A window of two stretches reaches over all of the last one, and half of the new one comes before a tuple.
    assert stock.filled(0, stretch(1, taken=0.4), 20.0) == pytest.approx(0.5 + 0.5)
    assert stock.filled(0, stretch(1, taken=0.1), 20.0) == pytest.approx(0.5 + 1)
    assert stock.filled(0, stretch(1, tuples=200, taken=0.2), 20.0) == pytest.approx(0.5 + 0.5)
    assert stock.filled(0, stretch(1, taken=0.0), 20.0) == 0
