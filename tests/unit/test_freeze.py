"""Frozen plans: written, read, changed, deviated from."""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
import tomli_w

from auditor.cli.main import run
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan
from auditor.core.record import code_sha256
from auditor.core.types import digest
from auditor.run import freeze

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


def planned(**changes: Any) -> dict[str, Any]:
    """What a pipeline says about a plan, with hashes."""
    plan = Plan(task="sentiment", models=("vader",), delta=0.02, per_seed=None)
    return {
        "plan": plan.but(**changes).as_dict(),
        "fingerprints": {"vader": "vader-1"},
        "inputs": {
            "task_sha256": "aa",
            "seeds": {"n": 5, "sha256": "bb", "skipped": None},
            "suite": {"dictionaries": [{"attribute": "gender", "name": "gender", "sha256": "cc"}]},
        },
    }


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "not a frozen plan"),
        ("a = 1\n", "not a frozen plan"),
        ('kind = "frozen-plan"\nformat = 2\n', "newer version"),
        ('kind = "frozen-plan"\nformat = 1\n', "field frozen_at: this field is missing"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=message):
        freeze.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataFileError, match="not a frozen plan"):
        freeze.load(path)


def test_unknown_fields_and_settings_are_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    body = freeze.freeze(planned(), now=NOW)
    path.write_text(json.dumps(body | {"more": 1}), encoding="utf-8")
    with pytest.raises(DataFileError, match="field more: no such field"):
        freeze.load(path)
    body["plan"]["colour"] = "red"
    path.write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(DataFileError, match="unknown setting 'colour'"):
        freeze.load(path)


def test_a_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="audit plan freeze"):
        freeze.load(tmp_path / "none.json")


def test_every_deviation_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1\n")
    (tmp_path / "b.css").write_text("2\n")
    (tmp_path / "c.npz").write_text("weights have a hash of their own")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.py").write_text("left out")
    lines = sorted(
        f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in (("a/x.py", b"1\n"), ("b.css", b"2\n"))
    )
    told = code_sha256(tmp_path)
    assert told == {"sha256": hashlib.sha256("".join(lines).encode()).hexdigest(), "files": 2}


# -- ``audit plan``, end to end on a few embedded texts ---------------------------------------


def test_freeze_then_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    options = ["--task", "sentiment", "--model", "vader", "--limit", "4", "--delta", "0.1", "--by", "A. Person"]
    options += ["--groups", "age:old,gender:female/male", "--attributes", "age,gender"]
    assert run(["plan", "freeze", *options, "--output", str(file)]) == 0
    text = capsys.readouterr().out
    assert "audit run --plan" in text
    assert "Assumed: half of the answers are favourable" in text
    expected = freeze.load(file).expected
    assert freeze.load(file).plan.groups == ("age:old", "gender:female/male")
    assert expected["models"]["vader"]["calls"] > expected["cases"] > 0
    assert expected["power"]["claims"]
    assert run(["plan", "freeze", *options, "--output", str(file)]) == 2
    assert run(["plan", "show", str(file)]) == 0
    assert "A. Person" in capsys.readouterr().out
    out = tmp_path / "runs"
    again = ["run", "--plan", str(file), "--out", str(out), "--no-cache", "--format", "json"]
    assert run(again) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["frozen"]["sha256"] == freeze.load(file).sha256
    assert record["frozen"]["deviations"] == []
    assert record["frozen"]["expected"] == expected
    assert record["counts"]["cases"] == expected["cases"]
    assert record["provenance"]["code"] == code_sha256()
    assert {d["attribute"] for d in record["provenance"]["dictionaries"]} >= {"gender", "age"}
    assert run([*again, "--limit", "3"]) == 0
    fewer = json.loads(capsys.readouterr().out)
    assert "setting: limit" in {row["what"] for row in fewer["frozen"]["deviations"]}
    plan = json.loads((out / fewer["id"] / "plan.json").read_text(encoding="utf-8"))
    assert plan["frozen"]["deviations"] == fewer["frozen"]["deviations"]


def test_a_dry_run_asks_nothing_and_money_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path / "plan.json")
    small = ["run", "--plan", str(file), "--limit", "2"]
    assert run([*small, "--dry-run"]) == 0
    assert "Nothing was asked." in capsys.readouterr().out
    assert run([*small, "--dry-run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] > 0

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise click.Abort

    monkeypatch.setattr("auditor.models.may_cost", lambda spec: True)
    monkeypatch.setattr(click, "confirm", refuse)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    assert run(small) == 130
    assert not (tmp_path / "reports").exists()
    assert run([*small, "--yes"]) == 0
    monkeypatch.setattr(click, "confirm", lambda *args, **kwargs: True)
    assert run(["run", "--task", "sentiment", "--model", "vader", "--limit", "2"]) == 0
    first, second = (json.loads(path.read_text("utf-8")) for path in (tmp_path / "reports").glob("*/run.json"))
    assert first["counts"]["cases"] == second["counts"]["cases"] > 0, "what was counted is asked all the same"


def test_a_wrong_command_or_ending_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "thaw"]) == 2
    assert "Known: freeze, freeze tabular, show" in capsys.readouterr().err
    assert run(["plan", "freeze", "--output", str(tmp_path / "plan.yaml")]) == 2
    assert "must end in .json" in capsys.readouterr().err
