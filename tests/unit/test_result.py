"""The library: one implementation, async and sync, silence, reports, tables of answers, workers that change nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch

from auditor import Result, aaudit, audit, load
from auditor.cli import main as cli
from auditor.core.errors import ConfigError, MissingDependency, UserError
from auditor.run import rounds
from auditor.run.answer_table import COLUMNS
from auditor.run.audit import resume
from auditor.store.integrity import verify_folder
from auditor.store.journal import read

TEXTS = ["He plays a kind man.", "The British actor told his wife about it.", "She is the heroine."]


def flips(text: str) -> str:
    return "negative" if "She" in text or "her " in text else "positive"


flips.deterministic = True  # type: ignore[attr-defined]


def test_what_is_missing_or_wrong_is_named(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = audit("sentiment", model=flips, data=TEXTS, attributes=("gender",))
    with pytest.raises(MissingDependency, match=r'pip install "llm-bias-auditor\[pandas\]"'):
        result.to_pandas()
    with pytest.raises(UserError, match="no option 'replicate'"):
        audit("sentiment", model=flips, data=TEXTS, replicate=3)


def test_it_works_inside_a_running_event_loop_and_prints_nothing(capsys: Capture) -> None:
    async def notebook() -> tuple[Result, Result]:
        return audit("sentiment", model=flips, data=TEXTS), await aaudit("sentiment", model=flips, data=TEXTS)

    one, other = asyncio.run(notebook())
    assert one.record["estimates"] == other.record["estimates"]
    assert capsys.readouterr() == ("", "")


def test_several_models_make_one_comparison(tmp_path: Path) -> None:
    both = audit("sentiment", model=["vader", flips], data=TEXTS, attributes=("gender",), out=tmp_path)
    assert len(both.record["models"]) == 2
    assert {f.model for f in both.findings} == set(both.record["models"])
    again = load(both.path)
    assert again.record == both.record
    assert again.verdicts == both.verdicts
    assert again.to_html() == both.to_html()


def test_a_run_over_texts_from_python_can_be_gone_on_with(tmp_path: Path) -> None:
    """The texts stand in no file but the run folder's; odd characters come back as they were."""
    texts = ["The actress was great, said the woman.", "Her father \ud800 is a dull man.", "A man\u2028and a woman."]
    whole = audit("sentiment", model="reviews", data=texts, out=tmp_path / "whole", cache=False)
    cut = audit("sentiment", model="reviews", data=texts, out=tmp_path / "cut", cache=False, max_calls=4)
    assert (whole.complete, cut.complete) == (True, False)
    done = resume(cut.path, limits={"max_calls": 1000})
    assert done.complete
    assert done.record["counts"]["calls"] == whole.record["counts"]["calls"]
    assert done.record["estimates"] == whole.record["estimates"]


def run(**options: Any) -> tuple[str, list[dict[str, Any]]]:
    """Figures of a run without times and what names the engine, and what it wrote about its cases."""
    chosen: dict[str, Any] = {"model": "reviews", "limit": 16, "attributes": ("gender", "race"), "per_seed": 3}
    result = audit("sentiment", **chosen, **options)
    assert not verify_folder(result.path)
    record = {k: v for k, v in result.record.items() if k not in ("provenance", "id", "journal")}
    record["spec"] = {k: v for k, v in record["spec"].items() if k not in ("engine", "jobs", "out")}
    return json.dumps(record, sort_keys=True, default=str), list(read(result.path / "cases.jsonl"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    return run(out=str(tmp_path_factory.mktemp("alone")))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["2", "ray:2"])
def test_workers_make_the_same_run(alone: object, jobs: str, tmp_path: Path, monkeypatch: Patch) -> None:
    if jobs != "2":
        pytest.importorskip("ray", reason="the extra ray is not installed")
    monkeypatch.setattr(rounds, "CHUNK", 3)  # each gets several
    assert run(jobs=jobs, out=str(tmp_path)) == alone


def test_discarded_variants_are_asked_and_kept_apart() -> None:
    plain = audit("sentiment", model="reviews", limit=30, attributes=("gender",)).record
    both = audit("sentiment", model="reviews", limit=30, attributes=("gender",), test_discarded=True).record
    assert both["discarded"]["rows"][0]["estimate"]["n_variants"] > 0
    assert "discarded" not in plain
    assert both["estimates"] == plain["estimates"]
    assert [f["id"] for f in both["findings"]] == [f["id"] for f in plain["findings"]]
    assert both["counts"]["calls"] > plain["counts"]["calls"] or both["counts"]["cached"] > 0


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    """Each worker runs the script again, tries to start workers of its own and dies."""
    script = tmp_path / "script.py"
    script.write_text("from auditor import audit\naudit('sentiment', model='vader', limit=5, jobs=2)\n")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 1
    assert 'if __name__ == "__main__"' in done.stderr.splitlines()[-1]
    assert "BrokenProcessPool" not in done.stderr


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
def test_the_claims_come_again(name: str, tmp_path: Path, capsys: Capture) -> None:
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
