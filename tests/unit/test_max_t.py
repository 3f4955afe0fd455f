from __future__ import annotations

import numpy as np
import pytest

from auditor.stats.max_t import max_t
from auditor.stats.multiplicity import holm
from auditor.stats.paired import sign_flip


def shared(
    rng: np.random.Generator, seeds: int, hypotheses: int, shift: float = 0.0, own: float = 0.3
) -> list[dict[int, float]]:
    """Differences that go together within a seed, the less so the larger ``own`` is."""
    common = rng.normal(size=seeds)
    return [
        {s: float(shift + common[s] + own * rng.normal()) for s in range(seeds)} for _ in range(hypotheses)
    ]


def test_one_hypothesis_is_the_sign_flip_test() -> None:
    (one,) = shared(np.random.default_rng(1), 30, 1, 0.3)
    p = max_t([one], rng=np.random.default_rng(0), resamples=4_000)[0]
    assert p == pytest.approx(
        sign_flip(list(one.values()), rng=np.random.default_rng(0), alternative="greater", resamples=4_000),
        abs=0.02,
    )


def test_correlated_hypotheses_cost_less_than_holm() -> None:
    rng = np.random.default_rng(2)
    differences = shared(rng, 30, 8, 0.35)
    adjusted = max_t(differences, rng=rng, resamples=4_000)
    plain = [
        sign_flip(list(d.values()), rng=rng, alternative="greater", resamples=4_000) for d in differences
    ]
    assert all(p < q for p, q in zip(adjusted, holm(plain), strict=True) if q is not None)
    assert all(p >= q - 0.02 for p, q in zip(adjusted, plain, strict=True))


def test_order_of_the_hypotheses_does_not_matter() -> None:
    differences = [*shared(np.random.default_rng(3), 12, 3, 0.2), {99: 0.0}, {}]
    forward = max_t(differences, rng=np.random.default_rng(0))
    backward = max_t(differences[::-1], rng=np.random.default_rng(0))
    assert forward == pytest.approx(backward[::-1])
    assert forward[3:] == [1.0, 1.0]
    assert max_t([], rng=np.random.default_rng(0)) == []


def test_both_sides() -> None:
    down = [dict.fromkeys(range(12), -1.0)]
    assert max_t(down, rng=np.random.default_rng(0)) == [1.0]
    assert max_t(down, rng=np.random.default_rng(0), alternative="two-sided")[0] < 0.01


def test_any_false_claim_in_at_most_18_of_200_worlds() -> None:
    false = 0
    for world in range(200):
        rng = np.random.default_rng(world)
        false += min(max_t(shared(rng, 20, 5, own=2.0), rng=rng, resamples=199)) <= 0.05
    assert false <= 18


def test_step_down_claims_the_small_effect_beside_the_large_one() -> None:
    rng = np.random.default_rng(5)
    large = dict.fromkeys(range(30), 1.0)
    small = {s: float(0.45 + rng.normal()) for s in range(30)}
    alone = max_t([small], rng=np.random.default_rng(0))[0]
    assert max_t([large, small], rng=np.random.default_rng(0))[1] == pytest.approx(alone)
