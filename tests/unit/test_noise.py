from __future__ import annotations

import gc
import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from auditor.stats.claims import claim_verdict
from auditor.stats.multiplicity import holm
from auditor.stats.noise import (
    between_within,
    disagreement,
    hidden_by_chance,
    noise_floor,
    seed_excess,
)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_disagreement_counts_pairs() -> None:
    assert disagreement(["a", "a", "b"]) == pytest.approx(2 / 3)
    assert disagreement(["a", "a", "a"]) == 0.0
    assert disagreement([("x", "y"), ("x",)]) == 1.0
    assert disagreement(["a"]) is None
    assert disagreement([]) is None


def test_the_noise_floor_weighs_seeds_alike_and_counts_what_was_not_repeated() -> None:
    found = noise_floor([[["a", "a", "b"], ["a", "a", "a"]], [["b", "b"]], [["a"]]])
    assert found is not None
    assert found.value == pytest.approx((1 / 3 + 0) / 2)
    assert (found.n, found.n_skipped) == (2, 1)
    assert noise_floor([[["a"]], []]) is None
    assert noise_floor([]) is None


def test_a_change_that_always_happens_has_an_excess_of_one() -> None:
    assert seed_excess("aaa", ["bbb", "bbb"]) == 1.0
    assert seed_excess("aaa", ["aaa"]) == 0.0
    assert seed_excess("aaa", ["bbb", "aaa"]) == 0.5
    assert seed_excess("aab", ["aab"]) == pytest.approx(4 / 9 - 2 / 3)


def test_without_repeats_or_answers_there_is_no_excess() -> None:
    assert seed_excess("a", ["b"]) is None
    assert seed_excess("", ["bb"]) is None
    assert seed_excess("aa", ["", ""]) is None
    assert seed_excess("a", ["bb", ""]) == 1.0
    assert between_within(["a"], [["b"]], rng=rng()) is None
    with pytest.raises(ValueError, match="seeds"):
        between_within(["aa"], [], rng=rng())


