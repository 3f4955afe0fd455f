"""Boundaries of the statistics: caps, empty arms, the larger of two p values, who stands against whom."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from auditor.measure import text_pairs
from auditor.measure.hidden import hidden_by_chance
from auditor.measure.intervals import korn_graubard, mean_share
from auditor.measure.p_values import sign_flip
from auditor.measure.text_metrics import About, Pair


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
        np.prod([d if x else 1 - d for x in (o, a, b, j)]) for o, a, b, j in cells if j != o and a == o and b == o
    )
    assert rate == pytest.approx(counted)


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


def free_text(seeds: int, *, p_noise: float | None) -> text_pairs.Difference:
    d = {f"c{n}": 0.5 + n / 100 for n in range(seeds)}
    place = About("m", "plain", ("a",))
    measured = {case: [Pair(place, case, "v", 0.5)] for case in d}
    row = text_pairs._row(text_pairs.Difference(about=place, metric="wording", unit=""), d, measured)
    return text_pairs._beside_placebo(row, d, dict.fromkeys(d, 0.0), p_noise, rng=rng(), resamples=1999)


def test_free_text_needs_both_comparisons() -> None:
    assert free_text(10, p_noise=None).p_value == pytest.approx(1 / 2**10)
    assert free_text(10, p_noise=0.4).p_value == 0.4
    assert free_text(10, p_noise=1e-9).p_value == pytest.approx(1 / 2**10)


def test_the_real_way_to_deal_answers_is_as_likely_as_any_other() -> None:
    def dealt(seeds: int, ways: tuple[float, ...]) -> float:
        place = About("m", "plain", ("a",))
        given = {f"c{n}": [Pair(place, f"c{n}", "v", 0.0, splits=ways)] for n in range(seeds)}
        return text_pairs._dealt(given, given, rng=rng(), resamples=3999)

    assert dealt(1, (1.0, 0.0)) == pytest.approx(0.5, abs=0.03)
    assert dealt(2, (1.0, 0.0, 0.0)) == pytest.approx(1 / 9, abs=0.02)
    assert dealt(3, (0.0, 0.0)) == 1.0
    assert dealt(20, (1.0, 0.0)) == 1 / 4000
