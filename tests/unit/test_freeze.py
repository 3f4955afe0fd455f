"""Frozen plans: written, read, changed, deviated from."""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import pytest
import tomli_w
from commands import Capture, Patch

from auditor.cli.main import run
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan
from auditor.core.record import code_sha256
from auditor.core.types import digest
from auditor.run import freeze

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


def planned() -> dict[str, Any]:
    """What a pipeline says about a plan, with hashes."""
    plan = Plan(task="sentiment", models=("vader",), delta=0.02, per_seed=None)
    suite = {"dictionaries": [{"attribute": "gender", "name": "gender", "sha256": "cc"}]}
    inputs = {"task_sha256": "aa", "seeds": {"n": 5, "sha256": "bb", "skipped": None}, "suite": suite}
    return {"plan": plan.as_dict(), "fingerprints": {"vader": "vader-1"}, "inputs": inputs}


def written(path: Path, **options: Any) -> Path:
    path.write_text(freeze.dumps(freeze.freeze(planned(), now=NOW, **options)), encoding="utf-8")
    return path


def test_what_is_frozen_comes_back(tmp_path: Path) -> None:
    found = freeze.load(written(tmp_path / "plan.json", by="A. Person", reason='two points, "because"\n'))
    assert found.plan == Plan.from_dict(planned()["plan"])
    assert found.plan.per_seed is None
    assert (found.frozen_at, found.frozen_by) == ("2026-11-22T09:00:00+00:00", "A. Person")
    assert found.reason == 'two points, "because"\n'
    assert freeze.deviations(found, planned()) == []


def test_a_plan_that_0_2_wrote_as_toml_is_read(tmp_path: Path) -> None:
    body = freeze.freeze(planned(), now=NOW)
    del body["sha256"], body["inputs"]["seeds"]["skipped"]
    body["unset"] = [name for name, value in body["plan"].items() if value is None]
    body["plan"] = {name: value for name, value in body["plan"].items() if value is not None}
    path = tmp_path / "plan.toml"
    path.write_text(tomli_w.dumps(body | {"sha256": digest(body)}), encoding="utf-8")
    found = freeze.load(path)
    assert found.plan == Plan.from_dict(planned()["plan"])
    assert freeze.deviations(found, planned()) == []


@pytest.mark.parametrize(("old", "new"), [("0.02", "0.2"), ("vader-1", "vader-2"), ("2026-11-22", "2026-01-01")])
def test_a_changed_file_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = written(tmp_path / "plan.json")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataFileError, match=r"changed after it was frozen.*audit plan freeze"):
        freeze.load(path)


BODY = freeze.freeze(planned(), now=NOW)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x", "not a frozen plan"), ("a = 1\n", "not a frozen plan"), (b"\xff\xfe", "not a frozen plan"),
        (None, "audit plan freeze"), ('kind = "frozen-plan"\nformat = 2\n', "newer version"),
        ('kind = "frozen-plan"\nformat = 1\n', "field frozen_at: this field is missing"),
        (BODY | {"more": 1}, "field more: no such field"),
        (BODY | {"plan": {**BODY["plan"], "colour": "red"}}, "unknown setting 'colour'"),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / ("plan.json" if isinstance(content, dict) else "plan.toml")
    if content is not None:
        text = json.dumps(content) if isinstance(content, dict) else content
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError if content is None else DataFileError, match=message):
        freeze.load(path)


def test_every_deviation_is_listed(tmp_path: Path, monkeypatch: Patch) -> None:
    found = freeze.load(written(tmp_path / "plan.json"))
    plan = freeze.with_flags(found, {"seed": 8, "models": (), "attributes": None, "concurrency": 2, "out": "x"})
    now = planned() | {"plan": plan.as_dict(), "fingerprints": {"vader": "vader-2"}}
    now["inputs"]["suite"]["dictionaries"][0]["sha256"] = "dd"
    monkeypatch.setattr(freeze, "code_sha256", lambda: {"sha256": "other", "files": 1})
    rows = {row["what"]: (row["planned"], row["actual"]) for row in freeze.deviations(found, now)}
    assert rows == {
        "setting: seed": (7, 8),
        "input: suite.dictionaries.gender.sha256": ("cc", "dd"),
        "model: vader": ("vader-1", "vader-2"),
        "code of the tool": (found.code_sha256, "other"),
    }