def arrangements(original: str, variants: Sequence[str]) -> list[float]:
    """The excess of every arrangement of a seed's answers: the exact null distribution."""
    pool = original + "".join(variants)
    sizes = [len(original), *map(len, variants)]
    ends = list(itertools.accumulate(sizes))
    found = []
    for order in itertools.permutations(pool):
        arms = ["".join(order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
        value = seed_excess(arms[0], arms[1:])
        assert value is not None
        found.append(value)
    return found


@pytest.mark.parametrize(
    ("original", "variants"), [("aab", ["ab"]), ("abc", ["aab"]), ("ab", ["ab", "aa"]), ("abb", ["c", "aa"])]
)
def test_the_excess_is_zero_on_average_where_answers_are_exchangeable(
    original: str, variants: list[str]
) -> None:
    assert np.mean(arrangements(original, variants)) == pytest.approx(0.0, abs=1e-12)


def test_the_test_agrees_with_the_exact_permutation_distribution() -> None:
    exact = arrangements("aab", ["bbb"])
    observed = seed_excess("aab", ["bbb"])
    assert observed is not None
    share = np.mean([value >= observed - 1e-9 for value in exact])
    found = between_within(["aab"], [["bbb"]], rng=rng(), permutations=20_000)
    assert found is not None
    assert found.value == pytest.approx(observed)
    assert found.p_value == pytest.approx(share, abs=0.015)


def test_the_array_form_equals_the_plain_one_for_ragged_seeds() -> None:
    draw = np.random.default_rng(3)
    originals, variants = [], []
    for _ in range(40):
        originals.append(draw.integers(0, 3, draw.integers(0, 4)).tolist())
        variants.append(
            [draw.integers(0, 3, draw.integers(0, 4)).tolist() for _ in range(draw.integers(0, 4))]
        )
    found = between_within(originals, variants, rng=rng(), permutations=9)
    assert found is not None
    plain = [seed_excess(o, v) for o, v in zip(originals, variants, strict=True)]
    kept = [value for value in plain if value is not None]
    assert found.value == pytest.approx(np.mean(kept))
    assert found.values == pytest.approx(kept)
    assert (found.n, found.n_skipped) == (len(kept), 40 - len(kept))


def test_a_model_without_noise_that_never_changes_gives_p_one() -> None:
    found = between_within(["aaa"] * 10, [["aaa", "aaa"]] * 10, rng=rng())
    assert found is not None
    assert (found.value, found.p_value, found.discordant) == (0.0, 1.0, 0)


def test_the_smallest_p_is_one_over_permutations_plus_one() -> None:
    found = between_within(["aaa"] * 30, [["bbb"]] * 30, rng=rng(), permutations=99)
    assert found is not None
    assert found.p_value == 0.01
    assert found.discordant == 30


def audit(draw: np.random.Generator, effect: float, *, seeds: int, variants: int, sets: int) -> list[str]:
    """One simulated audit, 3 replicates, 3 % wobble; ``effect`` is the share of seeds that change."""
    base = draw.integers(0, 2, (seeds, 1))
    original = base ^ (draw.random((seeds, 3)) < 0.03)
    tests, discordant = [], []
    for _ in range(sets):
        change = draw.random((seeds, 1)) < effect
        answers = (base ^ change)[:, :, None] ^ (draw.random((seeds, variants, 3)) < 0.03)
        found = between_within(original.tolist(), answers.tolist(), rng=draw, permutations=99)
        assert found is not None
        tests.append(found.p_value)
        majority = original.sum(1) > 1
        discordant.append(int((answers.sum(2) > 1).__ne__(majority[:, None]).any(1).sum()))
    return [
        claim_verdict(seeds=seeds, discordant=d, deterministic=False, p_adjusted=p)[0]
        for d, p in zip(discordant, holm(tests), strict=True)
    ]


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """statsmodels collects garbage in every correction, which takes most of the time of a simulation."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)


@pytest.mark.usefixtures("no_collection")
def test_a_wobble_without_bias_is_called_shown_in_at_most_18_of_200_audits() -> None:
    draw = np.random.default_rng(11)
    shown = sum("shown" in audit(draw, 0.0, seeds=150, variants=2, sets=3) for _ in range(200))
    assert shown <= 18


def test_the_test_itself_is_wrong_about_as_often_as_it_says() -> None:
    # Without the rule about discordant seeds: the p value alone, at 10 %.
    draw = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        original = (draw.random((60, 3)) < 0.1).tolist()
        found = between_within(original, (draw.random((60, 2, 3)) < 0.1).tolist(), rng=draw, permutations=99)
        wrong += found is not None and found.p_value <= 0.1
    assert 6 <= wrong <= 33


@pytest.mark.usefixtures("no_collection")
def test_a_planted_15_percent_effect_is_shown_in_most_audits() -> None:
    draw = np.random.default_rng(12)
    shown = sum("shown" in audit(draw, 0.15, seeds=100, variants=2, sets=2) for _ in range(25))
    assert shown >= 22


def test_hidden_by_chance_follows_the_published_table() -> None:
    for d, rate, share in ((0.005, 0.0049, 0.49), (0.02, 0.019, 0.48), (0.05, 0.043, 0.45)):
        found = hidden_by_chance(2 * d * (1 - d))
        assert found == (pytest.approx(rate, rel=0.03), pytest.approx(share, abs=0.01))
    three, _ = hidden_by_chance(2 * 0.02 * 0.98, replicates=3)
    assert three == pytest.approx(1.2e-3, rel=0.05)
    five, _ = hidden_by_chance(2 * 0.05 * 0.95, replicates=5)
    assert five == pytest.approx(1.2e-3, rel=0.06)
    assert hidden_by_chance(0.0) == (0.0, None)


@pytest.mark.parametrize(
    ("given", "verdict", "reason"),
    [
        ({"seeds": 0, "discordant": 0, "deterministic": True}, "not_tested", "no seed"),
        ({"seeds": 50, "discordant": 1, "deterministic": True}, "shown", "1 seed only"),
        ({"seeds": 50, "discordant": 9, "deterministic": True}, "shown", "repeatable"),
        ({"seeds": 50, "discordant": 0, "deterministic": True}, "not_determined", "no delta"),
        ({"seeds": 50, "discordant": 9, "deterministic": False}, "not_determined", "not repeated"),
        (
            {"seeds": 50, "discordant": 5, "deterministic": False, "p_adjusted": 0.001},
            "not_determined",
            "too few discordant",
        ),
        (
            {"seeds": 50, "discordant": 6, "deterministic": False, "p_adjusted": 0.001},
            "shown",
            "more than the same prompt",
        ),
        (
            {"seeds": 50, "discordant": 6, "deterministic": False, "p_adjusted": 0.05},
            "not_determined",
            "not told from",
        ),
    ],
)
def test_claim_verdicts(given: dict[str, object], verdict: str, reason: str) -> None:
    found, reasons = claim_verdict(**given)  # type: ignore[arg-type]
    assert found == verdict
    assert any(reason in line for line in reasons), reasons


def test_bounded_needs_a_delta_a_low_limit_and_a_positive_control() -> None:
    plain = {"seeds": 400, "discordant": 0, "deterministic": True}
    full = {**plain, "delta": 0.02, "upper": 0.01, "positive_control": True}
    assert claim_verdict(**full)[0] == "bounded"  # type: ignore[arg-type]
    for change in (
        {"delta": None},
        {"upper": 0.02},
        {"upper": None},
        {"positive_control": None},
        {"positive_control": False},
    ):
        assert claim_verdict(**{**full, **change})[0] == "not_determined", change  # type: ignore[arg-type]
    assert claim_verdict(**{**full, "discordant": 2})[0] == "shown"  # type: ignore[arg-type]
