"""Searches over rows: frozen plans, what is expected of them, rules, hashes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.cli.main import run as audit
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.record import code_sha256
from auditor.report.planned import lines
from auditor.run import freeze
from auditor.tables.tabular_run import load_frozen

MODULE = """
import numpy as np
def by_sex(rows):
    return (rows[:, 0] + 2 * rows[:, 1] >= 4).astype(int)
def never(rows):
    return np.zeros(len(rows), int)
def both(rows):
    return ((rows[:, 0] == 5) & (rows[:, 1] == 1)).astype(int)
def asked(rows):
    raise AssertionError("the model was asked")
"""
BASE = ("--data", "data.csv", "--target", "y", "--protected", "sex")
BY_SEX = (*BASE, "--model", "python:frozen_rows:by_sex")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    rows = np.stack([rng.integers(0, 6, 60), rng.integers(0, 2, 60), rng.integers(0, 9, 60)], axis=1)
    y = (rows[:, 0] + 2 * rows[:, 1] >= 4).astype(int)
    table = [[*r, v] for r, v in zip(rows.tolist(), y.tolist(), strict=True)]
    text = "\n".join(["x,sex,z,y", *(",".join(map(str, line)) for line in table)])
    (tmp_path / "data.csv").write_text(text + "\n", encoding="utf-8")
    (tmp_path / "frozen_rows.py").write_text(MODULE, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("frozen_rows", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def folder() -> Path:
    return max(Path("reports").glob("2*"), key=lambda path: (path / "plan.json").stat().st_mtime_ns)


def record() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder() / "run.json").read_text(encoding="utf-8"))
    return value


def frozen(*extra: str, name: str = "plan.toml") -> int:
    return audit(["plan", "freeze", "tabular", *BY_SEX, *extra, "--output", name])


@pytest.mark.parametrize("name", ["plan.toml", "plan.json"])
def test_a_plan_of_rows_is_frozen_and_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert frozen("--delta", "0.1", "--by", "A. Person", "--reason", "one in ten", name=name) == 0
    text = capsys.readouterr().out
    assert f"audit tabular --plan {name}" in text
    assert "54 cases" in text  # 6 * 9 rests of rows
    found = load_frozen(Path(name))
    assert found.settings["method"] == "themis"
    assert found.inputs["rows"]["n"] == 60
    assert found.expected["evaluations"] == {"at_least": 229, "at_most": 229}  # 54 * 2, 60 * 2, and a trial
    assert audit(["plan", "show", name]) == 0
    assert "one in ten" in capsys.readouterr().out
    assert audit(["tabular", "--plan", name, "--full"]) == 0
    about = record()["frozen"]
    assert about["deviations"] == []
    assert about["sha256"] == found.sha256
    assert record()["counts"]["evaluations"] == 229
    text = capsys.readouterr().out
    assert "The frozen plan" in text
    assert "No deviation was recorded" in text
    assert "229 rows" in text


def test_what_deviates_is_in_every_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert frozen("--max-samples", "300") == 0
    with Path("data.csv").open("a", encoding="utf-8") as file:
        file.write("5,1,8,1\n")
    assert audit(["tabular", "--plan", "plan.toml", "--seed", "8", "--max-samples", "200"]) == 0
    found = {row["what"]: (row["planned"], row["actual"]) for row in record()["frozen"]["deviations"]}
    assert found["setting: seed"] == (7, 8)
    assert found["setting: options.max_samples"] == (300, 200)
    assert found["input: rows.n"] == (60, 61)
    assert "input: rows.sha256" in found
    assert "setting: options.enumerate" not in found
    captured = capsys.readouterr()
    assert "deviation from the frozen plan: setting: seed" in captured.err
    assert json.loads((folder() / "plan.json").read_text(encoding="utf-8"))["frozen"] == record()["frozen"]
    names = "md,html,junit,eu-ai-act,github"
    assert audit(["report", str(folder()), "--format", names]) == 0
    capsys.readouterr()
    for file in ("report.md", "report.html", "report.xml", "report.eu-ai-act.html", "summary.md"):
        shown = (folder() / file).read_text(encoding="utf-8").replace("\\_", "_")
        assert "setting: options.max_samples" in shown, file
        assert record()["frozen"]["sha256"] in shown, file


def test_freezing_and_the_dry_run_ask_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    base = [*BASE, "--model", "python:frozen_rows:asked"]
    assert audit(["tabular", *base, "--dry-run"]) == 0
    assert "Nothing was asked." in capsys.readouterr().out
    assert audit(["tabular", *base, "--dry-run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["combinations"] == 2
    assert audit(["plan", "freeze", "tabular", *base, "--output", "plan.toml"]) == 0
    assert audit(["tabular", "--plan", "plan.toml", "--dry-run"]) == 0
    assert not Path("reports").exists()


def test_plans_of_the_other_kind_and_changed_ones_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert frozen() == 0
    assert frozen() == 2
    assert "exists already" in capsys.readouterr().err
    assert audit(["run", "--plan", "plan.toml"]) == 2
    assert "audit tabular --plan plan.toml" in capsys.readouterr().err
    texts = freeze.freeze({"plan": {"task": "sentiment"}, "inputs": {}, "fingerprints": {}})
    Path("texts.json").write_text(freeze.dumps(texts, ".json"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"audit run --plan texts\.json"):
        load_frozen(Path("texts.json"))
    body = freeze.freeze({"plan": {"kind": "tabular", "colour": "red"}, "inputs": {}, "fingerprints": {}})
    Path("more.json").write_text(freeze.dumps(body, ".json"), encoding="utf-8")
    with pytest.raises(DataFileError, match="unknown setting 'colour'"):
        load_frozen(Path("more.json"))
    text = Path("plan.toml").read_text(encoding="utf-8")
    Path("plan.toml").write_text(text.replace("seed = 7", "seed = 8"), encoding="utf-8")
    with pytest.raises(DataFileError, match="changed after it was frozen"):
        load_frozen(Path("plan.toml"))


def test_limits_and_directed_searches_say_what_is_known() -> None:
    assert frozen("--max-evaluations", "40", "--max-samples", "10000") == 0
    expected = load_frozen(Path("plan.toml")).expected
    assert expected["cases"] == {"at_least": 20, "at_most": 20}
    assert expected["evaluations"]["at_most"] == 40
    assert expected["effect"]["n"] == 20
    assert frozen("--method", "sg", name="sg.toml") == 0
    told = load_frozen(Path("sg.toml")).expected
    assert told["effect_reason"].startswith("the cases are searched for")
    assert "no rate" in " ".join(lines(told))
    assert "Limits: max calls 2,000,000, max cost 2.5." in lines(
        {**told, "limits": {"max_calls": 2_000_000, "max_cost": 2.5}}
    )
    assert frozen("--theta", "0.75", name="s.toml") == 0
    told = load_frozen(Path("s.toml")).expected
    tried = 1  # before the search
    assert told["cases"]["at_most"] * told["combinations"] + tried == told["evaluations"]["at_most"]
    options = ("--method", "aequitas", "--set", "generated=30", "--set", "trials=0")
    assert frozen(*options, name="a.toml") == 0
    assert load_frozen(Path("a.toml")).expected["cases"] == {"at_least": 1, "at_most": 30}


@pytest.mark.parametrize(
    ("rule", "code"), [("shown", 1), ("net(sex) > 30%", 1), ("net(sex) > 90%, excess(sex) > 90%", 0)]
)
def test_rules_set_the_exit_code(rule: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(["tabular", *BY_SEX, "--fail-on", rule]) == code
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("--fail-on:")]
    assert line.startswith(f"--fail-on: {'holds' if code else 'does not hold'}: {rule.partition(',')[0]}")
    assert audit(["report", str(folder()), "--fail-on", rule]) == code


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--fail-on", "net(sx) > 2%"), "'sx': no such attribute in this run. Did you mean 'sex'?"),
        (("--method", "sg", "--fail-on", "shown, excess(sex) > 2%"), "does not go with --method sg"),
        (("--method", "aequitas", "--fail-on", "net(sex) > 2%"), "does not go with --method aequitas"),
    ],
)
def test_rules_that_cannot_apply_are_told(
    extra: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(["tabular", *BY_SEX, *extra]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_hashes_of_plan_code_and_files_are_recorded_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(["tabular", *BY_SEX, "--max-samples", "10000"]) == 0
    told = record()["provenance"]
    assert told["code"] == code_sha256()
    assert told["rows"]["sha256"] == __import__("hashlib").sha256(Path("data.csv").read_bytes()).hexdigest()
    assert set(told["files"]) == {"schema.yaml", "finds.csv", "pairs.csv", "votes.npz"}
    capsys.readouterr()
    assert audit(["verify", str(folder())]) == 0
    assert "was that which is installed here" in capsys.readouterr().out
    path = folder() / "pairs.csv"
    kept = path.read_bytes()
    path.write_bytes(kept + b"\n")
    assert audit(["verify", str(folder())]) == 1
    assert "pairs.csv" in capsys.readouterr().out
    path.unlink()
    assert audit(["verify", str(folder())]) == 1
    path.write_bytes(kept)
    assert audit(["verify", str(folder())]) == 0
    plan = folder() / "plan.json"
    (folder().parent / "runs.jsonl").unlink()  # without the register only the record names the plan
    plan.write_text(plan.read_text(encoding="utf-8").replace('"seed": 7', '"seed": 8'), encoding="utf-8")
    capsys.readouterr()
    assert audit(["verify", str(folder())]) == 1
    assert "plan.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--delta", "150"), "--delta is a number of percentage points (2), or a share"),
        (("--slices", "3"), "--slices was removed in 0.3; run audit tabular on the rows"),
        (("--set", "profile=x.csv"), "The option profile of --method themis was removed in 0.3; give rows with --data"),
        (("--set", "max_samples=many"), "must be a valid integer"),
        (("--set", "nope=1"), "themis has no option 'nope'"),
    ],
)
def test_slips_are_told_before_a_run_folder_is_made(
    extra: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(["tabular", *BY_SEX, *extra]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("reports").exists()


def test_one_finding_is_shown_and_commands_for_texts_refuse_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(["tabular", *BY_SEX]) == 0
    capsys.readouterr()
    run = str(folder())
    assert audit(["show", run, "T3"]) == 0
    text = capsys.readouterr().out
    assert "33.33 % (exact)" in text
    assert "sex: 0 → 1" in text
    assert audit(["show", run, "T99"]) == 2
    assert "unknown finding 'T99'" in capsys.readouterr().err
    assert audit(["show", run, "T1", "--again"]) == 2
    assert "is a search over rows of a table" in " ".join(capsys.readouterr().err.split())
