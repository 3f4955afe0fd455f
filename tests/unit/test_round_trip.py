"""A run that was written to a table of answers and imported again has the same claims, to the last digit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from auditor import audit
from auditor.cli import main as cli
from auditor.core.errors import ConfigError
from auditor.run.answer_table import COLUMNS
from auditor.run.result import load


def number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def scored(text: str) -> str:
    return str(40_000 + number(text) % 9_000 + (500 if "she" in text.lower().split() else 0))


def labelled(text: str) -> str:
    return ("invite", "reject", "I would rather not say")[min(number(text) % 5 // 2, 2)]


def graded(text: str) -> dict[str, float]:
    return {"positive": number(text) % 997 / 997, "negative": 1 - number(text) % 997 / 997}


THINGS = ("house", "garden", "shop", "letter", "contract", "boat")


def several(text: str) -> list[str]:
    return [label for i, label in enumerate(("2", "3", "5")) if number(text) >> i & 1]


def written(text: str) -> str:
    said = "She is a warm and caring colleague. " if " she " in text.lower() else "He leads with great confidence. "
    return said * (2 + sum(map(ord, text)) % 3)


APPEALS = [f"{who} lost the case about the {what}." for who in ("My mother", "His uncle") for what in THINGS]
WHO = ("My mother", "His uncle", "Her brother", "The boy", "This lady", "A father", "One girl", "The actor")
CASES: dict[str, dict[str, Any]] = {
    "labels": {"task": "hiring", "model": labelled, "limit": 10, "replicates": 2},
    "numbers": {"task": "salary", "model": scored, "limit": 12},
    "several labels": {"task": "ecthr", "model": several, "data": APPEALS},
    "texts of one source": {
        "task": "hiring",
        "model": labelled,
        "data": [{"text": f"{who} ran the {what} for six years.", "who": who} for who in WHO for what in THINGS],
        "columns": {"source": "who"},
    },
    "texts": {"task": "letter", "model": written, "limit": 20},
    "log odds": {"task": "sentiment", "model": [graded, "vader"], "limit": 12},
}


@pytest.mark.parametrize("name", CASES)
def test_the_claims_come_again(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = audit(**CASES[name], attributes="gender", per_seed=3, out=tmp_path / "runs")
    assert len(result.record["claims"]) > 2
    file = str(tmp_path / "a.csv")
    assert cli.run(["report", str(result.path), "--format", "answers", "--out", file]) == 0
    capsys.readouterr()
    assert cli.run(["import", file, "--out", str(tmp_path / "again"), "--format", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert any(c["estimate"] for c in again["claims"])
    assert again["claims"] == result.record["claims"]
    if name == "texts of one source":
        assert max(c["texts"] for c in again["claims"]) <= len(WHO) < len(WHO) * len(THINGS)


def test_a_frame_holds_what_was_asked_and_said() -> None:
    result = audit(model=graded, limit=6, attributes="gender", out=None)
    frame = result.to_pandas()
    assert list(frame) == list(COLUMNS)
    edited = frame[frame.arm == "edited"].iloc[0]
    assert edited.text != edited.changed_text
    assert edited.words_in.split(" + ")[0] in edited.changed_text.lower()
    assert edited.groups.startswith("gender: ")
    assert edited.answer in ("positive", "negative")
    assert edited.outcome in ("pass", "violation")
    assert set(frame.arm) >= {"original", "edited", "placebo"}
    assert str(result) == result.to_text()


def test_imported_answers_have_no_texts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "text_id,gender,score\n" + "".join(f"t{n},female,{n}\nt{n},male,7\n" for n in range(9))
    )
    assert cli.run(["import", str(tmp_path / "a.csv"), "--out", str(tmp_path / "runs")]) == 0
    with pytest.raises(ConfigError, match="holds no texts"):
        load(next((tmp_path / "runs").glob("2*"))).to_pandas()
