"""Models of rows that do not always repeat themselves: what is called shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.cli.main import run as audit
from auditor.tables.row_noise import permuted

MODULE = """
import random, re
DRAW = random.Random(7)
def decide(text, wobble):
    income = int(re.search(r"monthly income: (\\d+)", text).group(1))
    said = income >= (5200 if "sex: female" in text else 2400)
    return "approve" if said != (DRAW.random() < wobble) else "deny"
def planted(text):
    return decide(text, 0.05)
def steady(text):
    return decide(text, 0.0)
steady.deterministic = True
"""


@pytest.mark.parametrize(
    ("model", "times", "verdict"),
    [("planted", "3", "shown"), ("planted", "1", "not_determined"), ("steady", "1", "shown")],
)
def test_only_a_change_above_the_noise_is_shown(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model: str,
    times: str,
    verdict: str,
) -> None:
    (place / "noisy_rows.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "noisy_rows", raising=False)
    base = ["tabular", "--task", "lending", "--model", f"python:noisy_rows:{model}", "--format", "json"]
    assert audit([*base, "--max-samples", "60", "--replicates", times]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {f["code"]: f["verdict"] for f in record["findings"]}["tabular-causal"] == verdict
    once = any("each row was asked once" in note for note in record["tabular"]["notes"])
    assert once == (verdict == "not_determined")
    assert ("noise" in record["tabular"]) == (model == "planted")
    if times == "3":
        noise = record["tabular"]["noise"]
        assert (noise["p_value"], noise["cases"]) == (pytest.approx(0.001), 60)
        assert 0 < noise["same_row"]["value"] < 0.4  # 1 - 0.95³ is 14 %
        (folder,) = Path("reports").glob("2*")
        assert "answers that differ to one and the same row" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_test_keeps_its_level() -> None:
    rng = np.random.default_rng(3)
    small = sum(permuted((rng.random((12, 6)) < 0.3).astype(int), 2, 2, rng) <= 0.1 for _ in range(60))
    assert small <= 14  # 6 are expected; more than 14 of 60 at 10 % have a probability below 0.1 %
    planted = np.tile([0, 0, 0, 1, 1, 1], (12, 1))
    assert permuted(planted, 2, 2, rng) == pytest.approx(0.001)
    assert permuted(np.full((3, 6), -1), 2, 0, rng) == 1.0
