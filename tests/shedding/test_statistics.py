"""Statistics follow the streams: smoothly, at once where there is a step, and little for a small sample."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.shed.learn.statistics import Arrived, Passed, Smoothed, Statistics, Summed, Values

HALF_LIFE = 4.0
KEEP = 0.5 ** (1 / HALF_LIFE)


def whole(tuples: float) -> dict[str, Arrived]:
    """A batch of the stream S that was seen whole."""
    return {"S": Arrived(round(tuples), round(tuples))}


def summed(values: np.ndarray[tuple[int], np.dtype[np.float64]], rate: float = 1.0) -> Summed:
    """What a batch tells of these values, a sample of this rate."""
    n = len(values)
    return Summed(n / rate, float(values.sum()) / rate, float((values**2).sum()) / rate, n)


def per_batch(statistics: Statistics) -> float:
    rate = statistics.rate("S")
    assert rate is not None
    return rate.a_batch


def known(values: Values | None) -> Values:
    assert values is not None
    return values


class TestSmoothing:
    def test_half_of_a_small_change_is_followed_within_the_half_life(self) -> None:
        figure = Smoothed.first(100.0)
        for _ in range(100):
            figure = figure.then(100.0, keep=KEEP)
        for _ in range(int(HALF_LIFE)):
            figure = figure.then(104.0, keep=KEEP)
        assert figure.value == pytest.approx(102.0)

    def test_noise_is_smoothed_and_rarely_taken_for_a_step(self) -> None:
        random = np.random.default_rng(1)
        figures = random.normal(1000.0, 150.0, 500)
        figure, values, jumps = Smoothed.first(figures[0]), [], 0
        for new in figures[1:]:
            figure = figure.then(float(new), keep=KEEP)
            values.append(figure.value)
            jumps += figure.evidence == 1.0
        assert np.std(values[20:]) < 0.5 * 150
        assert figure.deviation == pytest.approx(150, rel=0.4)
        assert jumps <= 10

    @given(
        level=st.floats(10, 1e7),
        factor=st.floats(1.6, 20) | st.floats(0.02, 0.6),
        before=st.integers(2, 40),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_a_step_is_followed_within_two_batches_and_so_is_its_end(
        self, level: float, factor: float, before: int, seed: int
    ) -> None:
        random = np.random.default_rng(seed)
        figure = Smoothed.first(level)
        for base, batches in ((level, before), (level * factor, 2), (level * factor, 10), (level, 2)):
            for _ in range(batches):
                figure = figure.then(base * random.uniform(0.96, 1.04), keep=KEEP)
            assert figure.value == pytest.approx(base, rel=0.12)

    def test_a_burst_of_one_batch_is_over_at_once(self) -> None:
        figure = Smoothed.first(100.0)
        for value in [100.0] * 30 + [300.0, 100.0]:
            figure = figure.then(value, keep=KEEP)
        assert figure.value == 100

    def test_a_small_step_needs_a_second_batch_to_be_believed(self) -> None:
        figure = Smoothed.first(100.0)
        for _ in range(60):
            figure = figure.then(100.0, keep=KEEP)
        first = figure.then(112.0, keep=KEEP)
        assert first.value < 103
        assert first.then(112.0, keep=KEEP).value == 112
        assert first.then(100.0, keep=KEEP).value < 103

    def test_figures_that_go_up_and_down_are_averaged_in_the_end(self) -> None:
        figure = Smoothed.first(0.0)
        for batch in range(60):
            figure = figure.then(1000.0 * (batch % 2), keep=KEEP)
        assert figure.value == pytest.approx(500, rel=0.2)


class TestRates:
    def test_a_batch_and_a_second(self) -> None:
        statistics = Statistics()
        statistics.observe(streams=whole(500))
        rate = statistics.rate("S")
        assert rate is not None
        assert (rate.a_batch, rate.a_second) == (500, None)
        for seconds in (5.0, 10.0, 2.5):  # As many a second, in batches of any length.
            statistics.observe(streams=whole(100 * seconds), seconds=seconds)
        rate = statistics.rate("S")
        assert rate is not None
        assert rate.a_second == pytest.approx(100)
        assert statistics.rate("T") is None

    def test_a_stream_that_falls_silent_has_no_rate(self) -> None:
        statistics = Statistics()
        for tuples in (1000, 1000, 1000, 0):
            statistics.observe(streams=whole(tuples))
        assert per_batch(statistics) == 0

    @pytest.mark.parametrize("sampling_rate", [0.003, 0.03, 0.3])
    def test_a_rate_from_a_sample_is_unbiased(self, sampling_rate: float) -> None:
        random = np.random.default_rng(2)
        statistics, values = Statistics(half_life=HALF_LIFE), []
        for _ in range(1000):
            seen = int(random.binomial(5000, sampling_rate))
            statistics.observe(streams={"S": Arrived(seen / sampling_rate, seen)})
            values.append(per_batch(statistics))
        assert np.mean(values) == pytest.approx(5000, rel=0.03)
        assert np.std(values) < 0.6 * math.sqrt(5000 / sampling_rate)


class TestSelectivities:
    @pytest.mark.parametrize(("seen", "moved"), [(10, 0.04), (1_000_000, 0.15)])
    def test_a_small_sample_moves_the_estimate_less(self, seen: int, moved: float) -> None:
        statistics = Statistics(half_life=HALF_LIFE)
        for batch in range(60):
            statistics.observe(segments={"f": Passed(1e6, 0.4e6 if batch % 2 else 0.6e6, 1_000_000)})
        before = statistics.selectivity("f")
        statistics.observe(segments={"f": Passed(1e6, 0.9e6, seen)})
        after = statistics.selectivity("f")
        assert before == pytest.approx(0.5, abs=0.05)
        assert before is not None
        assert after is not None
        if seen == 10:
            assert 0 < after - before < moved
        else:
            assert after - before > moved / 2

    def test_a_selectivity_from_few_tuples_comes_close(self) -> None:
        random = np.random.default_rng(3)
        statistics, values = Statistics(half_life=HALF_LIFE), []
        for _ in range(500):
            seen = int(random.integers(1, 40))
            statistics.observe(segments={"f": Passed(seen * 50, int(random.binomial(seen, 0.2)) * 50, seen)})
            values.append(statistics.selectivity("f") or 0.0)
        assert np.mean(values) == pytest.approx(0.2, rel=0.1)

    def test_a_join_may_give_more_than_it_takes_and_nothing_in_tells_nothing(self) -> None:
        statistics = Statistics()
        statistics.observe(segments={"join": Passed(100, 250, 100), "idle": Passed(0, 0, 0)})
        assert statistics.selectivity("join") == 2.5
        assert statistics.selectivity("idle") is None


class TestValues:
    def test_one_batch_is_what_numpy_says(self) -> None:
        random = np.random.default_rng(4)
        a, b = random.gamma(2.0, 50.0, 300), random.normal(-7.0, 2.0, 40)
        statistics = Statistics()
        statistics.observe(aggregates={"sum(len)": {"a": summed(a), "b": summed(b)}})
        groups = statistics.groups("sum(len)")
        assert list(groups) == ["a", "b"]
        for values, told in (
            (a, groups["a"]),
            (b, groups["b"]),
            (np.concatenate([a, b]), statistics.values("sum(len)")),
        ):
            assert told is not None
            assert (told.n, told.mean, told.deviation) == pytest.approx((len(values), values.mean(), values.std()))

    def test_samples_of_changing_rates_give_mean_and_deviation(self) -> None:
        random = np.random.default_rng(5)
        statistics, told = Statistics(half_life=10), []
        for _ in range(300):
            rate = float(random.choice([0.02, 0.2, 1.0]))
            statistics.observe(
                aggregates={"s": {None: summed(random.lognormal(3.0, 1.0, random.binomial(2000, rate)), rate)}}
            )
            values = known(statistics.values("s"))
            told.append((values.n, values.mean, values.deviation))
        n, mean, deviation = np.mean(told[20:], axis=0)
        true = math.exp(3.5)
        assert n == pytest.approx(2000, rel=0.02)
        assert mean == pytest.approx(true, rel=0.03)
        assert deviation == pytest.approx(true * math.sqrt(math.e - 1), rel=0.08)

    def test_the_heaviest_groups_are_kept(self) -> None:
        random = np.random.default_rng(6)
        statistics = Statistics(groups=20)
        for _ in range(30):
            counts = np.bincount(random.zipf(1.5, 5000).clip(max=2000))
            statistics.observe(aggregates={"s": {str(g): summed(np.ones(n)) for g, n in enumerate(counts) if n}})
            assert len(statistics.groups("s")) <= 20
        kept = list(statistics.groups("s"))
        assert kept[:3] == ["1", "2", "3"]
        assert {str(g) for g in range(1, 11)} <= set(kept)

    def test_a_group_that_comes_is_taken_in_and_one_that_goes_makes_room(self) -> None:
        statistics = Statistics(groups=2)
        for batch in range(12):
            heavy = ("a", "b") if batch < 6 else ("b", "c")
            statistics.observe(aggregates={"s": {g: summed(np.full(100, 5.0)) for g in heavy}})
        assert set(statistics.groups("s")) == {"b", "c"}
        assert statistics.groups("s")["c"].n == pytest.approx(100)

    def test_not_a_number_among_the_values_leaves_mean_and_deviation_as_they_were(self) -> None:
        statistics = Statistics()
        statistics.observe(aggregates={"s": {None: Summed(10, 50.0, 290.0, 10)}})
        for bad in (math.nan, math.inf):
            statistics.observe(aggregates={"s": {None: Summed(10, bad, bad, 10)}})
        assert known(statistics.values("s")) == Values(10, 5.0, 2.0)

    def test_an_aggregate_without_values_is_not_known(self) -> None:
        statistics = Statistics()
        statistics.observe(aggregates={"s": {}})
        assert statistics.values("s") is None
        assert statistics.groups("s") == {}


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_what_is_kept_in_a_checkpoint_goes_on_as_before(seed: int, batches: int) -> None:
    random = np.random.default_rng(seed)

    def feed(*all_of_them: Statistics) -> None:
        n = int(random.integers(1, 200))
        groups: list[str | None] = [None, "x", "ü", "z"]
        values = {g: summed(random.normal(5, 2, int(random.integers(0, 50)))) for g in groups}
        for statistics in all_of_them:
            statistics.observe(
                seconds=2.5,
                streams={"S": Arrived(n * 3, n)},
                segments={"f": Passed(n, n / 3, n)},
                aggregates={"s": values, "empty": {}},
            )

    first = Statistics(half_life=3, groups=2)
    for _ in range(batches):
        feed(first)
    second = Statistics.restored(json.loads(json.dumps(first.state(), allow_nan=False)), half_life=3, groups=2)
    assert second.state() == first.state()
    feed(first, second)
    assert second.state() == first.state()
    assert (second.rate("S"), second.groups("s")) == (first.rate("S"), first.groups("s"))


def test_impossible_figures_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="tuples=-1 is not a number of tuples"):
        Arrived(-1, 0)
    with pytest.raises(ValueError, match="none was seen"):
        Arrived(10, 0)
    with pytest.raises(ValueError, match="given=nan"):
        Passed(1, math.nan, 1)
    with pytest.raises(ValueError, match="n=inf"):
        Summed(math.inf, 0, 0, 1)
    with pytest.raises(ValueError, match="0 seconds"):
        Statistics().observe(seconds=0)
    with pytest.raises(ValueError, match="half_life=0"):
        Statistics(half_life=0)
