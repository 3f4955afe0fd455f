"""`--suite joint-first`: joint changes come first, their parts after a change, and nothing enters a rate."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from auditor import audit
from auditor.core.record import read
from auditor.core.registry import RENDERERS
from auditor.testing.planted import Planted

PEOPLE = ("young man", "young woman", "young boy", "young girl")
TEXTS = [f"A {PEOPLE[i % 4]} left the film number {i} after an hour." for i in range(200)]
BOTH: dict[str, Any] = {"data": TEXTS, "attributes": ("gender", "age"), "cache": False}
WOMEN, OLD = (re.compile(rf"\b({words})", re.I) for words in ("woman|girl|lady|female", "old|elderly|senior"))


def old_women(text: str) -> str:
    """Answer otherwise where both stand in the text, in every fifth text."""
    fifth = re.search(r"number \d*[05] ", text)
    return "negative" if fifth and WOMEN.search(text) and OLD.search(text) else "positive"


def run(suite: str, **options: Any) -> Any:
    return audit("sentiment", model=old_women, suite=suite, **BOTH | options)


@pytest.mark.slow
def test_the_same_calls_find_more_hidden_changes_than_all_variants_in_order() -> None:
    found = {suite: run(suite, max_calls=600).record["counts"]["hidden"]["2"] for suite in ("mutation", "joint-first")}
    assert found["joint-first"] > 2 * found["mutation"]


def test_parts_are_asked_only_where_the_joint_answer_changed_and_nothing_enters_a_rate() -> None:
    result = run("joint-first", replicates=2, limit=60)
    record = result.record
    assert record["counts"]["hidden"]["2"] > 0
    assert record["claims"] == []
    assert not [e for e in record["estimates"] if e["name"] == "violation_rate"]
    assert record["counts"]["placebos"] == 0
    asked, changed = Counter[str](), set()
    for verdict in result.verdicts:
        asked[verdict.case_id] += verdict.order == 1
        if verdict.order == 2 and verdict.outcome == "violation":
            changed.add(verdict.case_id)
    assert {case for case, n in asked.items() if n} == changed


@pytest.mark.slow
def test_several_processes_make_the_same_run() -> None:
    one, two = (run("joint-first", limit=20, jobs=jobs).record for jobs in ("1", "2"))
    assert {k: one[k] for k in ("counts", "findings")} == {k: two[k] for k in ("counts", "findings")}


def test_candidates_of_noise_are_mostly_not_confirmed() -> None:
    model = Planted(wobble=0.12, name="planted-noise")
    options = {"replicates": 1, "seed": 3, "limit": 30, "attributes": ("gender", "race"), "cache": False}
    result = audit("sentiment", model=model, suite="joint-first", **options)
    hidden = [f for f in result.findings if f.kind == "hidden"]
    assert hidden
    assert not any(f.verdict == "shown" for f in hidden)


def test_a_run_of_version_0_2_that_searched_is_read_and_reported() -> None:
    result = run("joint-first", limit=8)
    old = result.record | {"adaptive": {"share": 0.25, "phases": {}}, "sections": []}
    old["spec"] = {**old["spec"], "suite": "mutation", "strategy": "adaptive"}
    assert read(old).spec.suite == "mutation"
    for name in ("html", "markdown", "json", "terminal"):
        assert "sentiment" in RENDERERS.create(name).render(read(old), result.evidence)
