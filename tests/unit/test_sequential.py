"""The always-valid interval: reference widths, and coverage at all times together."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.measure.intervals import confidence_sequence


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 59, 0.0, 0.091), (0, 300, 0.0, 0.021), (6, 300, 0.003, 0.062), (300, 300, 0.979, 1.0)],
)
def test_widths(successes: int, n: int, low: float, high: float) -> None:
    assert confidence_sequence(successes, n) == pytest.approx((low, high), abs=6e-4)


def test_no_draw_says_nothing() -> None:
    assert confidence_sequence(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n", "level"), [(-1, 3, 0.9), (4, 3, 0.9), (1, 3, 1.0), (1, 3, 0.0)])
def test_what_makes_no_sense_is_refused(successes: int, n: int, level: float) -> None:
    with pytest.raises(ValueError, match="successes"):
        confidence_sequence(successes, n, level)


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


def test_symmetry() -> None:
    low, high = confidence_sequence(7, 40, 0.95)
    other_low, other_high = confidence_sequence(33, 40, 0.95)
    assert (1 - other_high, 1 - other_low) == pytest.approx((low, high))


@pytest.mark.parametrize("n", [1, 2, 10**6, 10**9, 10**12])
def test_one_fail_among_any_number_of_draws(n: int) -> None:
    low, high = confidence_sequence(n - 1, n, 0.999)
    assert 0.0 <= low <= (n - 1) / n <= high < 1.0
    other = confidence_sequence(1, n, 0.999)
    assert (1 - high, 1 - low) == pytest.approx(other, abs=1e-12)
