"""Two runs side by side."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from judged import asked

from auditor.cli.main import run as cli
from auditor.core.record import read
from auditor.core.types import Verdict
from auditor.measure import comparison
from auditor.measure.intervals import korn_graubard
from auditor.report import side_by_side, terminal
from auditor.report.page import Page
from auditor.store.index import short


def verdict(case: int, variant: int, changed: bool, **more: Any) -> Verdict:
    values: dict[str, Any] = {
        "case_id": f"c{case}",
        "variant_id": f"c{case}.v{variant}",
        "order": 1,
        "attributes": ("gender",),
        "outcome": "violation" if changed else "pass",
        "model": "m",
        "format": "bare",
    }
    return Verdict(**{**values, **more})


def side(verdicts: list[Verdict], *, prefix: str = "", **record: Any) -> comparison.Side:
    base = {"id": "r", "spec": {"task": "t"}, "models": {"m": {"fingerprint": "a"}}, "findings": []}
    exemplars = {v.variant_id: short(prefix + v.variant_id) for v in verdicts}
    return comparison.Side(record=read({**base, **record}), drawn=asked(verdicts, prefix), exemplars=exemplars)


def runs(before: list[bool], after: list[bool], **more: Any) -> comparison.Comparison:
    first = side([verdict(i, 0, changed) for i, changed in enumerate(before)])
    second = side([verdict(i, 0, changed) for i, changed in enumerate(after)], **more)
    return comparison.compare(first, second)


def test_paired_change_is_told_from_wobble() -> None:
    (rate,) = runs([False] * 20, [True] * 8 + [False] * 12).rates
    assert rate.change == "worse"
    assert (rate.only_before, rate.only_after) == (0, 8)
    assert rate.p_value == pytest.approx(2 / 2**8)
    assert rate.difference == pytest.approx(0.4)
    assert rate.low is not None
    assert rate.low > 0
    (rate,) = runs([True] * 8 + [False] * 12, [False] * 20).rates
    assert rate.change == "better"
    (rate,) = runs([True, False] * 10, [False, True] * 10).rates
    assert rate.change == "unclear"
    assert rate.p_value == 1.0


def test_only_what_both_judged_is_paired() -> None:
    first = side([verdict(0, 0, False), verdict(0, 1, True), verdict(1, 0, True, outcome="skipped")])
    second = side([verdict(0, 0, True), verdict(1, 0, False), verdict(2, 0, True)])
    (rate,) = comparison.compare(first, second).rates
    assert (rate.n_before, rate.n_variants) == (1, 1)
    assert (rate.before, rate.after) == (0.0, 1.0)


def test_placebo_variants_and_directed_cases_stay_out() -> None:
    first = side([verdict(0, 0, False), verdict(0, 9, True, order=0)])
    second = dataclasses.replace(side([verdict(0, 0, False)]), directed=asked([verdict(1, 0, True)]))
    (rate,) = comparison.compare(first, second).rates
    assert (rate.before, rate.after, rate.n_after) == (0.0, 0.0, 1)


def test_other_texts_are_two_samples() -> None:
    first = side([verdict(i, 0, False) for i in range(12)])
    second = side([verdict(i + 50, 0, True) for i in range(12)], prefix="x")
    (rate,) = comparison.compare(first, second).rates
    assert rate.test.startswith("two samples")
    assert rate.change == "worse"
    assert rate.p_value is not None
    assert rate.p_value < 0.001
    few = side([verdict(99, 0, True)], prefix="y")
    (rate,) = comparison.compare(first, few).rates
    assert rate.change == "untested"
    assert "fewer than two texts" in rate.reason


def test_holm_runs_over_all_rates() -> None:
    names = [f"a{k}" for k in range(10)]
    first = side([verdict(i, k, False, attributes=(a,)) for k, a in enumerate(names) for i in range(10)])
    second = side([verdict(i, k, k == 0 and i < 6, attributes=(a,)) for k, a in enumerate(names) for i in range(10)])
    rate = next(r for r in comparison.compare(first, second).rates if r.attributes == ("a0",))
    assert rate.p_value == pytest.approx(1 / 32)
    assert rate.p_adjusted == pytest.approx(10 / 32)
    assert rate.change == "unclear"


def test_a_rate_weighs_variants_and_its_test_goes_by_text() -> None:
    """Seven texts change a little, one changes a lot the other way: the rates of the two reports differ, by little."""
    first = [verdict(i, k, i < 1, attributes=("a",)) for i in range(8) for k in range(3 + 27 * (i < 1))]
    second = [verdict(i, k, i >= 1 and k == 0, attributes=("a",)) for i in range(8) for k in range(3 + 27 * (i < 1))]
    (rate,) = comparison.compare(side(first), side(second)).rates
    assert (rate.only_before, rate.only_after, rate.n_variants) == (1, 7, 51)
    assert (rate.before, rate.after) == (30 / 51, 7 / 51)
    assert rate.difference == pytest.approx(-23 / 51)
    assert rate.p_value == pytest.approx(1.0)
    assert rate.change == "unclear"


def test_plans_come_first_and_leave_out_where_results_go() -> None:
    found = runs([False], [False], spec={"task": "u", "out": "x", "order": 3}, id="r2")
    assert [(p.name, p.before, p.after) for p in found.plans] == [("order", "not set", "3"), ("task", "t", "u")]
    text = terminal.write(Page(width=100, encoding="utf-8", color=False), side_by_side.runs(found))
    assert text.index("Plans") < text.index("How often answers changed")


def test_the_limits_of_two_samples_are_of_the_difference_that_is_told() -> None:
    """A text counts as one, however many of its variants were judged."""
    first = [verdict(0, v, True) for v in range(200)] + [verdict(c, 0, False) for c in range(1, 12)]
    second = [verdict(c, 0, False) for c in range(12)]
    (rate,) = comparison.compare(side(first), side(second, prefix="other: ")).rates
    assert rate.difference == pytest.approx(-200 / 211)
    assert rate.p_value is not None
    assert rate.p_value > 0.2, "one text of twelve shows nothing"
    # Nothing is below 0 changes after, so the lower limit is that of the rate before.
    before = korn_graubard([200] + [0] * 11, [200] + [1] * 11)
    assert rate.low == pytest.approx(max(-1.0, rate.difference - (before.high - before.value)))


def test_a_clear_change_of_two_samples_is_shown_among_many_rates() -> None:
    """Twice one in 5,000 shuffles, times 130 rates, is more than 5 %."""
    names = [f"a{i:03d}" for i in range(130)]

    def asked(changed: bool) -> list[Verdict]:
        return [
            verdict(c, n, changed and n == 0, attributes=(name,)) for c in range(12) for n, name in enumerate(names)
        ]

    rates = comparison.compare(side(asked(False)), side(asked(True), prefix="other: ")).rates
    assert len(rates) == 130
    assert [r.attributes for r in rates if r.change == "worse"] == [("a000",)]


def test_two_models_are_compared_as_one_and_it_is_said() -> None:
    first = side([verdict(i, 0, False) for i in range(9)])
    second = side([verdict(i, 0, True, model="n") for i in range(9)], models={"n": {"fingerprint": "b"}})
    found = comparison.compare(first, second)
    assert found.rates[0].change == "worse"
    assert "m before and n after" in found.notes[0]
    assert ("model: fingerprint", "a", "b") in [(p.name, p.before, p.after) for p in found.plans]


def finding(id: str, verdict: str = "shown", **more: Any) -> dict[str, Any]:
    row = {"id": id, "kind": "hidden", "code": "HID201", "model": "m", "format": "bare", "verdict": verdict}
    return {**row, "attributes": ["gender"], "directions": [["gender", "a", "b"]], "exemplars": ["c0.v0"], **more}


def test_findings_are_matched_by_what_they_are_about() -> None:
    claim = {"kind": "claim", "code": "MUT101", "directions": []}
    first = side([verdict(0, 0, True)], findings=[finding("F1"), finding("F2", **claim)])
    second = side(
        [verdict(0, 0, False)],
        findings=[finding("F1", "not_determined", **claim), finding("F7", directions=[["gender", "b", "a"]])],
    )
    found = {f.key: f for f in comparison.compare(first, second).findings}
    gone = found["HID201/m/bare/gender:a>b"]
    assert (gone.fate, gone.before, gone.after) == ("gone", ("F1",), ())
    assert "judged 1 of these texts; the answer changed in 0" in gone.note
    assert found["MUT101/m/bare/gender"].note == "not determined in the run after"
    assert found["HID201/m/bare/gender:b>a"].fate == "new"


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from auditor import audit

    texts = [f"She is a {role} in the film." for role in ("nurse", "clerk", "pilot", "baker", "teacher", "writer")]

    def quiet(text: str) -> str:
        return "positive"

    def loud(text: str) -> str:
        return "negative" if "She" in text else "positive"

    paths = []
    for model in (quiet, loud):
        model.deterministic = True  # type: ignore[attr-defined]
        result = audit("sentiment", model=model, data=texts, attributes=("gender",), out=tmp_path)
        paths.append(str(result.path))
    assert cli(["compare", *paths]) == 0
    assert "1 worse" in capsys.readouterr().out.replace("\n", " ")
    assert cli(["compare", *paths, "--format", "json", "--fail-on", "worse"]) == 1
    rates = json.loads(capsys.readouterr().out)["rates"]
    assert [(r["change"], r["n_after"]) for r in rates] == [("worse", 6)]
    assert cli(["compare", *reversed(paths), "--format", "md", "--fail-on", "worse,new"]) == 0
    assert "▼ better" in capsys.readouterr().out
    assert cli(["compare", *paths, "--fail-on", "better"]) == 2
    assert cli(["compare", paths[0], str(tmp_path / "none")]) == 2
