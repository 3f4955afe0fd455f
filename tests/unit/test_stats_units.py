"""Which units a figure goes by: parts of a mutant, texts with a judged mutant, words, seeds."""

from __future__ import annotations

import math

import pytest
from judged import shape, table_of

from auditor.contrib.astraea import outliers as tokens
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
    assert measures(given)[0].hidden == hidden


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
