from __future__ import annotations

import math

import numpy as np
import pytest

from auditor.measure.intervals import clopper_pearson, effective_size, korn_graubard, mean_interval, mean_share


def test_none_of_twelve_seeds_is_not_zero_for_sure() -> None:
    for variants in (1, 8, 50):
        found = korn_graubard([0] * 12, [variants] * 12)
        assert (found.value, found.low) == (0.0, 0.0)
        assert found.high == pytest.approx(1 - 0.025 ** (1 / 12))
        assert (found.n, found.n_variants) == (12, 12 * variants)


def test_the_formula_by_hand() -> None:
    # Two of four seeds flip both variants: p = 1/2, residuals ±1, Var = 4/3 · 4 / 64 = 1/12, so n_eff = 3
    # before the adjustment.
    from scipy.stats import beta, t

    found = korn_graubard([2, 2, 0, 0], [2, 2, 2, 2])
    size = 3 * (t.ppf(0.975, 7) / t.ppf(0.975, 3)) ** 2
    assert effective_size(0.5, np.array([1.0, 1, -1, -1]), 8, 0.95) == pytest.approx(size)
    assert found.low == pytest.approx(beta.ppf(0.025, size / 2, size / 2 + 1))
    assert found.high == pytest.approx(beta.ppf(0.975, size / 2 + 1, size / 2))


def test_the_note_says_where_the_interval_is_approximate() -> None:
    assert korn_graubard([0] * 12, [1] * 12).note == ""
    assert korn_graubard([1] * 20 + [0] * 180, [1] * 200).note == ""
    assert "approximate" in korn_graubard([1] * 20 + [0] * 70, [1] * 90).note
    assert "9 of 200 seeds" in korn_graubard([1] * 9 + [0] * 191, [1] * 200).note


@pytest.mark.parametrize(("x", "n"), [([], []), ([1], [0]), ([2], [1]), ([-1], [1]), ([1, 1], [1])])
def test_counts_that_cannot_be_are_refused(x: list[float], n: list[float]) -> None:
    with pytest.raises(ValueError, match="seed"):
        korn_graubard(x, n)


@pytest.mark.parametrize(("seeds", "bound"), [(59, 0.05), (149, 0.02), (299, 0.01), (598, 0.005)])
def test_zero_flips_bound_what_the_planning_table_says(seeds: int, bound: float) -> None:
    assert clopper_pearson(0, seeds, level=0.90).high == pytest.approx(bound, rel=0.02)


def test_clopper_pearson_equals_scipy() -> None:
    from scipy.stats import binomtest

    for x, n in ((0, 7), (3, 7), (7, 7), (40, 1000)):
        ours, theirs = clopper_pearson(x, n), binomtest(x, n).proportion_ci(method="exact")
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    with pytest.raises(ValueError, match="n >= 1"):
        clopper_pearson(0, 0)


def test_the_mean_of_seed_shares_stays_in_range() -> None:
    quiet = mean_share([0.0] * 30, units=90)
    assert (quiet.value, quiet.low) == (0.0, 0.0)
    assert quiet.high == pytest.approx(1 - 0.025 ** (1 / 30))
    some = mean_share([2 / 3] * 3 + [0.0] * 27, units=90)
    assert some.value == pytest.approx(2 / 30)
    assert 0 < some.low < some.value < some.high < 0.25
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        mean_share([1.2], units=1)


def test_a_mean_without_spread_has_no_interval() -> None:
    assert mean_interval([0.5]) == (0.5, -math.inf, math.inf)
    assert mean_interval([0.5, 0.5]) == (0.5, -math.inf, math.inf)
    mean, low, high = mean_interval([0.0, 1.0, 0.0, 1.0])
    assert (mean, low + high) == pytest.approx((0.5, 1.0))


def simulate(rng: np.random.Generator, seeds: int, variants: int, mean: float, rho: float) -> np.ndarray:
    """Flips per seed: a beta-binomial, so that variants of one seed are correlated with ``rho``."""
    size = (1 - rho) / rho
    return rng.binomial(variants, rng.beta(mean * size, (1 - mean) * size, seeds))


@pytest.mark.parametrize(
    ("seeds", "variants", "mean", "rho"), [(200, 10, 0.07, 0.3), (60, 10, 0.1, 0.2), (300, 4, 0.15, 0.5)]
)
def test_95_percent_intervals_hold_the_truth_in_at_least_182_of_200_runs(
    seeds: int, variants: int, mean: float, rho: float
) -> None:
    rng = np.random.default_rng(20261121)
    held = wilson_held = 0
    for _ in range(200):
        flips = simulate(rng, seeds, variants, mean, rho)
        found = korn_graubard(flips, np.full(seeds, variants))
        held += found.low <= mean <= found.high
        naive = clopper_pearson(int(flips.sum()), seeds * variants)
        wilson_held += naive.low <= mean <= naive.high
    assert held >= 182
    assert wilson_held < 182  # the data are correlated enough for the naive interval to fail
