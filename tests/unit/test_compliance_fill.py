"""What people fill in: the template, the file, and every form of a page."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import specimen as SPECIMEN

from auditor.cli import main
from auditor.core.errors import DataFileError
from auditor.core.record import head, read
from auditor.core.registry import PAGES, RENDERERS
from auditor.report.legal import fill, frameworks

OWN = {name: frameworks.load(name).fields for name in PAGES}
FILLED = """
format = 1
organisation = "Example <b>Ltd</b> | x"
purpose = "Whom to invite"
affected = "Applicants"

[signature]
name = "A. Person"
date = 2026-11-22
signed = "on paper"

[eu-ai-act]
annex_iii_point = "4(a)"

[[measures]]
finding = "F001"
measure = "no first names in the prompt"

[[measures]]
finding = "F002"
measure = ""
"""


@pytest.fixture
def filled(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "responsible.toml"
    path.write_text(FILLED, encoding="utf-8")
    return SPECIMEN.record() | {"responsible": fill.load(path, OWN)}


@pytest.mark.parametrize("form", ["", "-md", "-json"])
def test_every_form_holds_what_was_filled_in_and_marks_the_rest(filled: dict[str, Any], form: str) -> None:
    made = RENDERERS.create(f"eu-ai-act{form}").render(read(filled), SPECIMEN.evidence())
    for told in ("Whom to invite", "A. Person", "2026-11-22", "no first names in the prompt", "4(a)"):
        assert told in made
    if form == "-json":
        found = json.loads(made)["sections"]
        fields = {line["name"]: line["value"] for line in found["system"]["blocks"][-1]["lines"]}
        assert fields["organisation"] == "Example <b>Ltd</b> | x"
        assert fields["deployer"] is None
        filled_in = {"finding": "F001", "measure": "no first names in the prompt"}
        first = {fill.MEASURES[key]: value for key, value in filled_in.items()}
        assert found["response"]["blocks"][-1]["lines"][0] == dict.fromkeys(fill.MEASURES.values()) | first
    elif form == "-md":
        assert f"| {fill.FIELDS['deployer']} | **to be filled in** |" in made
        assert "<b>Ltd" not in made
        assert f"| {fill.FIELDS['purpose']} | Whom to invite |" in made
    else:
        assert "Example &lt;b&gt;Ltd&lt;/b&gt; | x" in made
        assert '<label for="field-deployer">' in made
        assert '<label for="field-purpose">' not in made
        labels, ids = re.findall(r'<label for="([^"]+)"', made), re.findall(r'<textarea id="([^"]+)"', made)
        assert labels == ids
        assert len(re.findall("<textarea ", made)) == len(ids) + len(re.findall("<textarea [^>]*aria-label", made))


@pytest.mark.parametrize("name", ["html", "markdown", "json"])
def test_reports_that_are_no_legal_page_hold_it_too(filled: dict[str, Any], name: str) -> None:
    made = RENDERERS.create(name).render(read(filled), SPECIMEN.evidence())
    for told in ("Whom to invite", "A. Person", "no first names in the prompt"):
        assert told in made
    assert (fill.TO_FILL in made) == (name != "json")
    bare = RENDERERS.create(name).render(read(SPECIMEN.record()), SPECIMEN.evidence())
    assert "Filled in by the people" not in bare
    assert head(filled) == head(SPECIMEN.record())


def sections(name: str, record: dict[str, Any]) -> dict[str, list[Any]]:
    """The blocks of each section of a page as data."""
    made = json.loads(RENDERERS.create(f"{name}-json").render(read(record), None))
    return {id: section["blocks"] for id, section in made["sections"].items()}


def levels(name: str, record: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The lines of the cross-reference by clause."""
    (table,) = (block for block in sections(name, record)["crosswalk"] if "table" in block)
    return {line["Clause"]: line for line in table["lines"]}


