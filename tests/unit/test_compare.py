"""Two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, said
from judged import side

from auditor import audit
from auditor.core.types import Verdict
from auditor.measure import comparison
from auditor.measure.comparison import Comparison, plan_differences
from auditor.report import side_by_side, terminal
from auditor.report.terminal import Page
from auditor.testing.planted import Planted

RECORD: dict[str, Any] = {"id": "r", "spec": {"task": "t"}, "models": {"m": {"fingerprint": "a"}}, "findings": []}


def verdict(case: int, variant: int, changed: bool, **more: Any) -> Verdict:
    about = {"order": 1, "attributes": ("gender",), "model": "m", "format": "bare"}
    outcome = "violation" if changed else "pass"
    return Verdict(**{"case_id": f"c{case}", "variant_id": f"c{case}.v{variant}", "outcome": outcome} | about | more)


def compared(before: list[Verdict], after: list[Verdict], prefix: str = "", **record: Any) -> Comparison:
    return comparison.compare(side(before, RECORD), side(after, RECORD | record, prefix))


def runs(before: list[bool], after: list[bool], **record: Any) -> Comparison:
    sides = ([verdict(i, 0, changed) for i, changed in enumerate(one)] for one in (before, after))
    return compared(*sides, **record)


def test_paired_change_is_told_from_wobble() -> None:
    (rate,) = runs([False] * 20, [True] * 8 + [False] * 12).rates
    assert rate.change == "worse"
    assert (rate.only_before, rate.only_after) == (0, 8)
    assert (rate.p_value, rate.difference) == (pytest.approx(2 / 2**8), pytest.approx(0.4))
    assert (rate.low or 0) > 0
    (rate,) = runs([True] * 8 + [False] * 12, [False] * 20).rates
    assert rate.change == "better"
    (rate,) = runs([True, False] * 10, [False, True] * 10).rates
    assert (rate.change, rate.p_value) == ("unclear", 1.0)


def test_only_edited_variants_that_both_judged_are_paired() -> None:
    first = [verdict(0, 0, False), verdict(0, 1, True), verdict(1, 0, True, outcome="skipped")]
    second = [verdict(0, 0, True), verdict(1, 0, False), verdict(2, 0, True), verdict(0, 9, True, order=0)]
    (rate,) = compared(first, second).rates
    assert (rate.n_before, rate.n_variants) == (1, 1)
    assert (rate.before, rate.after) == (0.0, 1.0)
    (rate,) = compared(first, first, prefix="other ").rates
    assert (rate.change, rate.reason, rate.p_value) == ("untested", "the runs share no variant", None)


def test_holm_runs_over_all_rates() -> None:
    names = [f"a{k}" for k in range(10)]
    first = [verdict(i, k, False, attributes=(a,)) for k, a in enumerate(names) for i in range(10)]
    second = [verdict(i, k, k == 0 and i < 6, attributes=(a,)) for k, a in enumerate(names) for i in range(10)]
    rate = next(r for r in compared(first, second).rates if r.attributes == ("a0",))
    assert (rate.p_value, rate.p_adjusted) == (pytest.approx(1 / 32), pytest.approx(10 / 32))
    assert rate.change == "unclear"


def test_a_rate_weighs_variants_and_its_test_goes_by_text() -> None:
    """Seven texts change a little, one changes a lot the other way: the rates of the two reports differ, by little."""
    first = [verdict(i, k, i < 1, attributes=("a",)) for i in range(8) for k in range(3 + 27 * (i < 1))]
    second = [verdict(i, k, i >= 1 and k == 0, attributes=("a",)) for i in range(8) for k in range(3 + 27 * (i < 1))]
    (rate,) = compared(first, second).rates
    assert (rate.only_before, rate.only_after, rate.n_variants) == (1, 7, 51)
    assert (rate.before, rate.after) == (30 / 51, 7 / 51)
    assert rate.p_value == pytest.approx(1.0)


def test_plans_come_first_and_leave_out_where_results_go() -> None:
    found = runs([False], [False], spec={"task": "u", "out": "x", "order": 3}, id="r2")
    assert [(p.name, p.before, p.after) for p in found.plans] == [("order", "not set", "3"), ("task", "t", "u")]
    text = terminal.write(Page(width=100, encoding="utf-8", color=False), side_by_side.runs(found))
    assert text.index("Plans") < text.index("How often answers changed")
    old = {"spec": {"data": None}, "models": {"m": {"fingerprint": "a", "reported": []}}}
    new = {"spec": {}, "models": {"m": {"fingerprint": "b", "reported": None}}}
    assert [d.name for d in plan_differences(old, new)] == ["model: fingerprint"]


def test_two_models_are_compared_as_one_and_it_is_said() -> None:
    first = [verdict(i, 0, False) for i in range(9)]
    second = [verdict(i, 0, True, model="n") for i in range(9)]
    found = compared(first, second, models={"n": {"fingerprint": "b"}})
    assert found.rates[0].change == "worse"
    assert "m before and n after" in found.notes[0]
    assert ("model: fingerprint", "a", "b") in [(p.name, p.before, p.after) for p in found.plans]


def finding(id: str, verdict: str = "shown", **more: Any) -> dict[str, Any]:
    row = {"id": id, "kind": "hidden", "code": "HID201", "model": "m", "format": "bare", "verdict": verdict}
    return {**row, "attributes": ["gender"], "directions": [["gender", "a", "b"]], "exemplars": ["c0.v0"], **more}


def test_findings_are_matched_by_what_they_are_about() -> None:
    claim = {"kind": "claim", "code": "MUT101", "directions": []}
    before = [finding("F1"), finding("F2", **claim)]
    after = [finding("F1", "not_determined", **claim), finding("F7", directions=[["gender", "b", "a"]])]
    sides = side([verdict(0, 0, True)], RECORD | {"findings": before}), side([], RECORD | {"findings": after})
    found = {f.key: f for f in comparison.compare(*sides).findings}
    gone = found["HID201/m/bare/gender:a>b"]
    assert (gone.fate, gone.before, gone.after) == ("gone", ("F1",), ())
    assert found["MUT101/m/bare/gender"].note == "not determined in the run after"
    assert found["HID201/m/bare/gender:b>a"].fate == "new"


def test_command_line(tmp_path: Path, capsys: Capture) -> None:
    texts = [f"She is a {role} in the film." for role in ("nurse", "clerk", "pilot", "baker", "teacher", "writer")]
    paths = []
    for model in (Planted(base="constant"), Planted(base="constant", additive={"she": 1.0})):
        result = audit("sentiment", model=model, data=texts, attributes=("gender",), anyway=True, out=tmp_path)
        paths.append(str(result.path))
    code, told = said(capsys, "compare", *paths)
    assert (code, "1 worse" in told) == (0, True)
    code, told = said(capsys, "compare", *paths, "--format", "json", "--fail-on", "worse")
    assert code == 1
    assert [(r["change"], r["n_after"]) for r in json.loads(told)["rates"]] == [("worse", 6)]
    code, told = said(capsys, "compare", *reversed(paths), "--format", "md", "--fail-on", "worse,new")
    assert (code, "▼ better" in told) == (0, True)
    assert said(capsys, "compare", *paths, "--fail-on", "better")[0] == 2
    assert said(capsys, "compare", paths[0], tmp_path / "none")[0] == 2
