"""Which units a figure goes by: parts of a mutant, texts with a judged mutant, words, seeds."""

from __future__ import annotations

import math

import pytest
from judged import shape, table_of

from auditor.contrib.astraea import outliers as tokens
from auditor.contrib.astraea.group_scores import group_fairness
from auditor.contrib.astraea.outliers import anomaly_indices
from auditor.contrib.hinter.measures import Mutant, measures
from auditor.core.types import Verdict


def mutant(name: str, attributes: tuple[str, ...], error: bool | None, original: str = "o") -> Mutant:
    parts = () if len(attributes) == 1 else tuple(f"{original}.{a}" for a in attributes)
    return Mutant(
        id=f"{original}.{name}", original=original, attributes=attributes, valid=True, error=error, parts=parts
    )


@pytest.mark.parametrize(("parts", "hidden"), [(("a", "b"), 1), (("a",), 0), (("b",), 0), ((), 0)])
def test_hidden_in_the_papers_sense_needs_both_atomic_mutants(parts: tuple[str, ...], hidden: int) -> None:
    given = [mutant(name, (name,), False) for name in parts] + [mutant("ab", ("a", "b"), True)]
    assert measures(given)[0].split.hidden == hidden


def test_texts_without_a_judged_joint_mutant_are_in_no_region() -> None:
    given = [
        mutant("a", ("a",), True),
        mutant("ab", ("a", "b"), None),
        mutant("a", ("a",), True, "p"),
        mutant("ab", ("a", "b"), False, "p"),
    ]
    assert dict(measures(given)[0].originals) == {"joint_only": 0, "atomic_only": 1, "both": 0, "neither": 0}


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
    verdicts = [
        Verdict(case_id="c", variant_id=f"c.v{i}", order=1, attributes=("a",), outcome=outcome)
        for i, outcome in enumerate(order)
    ]
    word = shape(("a",), ("a", "x", "y"), words=["word"])
    ((row,),) = tokens.of_terms(table_of(verdicts, {"c.v0": word, "c.v1": word})).values()
    assert (row.n, row.errors) == (1, 1)
