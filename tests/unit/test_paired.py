"""SourceText-paired tests: exact where they can be, valid where they are drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import beta

from auditor.measure.drift import shift
from auditor.measure.intervals import difference_of_rates
from auditor.measure.p_values import sign_flip


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_sign_flip_of_few_seeds_is_exact() -> None:
    values = [3.0, -1.0, 2.0, 2.0, 5.0, 0.0, 0.0]
    given = [v for v in values if v]
    total = sum(given)
    sums = [sum(s * v for s, v in zip(signs, given, strict=True)) for signs in itertools.product((1, -1), repeat=5)]
    greater = sum(x >= total for x in sums) / len(sums)
    assert sign_flip(values, rng=rng(), alternative="greater") == pytest.approx(greater)
    assert sign_flip(values, rng=rng()) == pytest.approx(2 * greater)


def test_five_discordant_seeds_cannot_show_anything_two_sided() -> None:
    assert sign_flip([1.0] * 5, rng=rng()) > 0.05 > sign_flip([1.0] * 6, rng=rng())
    assert sign_flip([0.0] * 50, rng=rng()) == 1.0
    assert sign_flip([-1.0], rng=rng()) == sign_flip([-1.0], rng=rng(), alternative="greater") == 1.0


def test_a_model_that_changes_in_the_middle_is_noticed_and_a_steady_one_is_not() -> None:
    false = 0
    for n in range(200):
        draws = rng(n)
        steady = [[list(draws.random(3) < 0.1) for _ in range(3)] for _ in range(8)]
        found = shift(steady, rng=draws, resamples=499)
        assert found is not None
        false += found.shifted
    assert false <= 7
    changed = [[["a"] * 3, ["a"] * 3, ["b"] * 3] for _ in range(3)] + [[["a"] * 3] * 3] * 5
    found = shift(changed, rng=rng())
    assert found is not None
    assert (found.shifted, found.differing, found.prompts, found.answers) == (True, 3, 8, 72)
    assert shift([[["a"]], [[], ["a"]]], rng=rng()) is None


@pytest.mark.parametrize("n", [5, 40, 300])
def test_limits_of_a_difference_of_rates(n: int) -> None:
    one = [1] * n
    value, low, high = difference_of_rates([0] * n, [0] * n, one)
    assert value == 0
    assert high == -low == pytest.approx(beta.ppf(0.975, 1, n))
    rare = difference_of_rates([1] + [0] * (n - 1), [0] * n, one)
    assert rare[2] - rare[1] > high - low, "one change bounds no more than none"
    # The rate is of variants: a text with three counts for three, in the value as in the rates themselves.
    value, low, high = difference_of_rates([3, *([0] * n)], [0, *([1] * n)], [3, *([1] * n)])
    assert value == pytest.approx(3 / (n + 3) - n / (n + 3))
    assert -1 <= low < value < high <= 1


def test_a_difference_of_rates_covers_the_truth() -> None:
    """Texts that differ in rate and in number of variants: 95 % intervals of 300 samples of 80 texts."""
    draws, hits = rng(4), 0
    for _ in range(300):
        n = draws.integers(1, 9, 80)
        p = draws.beta(0.5, 4, 80)
        found = difference_of_rates(draws.binomial(n, p), draws.binomial(n, np.minimum(1, p * 1.5)), n)
        hits += found[1] <= -0.5 * (0.5 / 4.5) + 0.0035 <= found[2]  # the cut at 1 takes 0.0035 off
    assert hits >= 276
