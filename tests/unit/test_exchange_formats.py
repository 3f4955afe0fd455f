"""Markdown, CSV, JUnit, GitHub, JSON: structure, schemas, the command."""

from __future__ import annotations

import datetime
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import run_schema
import specimen as SPECIMEN

from auditor import audit
from auditor.cli.main import run as cli
from auditor.core import waivers
from auditor.core.record import read
from auditor.core.registry import RENDERERS
from auditor.core.waivers import Waiver
from auditor.report.exchange import MAX_ANNOTATIONS, workflow_commands
from auditor.report.markdown import MAX_BYTES, GithubSummary

DAY = datetime.date(2026, 5, 1)
WAIVER = Waiver(finding="rate/reviews/bare/race", reason="r", owner="o", expires=datetime.date(2027, 1, 1))


def records() -> dict[str, dict[str, Any]]:
    waived = waivers.apply(read(SPECIMEN.record()), [WAIVER], DAY).raw
    return {"full": waived, "partial": SPECIMEN.partial(), "quiet": SPECIMEN.quiet()}


RECORDS = records()


def made(name: str, record: dict[str, Any], **options: Any) -> Any:
    return RENDERERS.create(name, **options).render(read(record), SPECIMEN.evidence())


@pytest.mark.parametrize("name", RECORDS)
def test_junit_counts_are_those_of_its_cases(name: str) -> None:
    root = ET.fromstring(made("junit", RECORDS[name]))
    assert int(root.get("tests", "")) == len(root.findall(".//testcase")) == len(RECORDS[name]["findings"]) + 1
    assert int(root.get("failures", "")) == len(root.findall(".//failure"))
    assert int(root.get("skipped", "")) == len(root.findall(".//skipped"))
    assert int(root.get("errors", "")) == len(root.findall(".//error")) == int(name == "partial")
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        assert int(suite.get("failures", "")) == len(suite.findall(".//failure"))


def test_github_marks_shown_findings_that_are_not_waived() -> None:
    lines = workflow_commands(read(RECORDS["full"]))
    assert [line.split("::")[1].split()[0] for line in lines] == ["warning"] * 3
    assert not any("F003" in line for line in lines)
    assert workflow_commands(read(RECORDS["partial"]))[0].startswith("::error title=Audit undecided::Partial run")
    many = SPECIMEN.record()
    many["findings"] = [dict(many["findings"][0], id=f"F{i}") for i in range(40)]
    assert len(workflow_commands(read(many))) == MAX_ANNOTATIONS
    assert "31 further findings" in workflow_commands(read(many))[-1]


def test_github_summary_fits() -> None:
    record = SPECIMEN.record()
    record["findings"] = [dict(record["findings"][0], id=f"F{i}", model="é" * 800) for i in range(900)]
    text = GithubSummary().render(read(record))
    assert len(text.encode()) <= MAX_BYTES + 100
    assert "The rest was cut off" in text


def test_schema_is_one_and_takes_real_records() -> None:
    published = run_schema.run_schema()
    jsonschema.Draft202012Validator.check_schema(published)
    validator = jsonschema.Draft202012Validator(published)
    for record in RECORDS.values():
        validator.validate({"status_reason": "", **json.loads(json.dumps(record))})
    real = audit("sentiment", model="reviews", limit=12, out=None).record
    validator.validate(json.loads(json.dumps(real)))
    assert not validator.is_valid({**real, "findings": [{"id": "F1"}]})
    assert not validator.is_valid({**real, "format_version": 99})
    estimate = {**real["estimates"][0], "estimate": {"value": 0.1}}
    assert not validator.is_valid({**real, "estimates": [estimate]})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def loud(text: str) -> str:
        return "negative" if "She" in text else "positive"

    loud.deterministic = True  # type: ignore[attr-defined]
    texts = [f"She is a {r} in the film." for r in ("nurse", "clerk", "pilot", "baker", "teacher", "writer", "judge")]
    path = audit("sentiment", model=loud, data=texts, attributes=("gender",), out=tmp_path_factory.mktemp("runs")).path
    assert path is not None
    return path


def test_every_format_of_a_real_run(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert cli(["report", str(run), "--format", "md,csv,junit,sarif,json,github"]) == 0
    for name in ("report.md", "report.csv", "report.xml", "report.sarif", "report.json", "summary.md"):
        assert (run / name).stat().st_size > 200, name
    capsys.readouterr()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    (tmp_path / "step.md").write_text("before\n")
    assert cli(["report", str(run), "--format", "github"]) == 0
    assert (tmp_path / "step.md").read_text("utf-8").startswith("before\n# Bias test report")
    out = capsys.readouterr().out
    assert all(line.startswith("::warning ") for line in out.splitlines())
    assert cli(["report", str(run), "--format", "csv", "--output", "-"]) == 0
    assert capsys.readouterr().out.startswith("row,id,key")
    assert cli(["report", str(run), "--format", "wat"]) == 2


def test_fail_on_and_waivers_of_the_report(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    base = ["report", str(run), "--format", "csv", "--out", "-"]
    assert cli([*base, "--fail-on", "shown(gender)"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("--fail-on: holds: shown(gender) (F0")
    assert cli([*base, "--fail-on", "shown(gendr)"]) == 2
    assert "Did you mean 'gender'?" in capsys.readouterr().err
    assert cli([*base, "--fail-on", "shown(gender"]) == 2
    assert "    shown(gender\n         ^" in capsys.readouterr().err
    (tmp_path / "waivers.toml").write_text(
        '[[waiver]]\nfinding = "*/gender*"\nreason = "Known."\nowner = "A"\nexpires = 2999-01-01\n'
    )
    assert cli([*base, "--fail-on", "shown, net(gender) > 2%"]) == 3  # waived, and the control was not seen
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("--fail-on: cannot be judged: ")
    assert cli(["report", str(run)]) == 0
    assert re.search(r"waivers: \d+ findings? waived", capsys.readouterr().out)
    assert cli(["report", str(run), "--full"]) == 0
    assert "reason: Known." in capsys.readouterr().out
    record = json.loads((run / "run.json").read_text("utf-8"))
    claim = next(f["id"] for f in record["findings"] if f["verdict"] == "shown")
    assert cli(["show", str(run), claim]) == 0
    assert "Waived until 2999-01-01 by A; reason: Known." in capsys.readouterr().out
    (tmp_path / "waivers.toml").write_text('[[waiver]]\nfinding = "a/b"\n')
    assert cli(base) == 2
    assert "waivers.toml, line 1: field waiver.0.reason: this field is missing" in capsys.readouterr().err


def test_incomplete_beats_findings(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    monkeypatch.chdir(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    record = json.loads((copy / "run.json").read_text("utf-8"))
    record |= {"status": "partial", "status_reason": "a budget"}
    (copy / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert cli(["report", str(copy), "--format", "csv", "--out", "-", "--fail-on", "shown"]) == 3
    assert "--fail-on: incomplete: a budget" in capsys.readouterr().err
    assert cli(["report", str(copy), "--format", "csv", "--out", "-"]) == 0
