"""Models of rows that do not always repeat themselves: what is called shown."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from auditor.cli.main import run as audit
from auditor.core.types import Finding
from auditor.tables.columns import Column
from auditor.tables.row_noise import Noise, against_noise, measure, permuted
from auditor.tables.row_schema import Schema

MODULE = """
import random, re
DRAW = random.Random(7)
def decide(text, wobble):
    income = int(re.search(r"monthly income: (\\d+)", text).group(1))
    limit = 5200 if "sex: female" in text and wobble < 0.2 else 2400
    said = income >= limit
    return "approve" if said != (DRAW.random() < wobble) else "deny"
def planted(text):
    return decide(text, 0.05)
def wobbly(text):
    return decide(text, 0.3)
def steady(text):
    return decide(text, 0.0)
steady.deterministic = True
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    (tmp_path / "noisy_rows.py").write_text(MODULE, encoding="utf-8")
    yield
    sys.modules.pop("noisy_rows", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def searched(model: str, capsys: pytest.CaptureFixture[str], *extra: str) -> dict[str, Any]:
    base = ["tabular", "--task", "lending", "--model", f"python:noisy_rows:{model}", "--format", "json"]
    assert audit([*base, "--max-samples", "60", *extra]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def verdicts(record: dict[str, Any]) -> dict[str, str]:
    return {f["code"]: f["verdict"] for f in record["findings"]}


def test_a_change_above_the_noise_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    record = searched("planted", capsys, "--replicates", "3")
    assert verdicts(record)["tabular-causal"] == "shown"
    noise = record["tabular"]["noise"]
    assert noise["p_value"] == pytest.approx(0.001)
    assert noise["cases"] == 60
    assert 0 < noise["same_row"]["value"] < 0.4  # 1 - 0.95³ is 14 %
    (folder,) = Path("reports").glob("2*")
    assert "answers that differ to one and the same row" in (folder / "report.html").read_text(encoding="utf-8")


def test_one_answer_a_row_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    record = searched("planted", capsys)
    assert verdicts(record)["tabular-causal"] == "not_determined"
    assert any("each row was asked once" in note for note in record["tabular"]["notes"])
    record = searched("steady", capsys)
    assert verdicts(record)["tabular-causal"] == "shown"
    assert "noise" not in record["tabular"]


def test_the_test_keeps_its_level() -> None:
    rng = np.random.default_rng(3)
    small = sum(permuted((rng.random((12, 6)) < 0.3).astype(int), 2, 2, rng) <= 0.1 for _ in range(60))
    assert small <= 14  # 6 are expected; more than 14 of 60 at 10 % have a probability below 0.1 %
    planted = np.tile([0, 0, 0, 1, 1, 1], (12, 1))
    assert permuted(planted, 2, 2, rng) == pytest.approx(0.001)
    assert permuted(np.full((3, 6), -1), 2, 0, rng) == 1.0


SCHEMA = Schema(
    columns=(
        Column(name="pay", kind="integer", codes=40),
        Column(name="sex", kind="integer", codes=2, protected=True),
        Column(name="race", kind="integer", codes=3, protected=True),
    )
)
BOTH = ("sex", "race")


def noise_of(wobble: float, seed: int = 1) -> Noise:
    """Forty cases, all six rows of each asked three times; the label goes by sex, and is wrong now and then."""
    rng = Random(seed)
    read = [
        ({"pay": pay, "sex": sex, "race": race}, [str((sex == 1) != (rng.random() < wobble)) for _ in range(3)])
        for pay, sex, race in product(range(40), range(2), range(3))
    ]
    return measure(read, SCHEMA, [("sex",), ("race",), BOTH], 7)


def test_each_set_of_columns_has_its_own_test() -> None:
    """A set without an effect is not called shown because another set has one."""
    noise = noise_of(0.1, seed=2)
    assert {columns: test.blocks for columns, test in noise.tests.items()} == {
        BOTH: 40,
        ("sex",): 40 * 3,
        ("race",): 40 * 2,
    }
    assert noise.tests[BOTH].p_value == noise.tests["sex",].p_value == pytest.approx(0.001)
    assert noise.tests["race",].p_value > 0.05
    assert noise.tests["sex",].p_adjusted == pytest.approx(0.003)
    findings = against_noise([shown("sex"), shown("race"), shown(*BOTH)], noise, 3, SCHEMA.protected)
    assert [f.verdict for f in findings] == ["shown", "not_determined", "shown"]
    assert "within 80 sets of rows that differ in race alone: p = " in findings[1].notes[0]
    assert noise.to_record(SCHEMA.protected)["cases"] == 40


def shown(*attributes: str) -> Finding:
    return Finding(id="T1", kind="claim", code="tabular-causal", model="m", attributes=attributes, verdict="shown")