def test_levels_rise_with_what_was_filled_in(filled: dict[str, Any]) -> None:
    bare, level = levels("eu-ai-act", SPECIMEN.record()), "This report"
    assert bare["Annex IV(2)(g)"][level] == "input"
    assert bare["Annex IV(2)(g)"]["What it gives"].endswith(f"Lacking: {frameworks.NEEDS['dated']}.")
    assert levels("eu-ai-act", filled)["Annex IV(2)(g)"][level] == "direct evidence"
    assert bare["Art. 13(3)(b)(v)"][level] == "input"
    nist = levels("nist-ai-rmf", filled)
    assert nist["MEASURE 2.11"][level] == "input"  # the risk tolerance is missing
    assert "Risk tolerance" in nist["MEASURE 2.11"]["What it gives"]
    filled["responsible"]["pages"]["nist-ai-rmf"] = {"risk_tolerance": "two points"}
    assert levels("nist-ai-rmf", filled)["MEASURE 2.11"][level] == "direct evidence"
    assert nist["MEASURE 2.13"][level] == "input"
    rate = SPECIMEN.estimate(0.05, 0.01, 0.1, 100)
    filled["controls"] = dict(filled["controls"]) | {
        "placebo": {"m": {"gender": rate}},
        "noise_floor": {"m": {"declared": True}},
    }
    found = levels("nist-ai-rmf", filled)["MEASURE 2.13"]
    assert found[level] == "input"  # no person has read the variants
    assert "Lacking" not in found["What it gives"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("organisation = 'x'", "field format: this field is missing"),
        ("format = 1\nporpoise = 'x'", "line 2: field porpoise: no such field; did you mean purpose"),
        ("format = 1\npurpose = 3", "line 2: field purpose: "),
        ("format = 1\nsignature = 'x'", "field signature: "),
        ("format = 1\nmeasures = 'x'", "field measures: "),
        ("format = 1\n[eu-ai-act]\nscope = 'x'", "line 2: field eu-ai-act.scope: no such field"),
        ("format = 1\n[[measures]]\nwhat = 'x'", "field measures.0.what: no such field"),
        ("format = [", "no valid TOML"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "responsible.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=message):
        fill.load(path, OWN)
    with pytest.raises(DataFileError, match="no such file"):
        fill.load(tmp_path / "nowhere.toml", OWN)


def test_the_template_is_read_back_and_empty(tmp_path: Path) -> None:
    text = fill.template(OWN, [("F001", 'Women are "invited"\nless often')])
    assert tomllib.loads(text)["measures"][0]["finding"] == "F001"
    path = tmp_path / "responsible.toml"
    path.write_text(text, encoding="utf-8")
    assert fill.load(path, OWN) == {
        "source": "responsible.toml", "fields": {}, "signature": {}, "measures": [], "pages": {},
    }  # fmt: skip
    for name, own in OWN.items():
        assert own.keys() == tomllib.loads(text).get(name, {}).keys()


def test_the_command_prints_writes_and_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    people = "sex,race,n,selected\nMale,White,100,50\nFemale,White,90,20\n"
    Path("counts.csv").write_text(people)
    assert main.run(["ll144", "--counts", "counts.csv", "--out", "runs"]) == 0
    run = str(next(Path("runs").glob("2*")))
    capsys.readouterr()
    assert main.run(["report", run, "--write-fill", "-"]) == 0
    printed = capsys.readouterr().out
    assert main.run(["report", run, "--write-fill", "responsible.toml"]) == 0
    assert Path("responsible.toml").read_text(encoding="utf-8") == printed
    assert main.run(["report", run, "--write-fill", "responsible.toml"]) == 2
    Path("responsible.toml").write_text(
        printed.replace('auditor = ""', 'auditor = "B. Person, Audits Ltd"'), encoding="utf-8"
    )
    capsys.readouterr()
    asked = ["--fill", "responsible.toml", "--format", "ll144,ll144-md,ll144-json,json,html"]
    assert main.run(["report", run, *asked]) == 0
    files = capsys.readouterr().out.split()
    assert len(files) == 5
    for file in files:
        if not file.endswith("report.html"):  # tables for a reader: their draft names the auditor too
            assert "B. Person, Audits Ltd" in Path(file).read_text(encoding="utf-8"), file
