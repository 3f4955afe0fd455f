"""Markdown, CSV, JUnit, GitHub, JSON: structure, schemas, the command."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest
import run_schema
import specimen as SPECIMEN
from commands import Capture, both, said

from auditor import audit
from auditor.core import waivers
from auditor.core.record import read
from auditor.core.waivers import Waiver
from auditor.report.exchange import MAX_ANNOTATIONS, workflow_commands
from auditor.report.markdown import MAX_BYTES, GithubSummary
from auditor.testing.planted import Planted

WAIVER = Waiver(finding="rate/reviews/bare/race", reason="r", owner="o", expires=datetime.date(2027, 1, 1))
WAIVED = waivers.apply(read(SPECIMEN.record()), [WAIVER], datetime.date(2026, 5, 1)).raw
RECORDS = {"full": WAIVED, "partial": SPECIMEN.partial(), "quiet": SPECIMEN.quiet()}


def test_github_gets_no_more_than_it_shows() -> None:
    assert workflow_commands(read(SPECIMEN.partial()))[0].startswith("::error title=Audit undecided::Partial run")
    many = SPECIMEN.record()
    many["findings"] = [dict(many["findings"][0], id=f"F{i}") for i in range(40)]
    assert len(workflow_commands(read(many))) == MAX_ANNOTATIONS
    assert "31 further findings" in workflow_commands(read(many))[-1]
    many["findings"] = [dict(many["findings"][0], id=f"F{i}", model="é" * 800) for i in range(900)]
    text = GithubSummary().render(read(many))
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
    loud = Planted(base="constant", additive={"she": 1.0})
    texts = [f"She is a {r} in the film." for r in ("nurse", "clerk", "pilot", "baker", "teacher", "writer", "judge")]
    path = audit("sentiment", model=loud, data=texts, attributes=("gender",), out=tmp_path_factory.mktemp("runs")).path
    assert path is not None
    return path


def test_every_format_of_a_real_run(run: Path, place: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert said(capsys, f"report {run} --format md,csv,junit,sarif,json,github")[0] == 0
    for name in ("report.md", "report.csv", "report.xml", "report.sarif", "report.json", "summary.md"):
        assert (run / name).stat().st_size > 200, name
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place / "step.md"))
    (place / "step.md").write_text("before\n")
    code, out, _ = both(capsys, f"report {run} --format github")
    assert (code, {line.split()[0] for line in out.splitlines()}) == (0, {"::warning"})
    assert (place / "step.md").read_text("utf-8").startswith("before\n# Bias test report")
    assert both(capsys, f"report {run} --format csv --output -")[1].startswith("row,id,key")
    assert said(capsys, f"report {run} --format wat")[0] == 2


def test_waivers_of_the_folder_where_the_command_stands(run: Path, place: Path, capsys: Capture) -> None:
    report = f"report {run} --format csv --out -"
    code, _, err = both(capsys, f"{report} --fail-on shown(gender)")
    assert (code, err.startswith("--fail-on: holds: shown(gender) (F0")) == (1, True)
    waiver = '[[waiver]]\nfinding = "*/gender*"\nreason = "Known."\nowner = "A"\nexpires = 2999-01-01\n'
    (place / "waivers.toml").write_text(waiver)
    code, _, err = both(capsys, f"{report} --fail-on 'shown, net(gender) > 2%'")
    assert (code, err.startswith("--fail-on: cannot be judged: ")) == (3, True)  # waived; the control was not seen
    assert re.search(r"waivers: \d+ findings? waived", said(capsys, f"report {run}")[1])
    assert "reason: Known." in said(capsys, f"report {run} --full")[1]
    record = json.loads((run / "run.json").read_text("utf-8"))
    claim = next(f["id"] for f in record["findings"] if f["verdict"] == "shown")
    assert "Waived until 2999-01-01 by A; reason: Known." in said(capsys, f"show {run} {claim}")[1]
    (place / "waivers.toml").write_text('[[waiver]]\nfinding = "a/b"\n')
    code, told = said(capsys, report)
    assert (code, "waivers.toml, line 1: field waiver.0.reason: this field is missing" in told) == (2, True)


def test_incomplete_beats_findings(run: Path, place: Path, capsys: Capture) -> None:
    copy = shutil.copytree(run, place / "copy")
    record = json.loads((copy / "run.json").read_text("utf-8"))
    (copy / "run.json").write_text(json.dumps(record | {"status": "partial", "status_reason": "a budget"}))
    code, told = said(capsys, f"report {copy} --format csv --out - --fail-on shown")
    assert (code, "--fail-on: incomplete: a budget" in told) == (3, True)
    assert said(capsys, f"report {copy} --format csv --out -")[0] == 0
