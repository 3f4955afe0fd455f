"""Which units a figure goes by: parts of a mutant, texts with a judged mutant, words, seeds."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta, t

from auditor.contrib.hinter.statistics import Mutant, measures
from auditor.core.types import Verdict
from auditor.measure import contrast, paired, two_way
from auditor.measure.anomaly import anomaly_indices
from auditor.measure.fairness import group_fairness
from auditor.measure.intervals import korn_graubard
from auditor.run import tokens


def mutant(name: str, attributes: tuple[str, ...], error: bool | None, original: str = "o") -> Mutant:
    parts = () if len(attributes) == 1 else tuple(f"{original}.{a}" for a in attributes)
    return Mutant(
        id=f"{original}.{name}",
        original=original,
        attributes=attributes,
        valid=True,
        error=error,
        parts=parts,
    )


@pytest.mark.parametrize(("parts", "hidden"), [(("a", "b"), 1), (("a",), 0), (("b",), 0), ((), 0)])
def test_hidden_in_the_papers_sense_needs_both_atomic_mutants(parts: tuple[str, ...], hidden: int) -> None:
    given = [mutant(name, (name,), False) for name in parts] + [mutant("ab", ("a", "b"), True)]
    assert measures(given)[0].hidden == hidden


def test_texts_without_a_judged_joint_mutant_are_in_no_region() -> None:
    given = [
        mutant("a", ("a",), True),
        mutant("ab", ("a", "b"), None),
        mutant("a", ("a",), True, "p"),
        mutant("ab", ("a", "b"), False, "p"),
    ]
    assert dict(measures(given)[0].originals) == {"joint_only": 0, "atomic_only": 1, "both": 0, "neither": 0}


def test_an_interval_by_seed_and_word_is_never_shorter_than_that_by_seed() -> None:
    # A seed changes with all words or with none, so every word changes as often as any other.
    seeds, words = 20, 60
    events = [s < 6 for s in range(seeds) for _ in range(words)]
    found = two_way.two_way(
        events,
        [f"s{s}" for s in range(seeds) for _ in range(words)],
        [f"w{w}" for _ in range(seeds) for w in range(words)],
    )
    plain = korn_graubard([60] * 6 + [0] * 14, [60] * 20)
    assert found is not None
    assert found.low <= plain.low
    assert found.high >= plain.high


@pytest.mark.parametrize("seed", range(5))
def test_the_variance_by_seed_and_word_is_that_of_statsmodels(seed: int) -> None:
    from statsmodels.regression.linear_model import OLS

    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 800))
    x = (rng.random(n) < 0.2).astype(float)
    seeds, words = (two_way._numbered([f"n{i}" for i in rng.integers(0, k, n)]) for k in (40, 9))
    fit = OLS(x, np.ones(n)).fit(
        cov_type="cluster", cov_kwds={"groups": np.column_stack((seeds, words)), "use_correction": True}
    )
    assert two_way._variance(x, seeds, words) == pytest.approx(float(fit.cov_params()[0, 0]), rel=1e-9)


def test_dealing_in_parts_gives_the_p_value_of_dealing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = [(1, 3), (2, 2), (0, 4), (3, 4)] * 5, [(1, 2), (0, 3), (1, 1), (1, 4)] * 5
    whole = paired.exchange(first, second, rng=np.random.default_rng(3))
    monkeypatch.setattr(paired, "_CHUNK", 70)
    assert paired.exchange(first, second, rng=np.random.default_rng(3)) == whole
    assert 0.01 < whole < 0.99


def test_the_fewer_clusters_set_the_degrees_of_freedom(monkeypatch: pytest.MonkeyPatch) -> None:
    variance = 0.02
    monkeypatch.setattr(two_way, "_variance", lambda *_: variance)
    seeds, words = 60, 8
    events = [(s + w) % 4 == 0 for s in range(seeds) for w in range(words)]
    found = two_way.two_way(
        events,
        [f"s{s}" for s in range(seeds) for _ in range(words)],
        [f"w{w}" for _ in range(seeds) for w in range(words)],
    )
    assert found is not None
    p = found.value
    size = p * (1 - p) / variance * (t.ppf(0.975, seeds * words - 1) / t.ppf(0.975, words - 1)) ** 2
    assert found.low == pytest.approx(beta.ppf(0.025, p * size, size - p * size + 1))
    assert found.high == pytest.approx(beta.ppf(0.975, p * size + 1, size - p * size))


def test_a_seed_with_many_joint_variants_is_one_seed() -> None:
    values = [("m", "f", "c0", ("a", "b"), 1.0)] * 9
    values += [("m", "f", "c1", ("a", "b"), 0.0), ("m", "f", "c2", ("a", "b"), 0.0)]
    (row,) = contrast.estimates(values)
    assert row["estimate"]["value"] == pytest.approx(1 / 3)
    assert (row["estimate"]["n"], row["estimate"]["n_variants"]) == (3, 11)


@pytest.mark.parametrize("paired", [False, True])
def test_a_permutation_p_value_of_groups_is_never_zero(paired: bool) -> None:
    scores = {f"g{i:02d}": [0.5 + 0.01 * ((i + j) % 5) for j in range(30)] for i in range(12)}
    found = group_fairness(scores | {"far": [0.01 * (j % 5) for j in range(30)]}, rounds=99, paired=paired)
    (far,) = [g for g in found.groups if g.name == "far"]
    assert far.p == 1 / 100
    assert all(g.p is not None and 0 < g.p <= 1 for g in found.groups)


def test_values_that_differ_in_their_last_bits_are_equal() -> None:
    values = [0.3, math.nextafter(0.3, 1), math.nextafter(0.3, 0)] * 4
    found = anomaly_indices([*values, 0.9])
    assert found.values == (None,) * 13
    assert found.mad == 0.0


def test_a_word_with_fewer_changes_than_its_family_does_not_stand_out() -> None:
    rows = [tokens.Tally(family="f", token=f"w{i}", group="", n=200, errors=100) for i in range(8)]
    low = tokens.Tally(family="f", token="low", group="", n=200, errors=20)
    high = tokens.Tally(family="f", token="high", group="", n=200, errors=180)
    found = {t.token: t for t in tokens.diagnose([*rows, low, high])[0]}
    assert (found["low"].q or 1) < 0.05
    assert not found["low"].stands_out
    assert found["high"].stands_out


@pytest.mark.parametrize("order", [("violation", "pass"), ("pass", "violation")])
def test_a_case_errs_if_any_of_its_variants_with_the_word_does(order: tuple[str, str]) -> None:
    about = SimpleNamespace(directions=(("a", "x", "y"),), term="word")
    verdicts = [
        Verdict(case_id="c", variant_id=f"c.v{i}", order=1, attributes=("a",), outcome=outcome)
        for i, outcome in enumerate(order)
    ]
    (row,) = tokens.of_terms(verdicts, {"c.v0": about, "c.v1": about})
    assert (row.n, row.errors) == (1, 1)