def test_limits_changed_when_resumed_are_deviations(tmp_path: Path) -> None:
    found = freeze.load(written(tmp_path / "plan.json"))
    stored = planned() | {"frozen": freeze.reference(found, planned())}
    plan = Plan.from_dict(stored["plan"])
    settings = {"kind": "tabular", "max_calls": 5, "options": {"limit": 3}, "trust_pickle": False}
    rows = {**settings, "schema_text": "", "frozen": {"sha256": "aa", "deviations": []}}
    for one, same, more in (
        (stored, plan, plan.but(max_calls=9)),
        (rows, settings, {**settings, "max_calls": 9, "trust_pickle": True}),
    ):
        assert freeze.of_run(one, same)["deviations"] == []
        changed = freeze.of_run(one, more)["deviations"]
        assert [(row["what"], row["actual"]) for row in changed] == [("setting: max_calls (when resumed)", 9)]
    assert freeze.of_run(planned(), Plan()) is None


def test_the_hash_of_the_code_is_that_of_its_files(tmp_path: Path) -> None:
    kept = {"a/x.py": b"1\n", "b.css": b"2\n"}
    left_out = {"a/weights.npz": b"these have a hash of their own", "__pycache__/x.py": b"compiled"}
    for name, content in (kept | left_out).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    lines = sorted(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in kept.items())
    assert code_sha256(tmp_path) == {"sha256": hashlib.sha256("".join(lines).encode()).hexdigest(), "files": 2}


def test_freeze_then_run(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "plan.json"
    for wrong, told in ((["thaw"], "Known: freeze, freeze tabular, show"), (["freeze", "--output", "x.yaml"], ".json")):
        assert run(["plan", *wrong]) == 2
        assert told in capsys.readouterr().err
    options = ["--task", "sentiment", "--model", "vader", "--limit", "4", "--delta", "0.1", "--by", "A. Person"]
    options += ["--groups", "age:old,gender:female/male", "--attributes", "age,gender"]
    assert run(["plan", "freeze", *options, "--output", str(file)]) == 0
    text = capsys.readouterr().out
    assert "audit run --plan" in text
    assert "Assumed: half of the answers are favourable" in text
    frozen = freeze.load(file)
    expected = frozen.expected
    assert frozen.plan.groups == ("age:old", "gender:female/male")
    assert expected["models"]["vader"]["calls"] > expected["cases"] > 0
    assert expected["power"]["claims"]
    assert run(["plan", "freeze", *options, "--output", str(file)]) == 2
    assert run(["plan", "show", str(file)]) == 0
    assert "A. Person" in capsys.readouterr().out
    out = tmp_path / "runs"
    again = ["run", "--plan", str(file), "--out", str(out), "--no-cache", "--format", "json"]
    assert run(again) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["frozen"] == {**record["frozen"], "sha256": frozen.sha256, "deviations": [], "expected": expected}
    assert record["counts"]["cases"] == expected["cases"]
    assert record["provenance"]["code"] == code_sha256()
    assert {d["attribute"] for d in record["provenance"]["dictionaries"]} >= {"gender", "age"}
    assert run([*again, "--limit", "3"]) == 0
    fewer = json.loads(capsys.readouterr().out)
    assert "setting: limit" in {row["what"] for row in fewer["frozen"]["deviations"]}
    plan = json.loads((out / fewer["id"] / "plan.json").read_text(encoding="utf-8"))
    assert plan["frozen"]["deviations"] == fewer["frozen"]["deviations"]


def test_a_dry_run_asks_nothing_and_money_is_asked_for(tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path / "plan.json")
    small = ["run", "--plan", str(file), "--limit", "2"]
    assert run([*small, "--dry-run"]) == 0
    assert "Nothing was asked." in capsys.readouterr().out
    assert run([*small, "--dry-run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] > 0

    monkeypatch.setattr("auditor.models.may_cost", lambda spec: True)
    monkeypatch.setattr(click, "confirm", Mock(side_effect=click.Abort))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    assert run(small) == 130
    assert not (tmp_path / "reports").exists()
    assert run([*small, "--yes"]) == 0
    monkeypatch.setattr(click, "confirm", Mock(return_value=True))
    assert run(["run", "--task", "sentiment", "--model", "vader", "--limit", "2"]) == 0
    first, second = (json.loads(path.read_text("utf-8")) for path in (tmp_path / "reports").glob("*/run.json"))
    assert first["counts"]["cases"] == second["counts"]["cases"] > 0, "what was counted is asked all the same"
