"""Intervals, tests of paired texts and p values, by hand, by other packages and in simulations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, binomtest
from scipy.stats import t as student

from auditor.measure import text_pairs
from auditor.measure.answer_quality import shift
from auditor.measure.findings import hidden_by_chance
from auditor.measure.intervals import (
    benjamini_hochberg,
    clopper_pearson,
    confidence_sequence,
    difference_of_rates,
    effective_size,
    fine_enough,
    holm,
    korn_graubard,
    mean_interval,
    mean_share,
    resamples_for,
    sign_flip,
)
from auditor.measure.text_pairs import About, Pair


def test_intervals_of_seeds_by_hand_with_a_note_where_they_are_approximate() -> None:
    for variants in (1, 8, 50):
        none = korn_graubard([0] * 12, [variants] * 12)
        assert (none.value, none.low) == (0.0, 0.0)
        assert none.high == pytest.approx(1 - 0.025 ** (1 / 12))
        assert (none.n, none.n_variants) == (12, 12 * variants)
    # Two of four seeds flip both variants: p = 1/2, residuals ±1, Var = 4/3 · 4 / 64 = 1/12, so n_eff = 3
    # before the adjustment.
    found = korn_graubard([2, 2, 0, 0], [2, 2, 2, 2])
    size = 3 * (student.ppf(0.975, 7) / student.ppf(0.975, 3)) ** 2
    assert effective_size(0.5, np.array([1.0, 1, -1, -1]), 8, 0.95) == pytest.approx(size)
    assert found.low == pytest.approx(beta.ppf(0.025, size / 2, size / 2 + 1))
    assert found.high == pytest.approx(beta.ppf(0.975, size / 2 + 1, size / 2))
    # Seeds that are more alike than chance would have them, 49 with one event of two and one with both: their
    # effective size is never more than the variants.
    alike = korn_graubard([1] * 49 + [2], [2] * 50)
    assert alike.low == pytest.approx(beta.ppf(0.025, 51, 50))
    assert alike.high == pytest.approx(beta.ppf(0.975, 52, 49))
    for flips, noted in (
        ([0] * 12, ""),
        ([1] * 20 + [0] * 180, ""),
        ([1] * 20 + [0] * 70, "approximate"),
        ([1] * 9 + [0] * 191, "9 of 200 seeds"),
    ):
        note = korn_graubard(flips, [1] * len(flips)).note
        assert noted in note
        assert bool(noted) == bool(note)


def test_clopper_pearson_equals_scipy() -> None:
    for x, n in ((0, 7), (3, 7), (7, 7), (40, 1000)):
        ours, theirs = clopper_pearson(x, n), binomtest(x, n).proportion_ci(method="exact")
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    with pytest.raises(ValueError, match="n >= 1"):
        clopper_pearson(0, 0)


def test_the_mean_of_seed_shares_stays_in_range_and_is_known_better_from_many_comparisons() -> None:
    quiet = mean_share([0.0] * 30, units=90)
    assert (quiet.value, quiet.low) == (0.0, 0.0)
    assert quiet.high == pytest.approx(1 - 0.025 ** (1 / 30))
    some = mean_share([2 / 3] * 3 + [0.0] * 27, units=90)
    assert some.value == pytest.approx(2 / 30)
    assert 0 < some.low < some.value < some.high < 0.25
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        mean_share([1.2], units=1)
    fewest, few, many = (mean_share([0.5] * 9 + [0.4], units=units) for units in (3, 10, 1000))
    assert many.value == few.value
    assert few.low < many.low < many.high < few.high
    assert (fewest.low, fewest.high) == (few.low, few.high)  # never fewer than one comparison for each seed


def test_a_mean_without_spread_has_no_interval() -> None:
    assert mean_interval([0.5]) == (0.5, -math.inf, math.inf)
    assert mean_interval([0.5, 0.5]) == (0.5, -math.inf, math.inf)
    mean, low, high = mean_interval([0.0, 1.0, 0.0, 1.0])
    assert (mean, low + high) == pytest.approx((0.5, 1.0))


@pytest.mark.parametrize(
    ("seeds", "variants", "mean", "rho"), [(200, 10, 0.07, 0.3), (60, 10, 0.1, 0.2), (300, 4, 0.15, 0.5)]
)
def test_95_percent_intervals_hold_the_truth(seeds: int, variants: int, mean: float, rho: float) -> None:
    size = (1 - rho) / rho  # a beta-binomial, so that variants of one seed are correlated with ``rho``
    rng = np.random.default_rng(20261121)
    held = naive_held = 0
    for _ in range(200):
        flips = rng.binomial(variants, rng.beta(mean * size, (1 - mean) * size, seeds))
        found = korn_graubard(flips, np.full(seeds, variants))
        held += found.low <= mean <= found.high
        naive = clopper_pearson(int(flips.sum()), seeds * variants)
        naive_held += naive.low <= mean <= naive.high
    assert held >= 182
    assert naive_held < 182  # the data are correlated enough for the naive interval to fail


def test_corrections_by_hand_leave_claims_that_were_not_tested_out_of_the_family() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5]) == [0.5]
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.8]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.8])
    for adjust in (holm, benjamini_hochberg):
        for untested in ([], [None, None], [None, 0.02, None]):
            assert adjust(untested) == untested
        assert adjust([0.01, None, 0.02]) == [pytest.approx(0.02), None, pytest.approx(0.02)]


def test_hidden_by_chance_follows_the_published_table_and_a_count() -> None:
    assert hidden_by_chance(2 * 0.05 * 0.95) == (pytest.approx(0.043, rel=0.03), pytest.approx(0.45, abs=0.01))
    three, _ = hidden_by_chance(2 * 0.02 * 0.98, replicates=3)
    assert three == pytest.approx(1.2e-3, rel=0.05)
    five, _ = hidden_by_chance(2 * 0.05 * 0.95, replicates=5)
    assert five == pytest.approx(1.2e-3, rel=0.06)
    assert hidden_by_chance(0.0) == (0.0, None)
    # By counting, with a rate large enough for the second term: joint differs from the original, both single ones do
    # not, and an original that is off makes joint changes look hidden too.
    d = 0.3
    cells = [cell for cell in itertools.product((0, 1), repeat=4) if cell[0] == cell[1] == cell[2] != cell[3]]
    counted = sum(np.prod([d if x else 1 - d for x in cell]) for cell in cells)
    assert hidden_by_chance(2 * d * (1 - d))[0] == pytest.approx(counted)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_sign_flip_of_few_seeds_is_exact_and_five_cannot_show_anything_two_sided() -> None:
    given = [3.0, -1.0, 2.0, 2.0, 5.0]
    sums = [sum(np.multiply(signs, given)) for signs in itertools.product((1, -1), repeat=5)]
    greater = sum(x >= sum(given) for x in sums) / len(sums)
    assert sign_flip([*given, 0.0, 0.0], rng=rng(), alternative="greater") == pytest.approx(greater)
    assert sign_flip([*given, 0.0, 0.0], rng=rng()) == pytest.approx(2 * greater)
    assert sign_flip([1.0] * 5, rng=rng()) > 0.05 > sign_flip([1.0] * 6, rng=rng())
    assert sign_flip([0.0] * 50, rng=rng()) == 1.0
    assert sign_flip([-1.0], rng=rng()) == sign_flip([-1.0], rng=rng(), alternative="greater") == 1.0


def test_a_model_that_changes_in_the_middle_is_noticed_and_a_steady_one_is_not() -> None:
    false = 0
    for n in range(200):
        draws = rng(n)
        steady = [[list(draws.random(3) < 0.1) for _ in range(3)] for _ in range(8)]
        found = shift(steady, rng=draws, resamples=499)
        false += found.shifted
    assert false <= 7
    changed = [[["a"] * 3, ["a"] * 3, ["b"] * 3] for _ in range(3)] + [[["a"] * 3] * 3] * 5
    found = shift(changed, rng=rng())
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


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 59, 0.0, 0.091), (0, 300, 0.0, 0.021), (6, 300, 0.003, 0.062), (300, 300, 0.979, 1.0)],
)
def test_widths_of_confidence_sequences(successes: int, n: int, low: float, high: float) -> None:
    assert confidence_sequence(successes, n) == pytest.approx((low, high), abs=6e-4)


@pytest.mark.parametrize("truth", [0.02, 0.3])
def test_the_truth_stays_inside_at_all_looks(truth: float) -> None:
    """200 streams of 600 draws, a look after every tenth: at 90 % at most some 20 may ever lose the truth."""
    rng = np.random.default_rng(7)
    lost = 0
    for _ in range(200):
        counts = np.cumsum(rng.random(600) < truth)
        for n in range(10, 601, 10):
            low, high = confidence_sequence(int(counts[n - 1]), n, 0.9)
            if not low <= truth <= high:
                lost += 1
                break
    assert lost <= 30  # 20 expected at most, three standard errors above


@pytest.mark.parametrize("n", [1, 2, 10**6, 10**9, 10**12])
def test_one_fail_among_any_number_of_draws(n: int) -> None:
    low, high = confidence_sequence(n - 1, n, 0.999)
    assert 0.0 <= low <= (n - 1) / n <= high < 1.0
    other = confidence_sequence(1, n, 0.999)
    assert (1 - high, 1 - low) == pytest.approx(other, abs=1e-12)


def test_the_real_way_to_deal_answers_is_as_likely_as_any_other() -> None:
    def dealt(seeds: int, ways: tuple[float, ...]) -> float:
        place = About("m", "plain", ("a",))
        given = {f"c{n}": [Pair(place, f"c{n}", "v", 0.0, splits=ways)] for n in range(seeds)}
        return text_pairs._dealt(given, given, rng=rng(5), resamples=3999)

    assert dealt(1, (1.0, 0.0)) == pytest.approx(0.5, abs=0.03)
    assert dealt(2, (1.0, 0.0, 0.0)) == pytest.approx(1 / 9, abs=0.02)
    assert dealt(3, (0.0, 0.0)) == 1.0
    assert dealt(20, (1.0, 0.0)) == 1 / 4000


def test_only_what_may_become_significant_is_drawn_again() -> None:
    assert resamples_for(0) == resamples_for(25) == 1999
    assert resamples_for(26) == 2079
    assert resamples_for(1, least=199) == 199
    assert resamples_for(1e9) == 199_999
    for tests in (1, 25, 26, 100, 600):  # the smallest two-sided p value, after correction
        assert 2 / (1 + resamples_for(tests)) * tests < 0.05
    for first, wanted, drawn in ((11, 2039, [1999, 2039]), (12, 2039, [1999]), (1, 1999, [1999])):
        asked: list[int] = []
        fine_enough(lambda n, first=first, asked=asked: asked.append(n) or first / 2000, wanted)
        assert asked == drawn


def test_drawing_again_keeps_the_level() -> None:
    """Under the null the two-stage p value is below t with a chance of at most t, at any t."""
    rng = np.random.default_rng(3)
    wanted, runs = 39_999, 20_000
    true = rng.uniform(size=runs)  # the chance that one resample reaches what was seen
    p = np.array([fine_enough(lambda n, q=q: (1 + rng.binomial(n, q)) / (1 + n), wanted) for q in true])
    for t in (0.0001, 0.001, 0.005, 0.0055, 0.006, 0.01):
        assert (p <= t).mean() <= t + 3 * np.sqrt(t * (1 - t) / runs)
    assert (p <= 0.0004).mean() > 0  # and the coarse one could not
