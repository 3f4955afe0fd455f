"""Two searches over rows side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.cli.main import run as audit
from auditor.core.types import FORMAT_VERSION
from auditor.store.folder import RunFolder

MODULE = """
import numpy as np
def some(rows):
    return (rows[:, 0] + 2 * rows[:, 1] >= 4).astype(int)
def more(rows):
    return (rows[:, 0] + 5 * rows[:, 1] >= 6).astype(int)
def never(rows):
    return np.zeros(len(rows), int)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    rows = np.stack([rng.integers(0, 9, 80), rng.integers(0, 2, 80), rng.integers(0, 9, 80)], axis=1)
    lines = ["x,sex,z,y", *(",".join(map(str, [*r, r[0] % 2])) for r in rows.tolist())]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "two_rows.py").write_text(MODULE, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("two_rows", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def made(model: str, *extra: str) -> str:
    before = set(Path("reports").glob("2*"))
    base = ["tabular", "--data", "data.csv", "--target", "y", "--protected", "sex"]
    assert audit([*base, "--model", f"python:two_rows:{model}", *extra]) == 0
    (new,) = set(Path("reports").glob("2*")) - before
    return str(new)


def compared(a: str, b: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert audit(["compare", a, b, "--format", "json"]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def by_name(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {r["format"].partition(" score")[0].replace(" ", "_"): r for r in value["rates"]}


def test_exact_scores_need_no_test_and_sets_are_matched(capsys: pytest.CaptureFixture[str]) -> None:
    value = compared(made("some"), made("more"), capsys)
    causal = by_name(value)["causal"]
    assert (causal["test"], causal["change"]) == ("both exact", "worse")
    assert causal["difference"] == pytest.approx(5 / 9 - 2 / 9)
    search = ("--protected", "x,sex,z", "--theta", "0.3")
    value = compared(made("some", *search), made("never", *search), capsys)
    (gone,) = value["findings"]  # the one minimal set
    assert (gone["fate"], gone["key"].rpartition("/")[2]) == ("gone", "x")


def test_intervals_that_hold_nothing_decide_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    extra = ("--protocol", "themis", "--max-samples", "400")
    a, b = made("never", *extra), made("more", *extra)
    causal = by_name(compared(a, b, capsys))["causal"]
    assert causal["before"] == 0 < causal["after"]
    assert (causal["change"], causal["test"]) == ("untested", "")
    assert causal["reason"]
    assert audit(["compare", a, b, "--fail-on", "worse"]) == 0


def test_directed_finds_enter_no_test(capsys: pytest.CaptureFixture[str]) -> None:
    extra = ("--method", "aequitas", "--set", "generated=60", "--set", "trials=0")
    value = compared(made("some", *extra), made("more", *extra), capsys)
    assert sum("were searched for" in note for note in value["notes"]) == 2
    assert not [r for r in value["rates"] if r["p_value"] is not None]


def test_texts_and_rows_are_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    with RunFolder.create(Path("reports"), {"plan": {"task": "sentiment"}}) as text:
        text.write_run({"id": text.id, "format_version": FORMAT_VERSION, "status": "complete", "status_reason": ""})
    rows = made("some")
    capsys.readouterr()
    assert audit(["compare", rows, str(text.path)]) == 2
    assert "is a search over rows of a table" in " ".join(capsys.readouterr().err.split())


def test_intervals_that_do_not_overlap_differ_and_reports_name_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    extra = ("--max-samples", "10000")
    a, b = made("some", *extra), made("more", *extra)
    value = compared(a, b, capsys)
    assert {r["test"] for r in value["rates"]} == {"intervals that do not overlap"}
    assert by_name(value)["causal"]["change"] == "worse"
    assert by_name(compared(b, a, capsys))["causal"]["change"] == "better"
    assert by_name(compared(a, a, capsys))["causal"]["change"] == "unclear"
    assert audit(["compare", a, b, "--fail-on", "worse"]) == 1
    assert audit(["compare", b, a, "--fail-on", "worse,new"]) == 0
    capsys.readouterr()
    for form in ("terminal", "md"):
        assert audit(["compare", a, b, "--format", form, "--full"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        for part in ("Plans", "Scores", "Findings shown"):
            assert part in text
        assert "▲ worse" in text
