"""Boundaries of the statistics: caps, empty arms, the larger of two p values, who stands against whom."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from auditor.measure import arms, pairs, scores
from auditor.measure.intervals import korn_graubard, mean_share
from auditor.measure.noise import hidden_by_chance
from auditor.measure.paired import over_placebo, sign_flip


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_the_effective_size_is_never_more_than_the_variants() -> None:
    # Seeds that are more alike than chance would have them: 49 with one event of two, one with both.
    found = korn_graubard([1] * 49 + [2], [2] * 50)
    assert found.low == pytest.approx(beta.ppf(0.025, 51, 50))
    assert found.high == pytest.approx(beta.ppf(0.975, 52, 49))


def test_a_mean_share_of_many_comparisons_is_known_better_than_one_of_few() -> None:
    values = [0.5] * 9 + [0.4]
    few, many = mean_share(values, units=10), mean_share(values, units=1000)
    assert many.value == few.value
    assert few.low < many.low < many.high < few.high
    # Never fewer than one comparison for each seed.
    assert (mean_share(values, units=3).low, mean_share(values, units=3).high) == (few.low, few.high)


def test_an_original_that_is_off_makes_joint_changes_look_hidden_too() -> None:
    d = 0.3  # large enough for the second term to matter
    rate, _ = hidden_by_chance(2 * d * (1 - d))
    # By counting: joint differs from the original, both single ones do not.
    cells = [(o, a, b, j) for o in (0, 1) for a in (0, 1) for b in (0, 1) for j in (0, 1)]
    counted = sum(
        np.prod([d if x else 1 - d for x in (o, a, b, j)])
        for o, a, b, j in cells
        if j != o and a == o and b == o
    )
    assert rate == pytest.approx(counted)


def test_many_variants_of_few_seeds_are_few_seeds() -> None:
    found = over_placebo([(20, 20)] * 3, [(0, 20)] * 3, rng=rng())
    assert found is not None
    assert found.p_value == pytest.approx(1 / 8)  # dealing anew alone would say 1 in 2,000


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_rare_changes_bound_no_less_than_the_exact_limit_of_their_rate(changed: int) -> None:
    seeds = 300
    found = over_placebo([(1, 1)] * changed + [(0, 1)] * (seeds - changed), [(0, 1)] * seeds, rng=rng())
    assert found is not None
    assert found.upper >= beta.ppf(0.95, changed + 1, seeds - changed) * 0.999


def test_seeds_without_one_of_the_arms_are_left_out() -> None:
    found = over_placebo([(1, 1), (1, 1), (0, 0)], [(0, 1), (0, 0), (1, 1)], rng=rng())
    assert found is not None
    assert found.n == 1
    assert over_placebo([(1, 1)], [(0, 0)], rng=rng()) is None


def test_which_placebos_stand_against_a_claim() -> None:
    tested = frozenset("ab")
    arm: arms.Arm = {("a",): (1, 2), ("b",): (0, 2), ("a", "b"): (3, 4), ("c",): (5, 6), ("a", "c"): (7, 8)}
    assert arms.controls_of(arm, ("a", "b"), tested) == (3, 4)
    assert arms.controls_of(arm, ("a",), tested) == (1, 2)
    del arm["a", "b"]
    assert arms.controls_of(arm, ("a", "b"), tested) == (1, 4)  # its parts, and nothing with c
    del arm["a",], arm["b",]
    assert arms.controls_of(arm, ("a", "b"), tested) == (5, 6)  # neutral ones only
    assert arms.controls_of({("a", "c"): (7, 8)}, ("b",), tested) is None
    assert arms.controls_of({}, ("a",), tested) is None


def test_the_sign_flip_test_needs_no_memory_for_all_patterns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.stats

    given: list[int] = []
    real = scipy.stats.permutation_test

    def watched(*args: object, batch: int, **more: object) -> object:
        given.append(batch)
        return real(*args, batch=batch, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(scipy.stats, "permutation_test", watched)
    values = list(np.random.default_rng(1).normal(0.02, 1, size=5_000))
    assert 0 < sign_flip(values, rng=rng(), resamples=999) <= 1
    assert given[0] * len(values) <= 2_000_000


@pytest.mark.parametrize(
    ("narrow", "control", "verdict"),
    [
        (0.3, True, "bounded"),
        (0.4, True, "not_determined"),
        (0.5, True, "not_determined"),
        (None, True, "not_determined"),
        (0.3, None, "not_determined"),
        (0.3, False, "not_determined"),
    ],
)
def test_an_amount_is_bounded_only_inside_the_tolerance(
    narrow: float | None, control: bool | None, verdict: str
) -> None:
    one = scores.Difference(
        place=scores.Place("m", "plain", ("a",), (("a", "x", "y"),)),
        metric="score",
        unit="",
        value=0.0,
        low=-0.2,
        high=0.2,
        level=0.95,
        narrow=narrow,
        n=50,
        n_variants=50,
        discordant=9,
        p_value=0.7,
    )
    (found,) = scores.decide([one], tolerance=0.4, positive_control={"m": control})
    assert found.verdict == verdict


def free_text(seeds: int, *, p_noise: float | None) -> scores.Difference:
    d = {f"c{n}": 0.5 + n / 100 for n in range(seeds)}
    measured = {case: [("v", pairs.Measured(between={"wording": 0.5}))] for case in d}
    row = pairs._row(scores.Place("m", "plain", ("a",)), "wording", d, measured, 0.95)
    return pairs._beside_placebo(row, d, dict.fromkeys(d, 0.0), p_noise, rng=rng(), resamples=1999)


def test_free_text_needs_both_comparisons() -> None:
    assert free_text(10, p_noise=None).p_value == pytest.approx(1 / 2**10)
    assert free_text(10, p_noise=0.4).p_value == 0.4
    assert free_text(10, p_noise=1e-9).p_value == pytest.approx(1 / 2**10)


def test_the_real_way_to_deal_answers_is_as_likely_as_any_other() -> None:
    def dealt(seeds: int, ways: tuple[float, ...]) -> float:
        given = {f"c{n}": [("v", pairs.Measured(splits={"wording": ways}))] for n in range(seeds)}
        return pairs._dealt(given, given, "wording", rng=rng(), resamples=3999)

    assert dealt(1, (1.0, 0.0)) == pytest.approx(0.5, abs=0.03)
    assert dealt(2, (1.0, 0.0, 0.0)) == pytest.approx(1 / 9, abs=0.02)
    assert dealt(3, (0.0, 0.0)) == 1.0
    assert dealt(20, (1.0, 0.0)) == 1 / 4000
