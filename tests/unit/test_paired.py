"""Seed-paired tests: exact where they can be, valid where they are drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from auditor.measure.two_way import two_way
from scipy.stats import beta

from auditor.measure.drift import shift
from auditor.measure.intervals import mean_interval
from auditor.measure.paired import difference_limits, exchange, over_placebo, sign_flip, signed_limits


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_sign_flip_of_few_seeds_is_exact() -> None:
    values = [3.0, -1.0, 2.0, 2.0, 5.0, 0.0, 0.0]
    given = [v for v in values if v]
    total = sum(given)
    sums = [
        sum(s * v for s, v in zip(signs, given, strict=True))
        for signs in itertools.product((1, -1), repeat=5)
    ]
    greater = sum(x >= total for x in sums) / len(sums)
    assert sign_flip(values, rng=rng(), alternative="greater") == pytest.approx(greater)
    assert sign_flip(values, rng=rng()) == pytest.approx(2 * greater)


def test_five_discordant_seeds_cannot_show_anything_two_sided() -> None:
    assert sign_flip([1.0] * 5, rng=rng()) > 0.05 > sign_flip([1.0] * 6, rng=rng())
    assert sign_flip([0.0] * 50, rng=rng()) == 1.0
    assert sign_flip([-1.0], rng=rng()) == sign_flip([-1.0], rng=rng(), alternative="greater") == 1.0


def test_arms_of_unequal_size_do_not_make_false_claims() -> None:
    """Six variants against one placebo, 4 % of all change: a sign flip alone errs, the pair of tests does not."""
    alone = both = 0
    for n in range(200):
        draws = rng(n)
        attribute = [(int(x), 6) for x in draws.binomial(6, 0.04, 60)]
        placebo = [(int(x), 1) for x in draws.binomial(1, 0.04, 60)]
        found = over_placebo(attribute, placebo, rng=draws, resamples=499)
        assert found is not None
        d = [a / 6 - p for (a, _), (p, _) in zip(attribute, placebo, strict=True)]
        alone += sign_flip(d, rng=rng(n), alternative="greater", resamples=499) < 0.05
        both += found.p_value < 0.05
    assert both <= 18
    assert alone > both


def test_a_change_that_every_wording_brings_about_has_no_excess() -> None:
    found = over_placebo([(3, 3), (0, 3), (3, 3)] * 20, [(2, 2), (0, 2), (2, 2)] * 20, rng=rng())
    assert found is not None
    assert (found.value, found.discordant, found.p_value) == (0.0, 0, 1.0)
    assert found.low < 0 < found.high


def test_an_excess_is_found_with_limits_that_hold_it() -> None:
    found = over_placebo([(1, 2)] * 20 + [(0, 2)] * 40, [(0, 2)] * 60, rng=rng())
    assert found is not None
    assert found.value == pytest.approx(1 / 6)
    assert 0 < found.low < found.value < found.upper <= found.high + 0.05
    assert found.p_value < 0.001
    assert found.discordant == 20
    assert over_placebo([(0, 0)], [(1, 2)], rng=rng()) is None


def test_limits_of_a_difference_do_not_shrink_to_a_point() -> None:
    low, high = difference_limits([(0, 4)] * 60, [(0, 4)] * 60, 0.90)
    assert high == pytest.approx(1 - 0.05 ** (1 / 60))
    assert low == pytest.approx(-high)


def test_dealing_anew_knows_the_direction() -> None:
    assert exchange([(2, 2)] * 10, [(0, 2)] * 10, rng=rng()) < 0.01
    assert exchange([(0, 2)] * 10, [(2, 2)] * 10, rng=rng()) > 0.9
    assert exchange([(0, 2)] * 10, [(0, 2)] * 10, rng=rng()) == 1.0


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


def test_words_as_a_sample_widen_the_interval() -> None:
    seeds = [f"s{n}" for n in range(40) for _ in range(10)]
    words = [f"w{n}" for _ in range(40) for n in range(10)]
    one_word = [word == "w0" for word in words]
    found = two_way(one_word, seeds, words)
    by_seed = two_way([n % 10 == i % 10 for i, n in enumerate(range(400))], seeds, words)
    assert found is not None
    assert by_seed is not None
    assert found.value == pytest.approx(0.1)
    # All changes come from one of ten words: about other words it says little, however many seeds there are.
    assert found.high - found.low > 0.2
    assert two_way(one_word, seeds, ["w"] * 400) is None
    assert "10 words" in found.note


@pytest.mark.parametrize("n", [5, 40, 300])
def test_limits_of_rare_and_of_equal_differences(n: int) -> None:
    none, one = signed_limits([0.0] * n, 0.95), signed_limits([1.0] + [0.0] * (n - 1), 0.95)
    low, high = signed_limits([1.0] * n, 0.95)
    assert none[1] == -none[0] == pytest.approx(beta.ppf(0.975, 1, n))
    assert one[1] - one[0] > none[1] - none[0], "one change bounds no more than none"
    assert low < 1.0 == high, "some seeds say little about all others"
    assert signed_limits([-1.0] * n, 0.95) == (-1.0, -low)
    many = [1.0, -1.0, 0.5, -0.5] * n
    assert signed_limits(many, 0.95)[1] >= mean_interval(many, 0.95)[2]
