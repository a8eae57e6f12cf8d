"""The cost model finds what work costs where batches tell, keeps to the prior where they do not, and is not misled."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from headgate.shed.learn.costs import Coefficients, CostModel, Observation, fitted

TRUE = Coefficients(0.5, {"tuples read": 4e-7, "tuples joined": 2e-6, "groups closed": 0.05})
USUAL = {"tuples read": 2e6, "tuples joined": 5e5, "groups closed": 15.0}
#: Right in kind, wrong in size: what a calibration on another machine may have given.
PRIOR = Coefficients(0.1, {"tuples read": 2e-7, "tuples joined": 4e-6, "groups closed": 0.02})


def apart(random: np.random.Generator, batches: int) -> Iterator[dict[str, float]]:
    """Amounts that vary independently of one another."""
    for _ in range(batches):
        yield {name: amount * random.uniform(0.1, 2.0) for name, amount in USUAL.items()}


def together(random: np.random.Generator, batches: int) -> Iterator[dict[str, float]]:
    """Amounts that all follow the arrival rate."""
    for _ in range(batches):
        rate = random.uniform(0.6, 1.4)
        yield {name: amount * rate for name, amount in USUAL.items()}


def noisy(random: np.random.Generator, seconds: float, noise: float, outliers: float = 0.02) -> float:
    return float(seconds * random.lognormal(0.0, noise) * (2.0 if random.random() < outliers else 1.0))


def off(found: Coefficients, true: Coefficients = TRUE) -> dict[str, float]:
    """By what part of the true coefficient each one is off."""
    return {"fixed": found.fixed / true.fixed - 1, **{n: found.each[n] / true.each[n] - 1 for n in true.each}}


class TestFit:
    @pytest.mark.parametrize("seed", range(100, 105))
    def test_coefficients_are_found_where_amounts_vary_apart(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        model = CostModel(PRIOR)
        for amounts in apart(random, 200):
            model.observe(amounts, noisy(random, TRUE.seconds(amounts), 0.03))
        wrong = off(model.coefficients)
        assert abs(wrong.pop("fixed")) < 0.2  # A sixth of a batch: what is left when all else is known.
        assert max(map(abs, wrong.values())) < 0.1

    @pytest.mark.parametrize("seed", range(100, 105))
    def test_with_ten_percent_of_noise_a_longer_memory_finds_them(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        batches = [Observation(a, noisy(random, TRUE.seconds(a), 0.1)) for a in apart(random, 3000)]
        assert max(map(abs, off(fitted(batches, PRIOR, half_life=1e4)).values())) < 0.1

    @pytest.mark.parametrize("prior", [PRIOR, None])
    def test_predictions_are_right_where_amounts_go_together(self, prior: Coefficients | None) -> None:
        wrong: list[float] = []
        for seed in range(100, 105):
            random = np.random.default_rng(seed)
            model = CostModel(prior)
            for batch, amounts in enumerate(together(random, 150)):
                true = TRUE.seconds(amounts)
                wrong += [model.predict(amounts) / true - 1] if batch >= 20 else []
                model.observe(amounts, noisy(random, true, 0.1))
        assert np.mean(np.abs(wrong) < 0.1) > 0.97
        assert np.sqrt(np.mean(np.square(wrong))) < 0.05

    def test_costs_that_nothing_tells_apart_do_not_wander(self) -> None:
        random = np.random.default_rng(7)
        model, seen = CostModel(TRUE), []
        for amounts in together(random, 400):
            model.observe(amounts, noisy(random, TRUE.seconds(amounts), 0.1))
            seen.append(list(model.coefficients.each.values()))
        spread = np.std(seen[50:], axis=0) / np.mean(seen[50:], axis=0)
        assert spread.max() < 0.15

    def test_it_is_the_least_squares_solution_where_nothing_is_an_outlier(self) -> None:
        random = np.random.default_rng(8)
        batches = [Observation(a, noisy(random, TRUE.seconds(a), 0.002, 0.0)) for a in apart(random, 200)]
        rows = np.array([[1.0, *batch.amounts.values()] for batch in batches])
        seconds = np.array([batch.seconds for batch in batches])
        # Relative errors, on columns of one size.
        size = rows.mean(axis=0)
        answer = lsq_linear(rows / size / seconds[:, None], np.ones(len(seconds)), bounds=(0, np.inf)).x / size
        found = fitted(batches, PRIOR, half_life=1e9)
        assert [found.fixed, *found.each.values()] == pytest.approx(answer, rel=0.02)

    @given(st.sampled_from(sorted(USUAL)), st.integers(-7, 7), st.integers(-4, 4))
    def test_units_make_no_difference(self, name: str, tens: int, time: int) -> None:
        random = np.random.default_rng(9)
        batches = [Observation(a, noisy(random, TRUE.seconds(a), 0.1)) for a in apart(random, 40)]
        there, then = 10.0**tens, 10.0**time
        scaled = [Observation({**b.amounts, name: b.amounts[name] * there}, b.seconds * then) for b in batches]
        found = fitted(batches, PRIOR, half_life=20)
        prior = Coefficients(PRIOR.fixed, {**PRIOR.each, name: PRIOR.each[name] / there})
        again = fitted(scaled, prior, half_life=20)
        assert again.fixed == pytest.approx(found.fixed * then, rel=1e-6, abs=1e-12)
        assert again.each[name] == pytest.approx(found.each[name] * then / there, rel=1e-6, abs=1e-30)

    def test_no_cost_is_negative(self) -> None:
        batches = [Observation({"read": x, "free": 10 - x}, 1.0 + x) for x in np.linspace(1, 9, 30)]
        found = fitted(batches, Coefficients(1.0, {"read": 1.0, "free": 1.0}), half_life=100)
        assert min(found.fixed, *found.each.values()) >= 0
        assert found.seconds({"read": 5.0, "free": 5.0}) == pytest.approx(6.0, rel=0.02)

    def test_no_cost_is_nothing_where_cold_batches_say_so(self) -> None:
        random = np.random.default_rng(11)
        model = CostModel(TRUE)
        for amounts in together(random, 30):
            model.observe(amounts, noisy(random, TRUE.seconds(amounts), 0.05))
        # The first batches that are shed read more, join less, and take longer than ever.
        for _ in range(2):
            model.observe({**USUAL, "tuples read": 8e6, "tuples joined": 1e4}, seconds=3 * TRUE.seconds(USUAL))
        assert model.coefficients.each["tuples joined"] > TRUE.each["tuples joined"] / 8

    def test_a_few_slow_batches_hardly_count(self) -> None:
        random = np.random.default_rng(10)
        clean = [Observation(a, noisy(random, TRUE.seconds(a), 0.05, 0.0)) for a in apart(random, 100)]
        slow = [Observation(b.amounts, b.seconds * (3.0 if i % 20 == 7 else 1.0)) for i, b in enumerate(clean)]
        ratio = fitted(slow, PRIOR, 50).seconds(USUAL) / fitted(clean, PRIOR, 50).seconds(USUAL)
        assert ratio == pytest.approx(1.0, abs=0.02)


class TestLearning:
    @pytest.mark.parametrize("prior", [PRIOR, None])
    def test_cold_batches_are_soon_forgotten(self, prior: Coefficients | None) -> None:
        for seed in range(5):
            random = np.random.default_rng(seed)
            model, wrong = CostModel(prior), []
            for batch, amounts in enumerate(together(random, 40)):
                true = TRUE.seconds(amounts)
                wrong.append(model.predict(amounts) / true - 1)
                cold = (4.0, 2.5, 1.8, 1.4, 1.2)[batch] if batch < 5 else 1.0
                model.observe(amounts, noisy(random, true, 0.05, 0.0) * cold)
            assert np.max(np.abs(wrong[10:])) < 0.15

    def test_nothing_is_trusted_before_the_calibration(self) -> None:
        model = CostModel()
        for batch in range(8):
            assert not model.calibrated
            assert f"not to be trusted yet: {batch} of 8 batches" in model.explain()
            model.observe(USUAL, 3.0)
        assert model.calibrated
        assert model.explain().endswith("calibrated, with no prediction to judge it by yet")
        model.observe(USUAL, 3.3)
        assert model.explain().endswith("predictions are off by 10%")

    @pytest.mark.parametrize("factor", [0.5, 1.6, 2.5])
    def test_a_change_of_pace_is_followed_within_three_batches(self, factor: float) -> None:
        for seed in range(5):
            random = np.random.default_rng(seed)
            model = CostModel(PRIOR)
            for amounts in apart(random, 100):
                model.observe(amounts, noisy(random, TRUE.seconds(amounts), 0.05))
            before = model.coefficients
            for _ in range(5):
                model.observe(USUAL, TRUE.seconds(USUAL) * random.lognormal(0.0, 0.05))
            for _ in range(3):
                model.observe(USUAL, TRUE.seconds(USUAL) * random.lognormal(0.0, 0.05) * factor)
            assert model.predict(USUAL) == pytest.approx(factor * TRUE.seconds(USUAL), rel=0.12)
            # What the amounts cost in relation to one another is kept.
            shape = model.coefficients.each["tuples joined"] / model.coefficients.each["tuples read"]
            assert shape == pytest.approx(before.each["tuples joined"] / before.each["tuples read"], rel=0.2)

    def test_more_work_is_not_taken_for_a_change_of_pace(self) -> None:
        model = CostModel(Coefficients(3.0, {"tuples read": 1e-8}))  # Far too much of it is fixed.
        for _ in range(20):
            model.observe({"tuples read": 1e6}, 1.0)
        for _ in range(10):
            model.observe({"tuples read": 4e6}, 3.4)
        assert model.predict({"tuples read": 4e6}) == pytest.approx(3.4, rel=0.05)
        assert model.predict({"tuples read": 1e6}) == pytest.approx(1.0, rel=0.15)

    def test_drops_that_answer_a_slower_machine_keep_their_worth(self) -> None:
        # Shedding holds batches at 4 seconds while the machine gets slower: more is dropped, and nothing gained.
        random = np.random.default_rng(11)
        model = CostModel(Coefficients(0.4, {"tuples read": 1e-7, "tuples kept": 1e-6}))
        pace, kept = 1.0, 3e6
        for batch in range(120):
            pace = 1.0 + max(batch - 60, 0) / 60
            amounts = {"tuples read": 6e6, "tuples kept": kept}
            model.observe(amounts, noisy(random, pace * (0.4 + 0.6 + 1e-6 * kept), 0.1))
            worth = model.coefficients.each["tuples kept"]
            kept = min(max((4.0 - model.predict({"tuples read": 6e6})) / max(worth, 1e-9), 0.0), 6e6)
        assert 1e-6 < model.coefficients.each["tuples kept"] < 3e-6  # It is 2e-6 by now.

    def test_the_error_is_that_of_predictions_made_before(self) -> None:
        random = np.random.default_rng(12)
        model, wrong = CostModel(), []
        for amounts in together(random, 300):
            seconds = noisy(random, TRUE.seconds(amounts), 0.1, 0.0)
            if model.calibrated:
                wrong.append(abs(seconds / model.predict(amounts) - 1))
            model.observe(amounts, seconds)
        assert model.error is not None
        assert model.error == pytest.approx(np.mean(wrong), rel=0.4)
        assert 0.05 < model.error < 0.13

    def test_work_that_is_new_is_learned(self) -> None:
        random = np.random.default_rng(13)
        model = CostModel(TRUE)
        for amounts in apart(random, 60):
            model.observe(amounts, noisy(random, TRUE.seconds(amounts), 0.03))
        for amounts in apart(random, 60):
            amounts["pairs out"] = random.uniform(0, 1e6)
            model.observe(amounts, noisy(random, TRUE.seconds(amounts) + 1e-6 * amounts["pairs out"], 0.03))
        assert model.coefficients.each["pairs out"] == pytest.approx(1e-6, rel=0.15)

    def test_work_that_is_rare_is_not_judged_by_one_cold_batch(self) -> None:
        model = CostModel()
        for batch in range(12):
            amounts = {"tuples read": 1e6, "groups closed": 1000.0 if batch == 0 else 0.0}
            model.observe(amounts, 2.0 * (4.0 if batch == 0 else 1.0))
        assert model.predict({"tuples read": 1e6, "groups closed": 1000.0}) < 4.0

    def test_an_empty_batch_is_a_batch(self) -> None:
        model = CostModel()
        for _ in range(10):
            model.observe({}, 0.3)
            model.observe({"tuples read": 0.0}, 0.3)
        assert model.predict({}) == pytest.approx(0.3)


@given(st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_what_is_kept_in_a_checkpoint_predicts_the_same(seed: int, batches: int) -> None:
    random = np.random.default_rng(seed)
    model = CostModel(PRIOR, half_life=4)
    for amounts in apart(random, batches):
        model.observe(amounts, noisy(random, TRUE.seconds(amounts), 0.1))
    again = CostModel.restored(json.loads(json.dumps(model.state(), allow_nan=False)), half_life=4)
    assert again.state() == model.state()
    assert again.predict(USUAL) == model.predict(USUAL)
    assert again.explain() == model.explain()


def test_after_a_restart_cold_batches_hardly_count() -> None:
    random = np.random.default_rng(14)
    model = CostModel(TRUE)
    for amounts in apart(random, 60):
        model.observe(amounts, noisy(random, TRUE.seconds(amounts), 0.03, 0.0))
    model = CostModel.restored(model.state())
    for amounts, cold in zip(apart(random, 3), (3.0, 1.6, 1.2), strict=True):
        model.observe(amounts, TRUE.seconds(amounts) * cold)
    assert model.calibrated
    assert model.predict(USUAL) == pytest.approx(TRUE.seconds(USUAL), rel=0.1)


def test_impossible_numbers_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="the amount of tuples read is -1"):
        CostModel().observe({"tuples read": -1}, 1.0)
    with pytest.raises(ValueError, match="took nan seconds"):
        CostModel().observe({}, math.nan)
    with pytest.raises(ValueError, match="the cost of tuples read is inf"):
        Coefficients(0.0, {"tuples read": math.inf})
    with pytest.raises(ValueError, match="half_life=0"):
        CostModel(half_life=0)
