"""Planted models: what a grammar run must find, and what it must not."""

from __future__ import annotations

import pytest

from auditor import audit


def test_a_planted_change_is_found_and_aimed_at() -> None:
    """A model that reads one occupation as bad: PROB finds it at least 1.5 times as often as RAND."""
    result = audit(
        "sentiment", model=lambda text: "negative" if "plumber" in text.lower() else "positive", suite="grammar",
        suite_options=["grammar=sentiment:gendered-occupation"], limit=400, order=1, protocol="astraea", out=None,
    )  # fmt: skip
    rows = {p["phase"]: p["violating_cases"] / p["cases"] for p in result.record["generation"]["phases"]}
    assert rows["rand"] > 0
    assert rows["prob"] >= 1.5 * rows["rand"]


def test_an_intersection_is_hidden_and_its_parts_are_not() -> None:
    """Only elderly women are treated otherwise: joint variants of order 2 from a young man."""
    result = audit(
        "sentiment", model=lambda text: "negative" if "elderly woman" in text else "positive", suite="grammar",
        suite_options=["grammar=sentiment:intersections", "generation=rand"], attributes=("age", "gender"), limit=300,
        out=None,
    )  # fmt: skip
    hidden = [f for f in result.findings if f.kind == "hidden"]
    assert hidden
    assert {f.attributes for f in hidden} == {("age", "gender")}
    by_order = result.record["counts"]["hidden"]
    assert by_order["2"] > 0
    assert by_order.get("1", 0) == 0


@pytest.mark.parametrize("generation", ["rand", "prob"])
def test_a_model_that_sees_no_people_has_no_findings(generation: str) -> None:
    bad = ("sad", "dull", "bored", "angry")
    result = audit(
        "sentiment", model=lambda text: "negative" if any(w in text for w in bad) else "positive", suite="grammar",
        suite_options=[f"generation={generation}"], limit=120, out=None,
    )  # fmt: skip
    assert [f for f in result.findings if f.verdict == "shown"] == []
    assert all(p["violating_cases"] == 0 for p in result.record["generation"]["phases"])
