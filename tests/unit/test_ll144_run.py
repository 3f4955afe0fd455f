"""Run folders of ``audit ll144 --out DIR``: record, hashes, every format or a clear refusal."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path

import jsonschema
import pytest
import run_schema

from auditor.cli import main

HEAD = "sex,race,n,selected\n"
BEFORE = HEAD + "Male,White,100,50\nFemale,White,90,36\nMale,Asian,40,20\nFemale,Asian,30,15\n"
AFTER = HEAD + "Male,White,100,50\nFemale,White,90,18\nMale,Asian,40,20\nFemale,Asian,30,15\n"
FORMATS = ("html", "json", "csv", "ll144", "eu-ai-act", "nist-ai-rmf", "ai-verify")
SUFFIX = {"ll144": ".ll144.html", "eu-ai-act": ".eu-ai-act.html", "nist-ai-rmf": ".nist-ai-rmf.html"}


def call(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = main.run([str(a) for a in args])
    done = capsys.readouterr()
    return code, done.out, " ".join(done.err.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("before.csv").write_text(BEFORE)
    Path("after.csv").write_text(AFTER)
    return make(capsys, "before.csv")


def make(capsys: pytest.CaptureFixture[str], file: str, *more: str) -> Path:
    known = set(Path("runs").glob("2*"))
    code, out, err = call(capsys, "ll144", "--counts", file, "--source", "Tool 3", "--out", "runs", *more)
    assert code == 0, err
    assert out.startswith("Rates and impact ratios")
    (made,) = set(Path("runs").glob("2*")) - known
    assert err.startswith(f"Report: {made}/report.html Head: ")
    return made


def test_the_record_is_of_the_family_of_all_runs(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(run_schema.run_schema()).validate(record)
    assert (record["id"], record["status"], record["kind"]) == (folder.name, "complete", "ll144")
    told = record["provenance"]["outcomes"]
    assert told["sha256"] == hashlib.sha256(BEFORE.encode()).hexdigest() == record["data"]["sha256"]
    assert record["provenance"]["code"]["sha256"]
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    assert plan["plan"]["settings"]["source"] == "Tool 3" == record["spec"]["settings"]["source"]
    assert plan["inputs"]["outcomes"] == told
    assert (folder / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_verify_sees_what_was_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "verify", folder)
    assert code == 0
    assert "before.csv is the file of outcomes that was read." in out.splitlines()
    assert "every line" not in out
    assert "nothing to check: cases.jsonl, prompts.jsonl, responses.jsonl, verdicts.jsonl." in out
    assert "run.json: the SHA-256 is that in runs.jsonl." in out
    register = Path("runs/runs.jsonl").read_bytes()
    Path("runs/runs.jsonl").unlink()
    out = call(capsys, "verify", folder)[1]
    assert "run.json: not checked: no runs.jsonl" in out
    assert "plan.json: the SHA-256 is that in run.json." in out
    Path("runs/runs.jsonl").write_bytes(register)
    Path("before.csv").write_text(AFTER)
    assert "before.csv is NOT the file" in call(capsys, "verify", folder)[1]
    Path("before.csv").unlink()
    assert "is not at hand here" in call(capsys, "verify", folder)[1]
    text = (folder / "run.json").read_text("utf-8")
    (folder / "run.json").write_text(text.replace('"x": 50', '"x": 60'), encoding="utf-8")
    code, out, _ = call(capsys, "verify", folder)
    assert code == 1
    assert "run.json" in out
    (folder / "run.json").write_text(text, encoding="utf-8")
    plan = (folder / "plan.json").read_text("utf-8")
    (folder / "plan.json").write_text(plan.replace("Tool 3", "Tool 4"), encoding="utf-8")
    assert call(capsys, "verify", folder)[0] == 1


def test_every_format_that_makes_sense(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "report", folder, "--format", ",".join(FORMATS))
    assert code == 0, err
    assert len(out.splitlines()) == len(FORMATS)
    for line in out.splitlines():
        assert Path(line).stat().st_size > 500
    page = (folder / "report.ll144.html").read_text("utf-8")
    assert folder.name in page
    code, out, _ = call(capsys, "report", folder)
    assert (code, out.splitlines()[0]) == (0, "Rates and impact ratios by category")


def test_the_csv_holds_the_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "report", folder, "--format", "csv", "--out", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    female = next(r for r in rows if (r["table"], r["category"]) == ("sex", "Female"))
    assert (int(female["n"]), int(female["x"]), female["impact_ratio_exact"]) == (120, 51, "17/20")
    assert float(female["rate"]) == 51 / 120
    assert len(rows) == 2 + 7 + 14


@pytest.mark.parametrize(
    "words", [["show", "F1"], ["show", "F1", "--again"], ["resume"], ["augment", "--out", "x"]], ids=" ".join
)
def test_what_needs_a_model_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, _, err = call(capsys, words[0], folder, *words[1:])
    assert code == 2
    assert "no model was asked anything" in err


def test_tables_of_outcomes_are_not_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "compare", folder, make(capsys, "after.csv"))
    assert code == 2
    assert "audit compare is for runs of a model" in err


def test_outcomes_of_people_beside_a_run_over_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{'fm'[i % 2]},{20 + i % 40},{('good', 'bad')[i % 2]}" for i in range(120)]
    Path("rows.csv").write_text("\n".join(["sex,age,credit", *rows, ""]))
    Path("by_sex.py").write_text("def decide(rows):\n    return ['good' if r[0] == 'f' else 'bad' for r in rows]\n")
    people = [f"{('Female', 'Male')[i % 2]},{('White', 'Asian')[i % 3 % 2]},{i % 5 % 2}" for i in range(300)]
    Path("people.csv").write_text("\n".join(["sex,race,advanced", *people, ""]))
    assert (
        main.run(["tabular", "schema", "rows.csv", "--target", "credit", "--protected", "sex", "--out", "s.yaml"]) == 0
    )
    asked = ["--data", "rows.csv", "--schema", "s.yaml", "--model", "python:by_sex:decide", "--yes", "--out", "rows"]
    assert main.run(["tabular", *asked]) == 0
    path = next(p.parent for p in Path("rows").glob("*/run.json"))
    table = ["--data", "people.csv", "--sex", "sex", "--race", "race", "--selected", "advanced", "--source", "x"]
    assert main.run(["ll144", *table, "--out", str(path / "ll144.json")]) == 0
    capsys.readouterr()
    for name in ("ll144", "eu-ai-act"):
        assert main.run(["report", str(path), "--format", name]) == 0, capsys.readouterr().err
        assert "Female" in (path / f"report.{name}.html").read_text(encoding="utf-8")
