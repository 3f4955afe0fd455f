"""Compliance reports: frameworks, what a record is evidence for, what they refuse, and what people fill in."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import specimen as SPECIMEN
import test_compliance_golden as GOLDEN
import yaml
from commands import Capture, both, said

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import PAGES, RENDERERS
from auditor.core.record import head, read
from auditor.report.legal import facts, fill, frameworks
from auditor.report.legal.legal_page import Page

FORMATS = ("eu-ai-act", "nist-ai-rmf", "ai-verify")
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


def page(record: dict[str, Any], name: str = "eu-ai-act", evidence: Any = None) -> str:
    return str(RENDERERS.create(name).render(read(record), evidence))


def text(markup: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup.split("</style>")[-1])).replace("\u00a0", " ")


def section(markup: str, id: str) -> str:
    found = re.search(rf'<section aria-labelledby="{id}".*?(?=<section aria-labelledby=|</main>)', markup, re.DOTALL)
    assert found is not None
    return text(found.group())


def crossed(name: str, record: dict[str, Any], outcomes: dict[str, Any] | None = None) -> dict[str, Any]:
    about = read(record), None if outcomes is None else read(outcomes)
    found = frameworks.cross(frameworks.load(name), facts.known(*about), facts.absent(*about))
    return {c.clause.ref: c for c in found}


class TestFrameworks:
    @pytest.mark.parametrize("name", PAGES)
    def test_every_file_is_dated_and_every_clause_names_the_data_it_uses(self, name: str) -> None:
        found = frameworks.load(name)
        assert datetime.date(2026, 11, 21) <= found.consulted <= datetime.date(2026, 11, 22)
        assert found.clauses
        assert found.sources
        for clause in found.clauses:
            # What is given stands somewhere; what is not given stands nowhere.
            assert bool(clause.sections) == (clause.level != "not_covered" or clause.ref == "5-301(a)"), clause.ref
            assert clause.otherwise != "direct", clause.ref
            rests_on_people = frameworks.FILLED.issuperset(clause.sections) and clause.sections
            if rests_on_people and clause.level != "not_covered" and name != "ai-verify":
                assert clause.fields or {"measures", "mitigation", "dated"} & set(clause.needs), clause.ref
            if "grounds" in clause.sections:
                assert found.grounds, clause.ref
        if {"secondary", "general"} & {c.read for c in found.clauses}:
            assert re.search("secondary|not read|was read again", found.how), name

    @pytest.mark.parametrize("name", PAGES)
    def test_what_lacks_something_is_no_direct_evidence(self, name: str, filled: dict[str, Any]) -> None:
        filled["responsible"]["pages"]["nist-ai-rmf"] = {"risk_tolerance": "two points"}
        bare = (SPECIMEN.record(), GOLDEN.full(), GOLDEN.rows(), GOLDEN.people_record())
        for record in (*bare, *(one | {"responsible": filled["responsible"]} for one in bare)):
            made = Page(frameworks.load(name), read(record))
            assert not [c.clause.ref for c in made.crossings if c.level == "direct" and c.lacking]

    @pytest.mark.parametrize(
        ("whole", "clause", "message"),
        [
            ({"format": 2}, {}, "line 10: field format: "), ({"more": 1}, {}, "field more: no such field"),
            ({"title": 7}, {}, "field title: "), ({"consulted": "some day"}, {}, "field consulted: "),
            ({"id": "other"}, {}, "id must be the name of the file"),
            ({}, {"asks": 1}, "field clauses.0.asks: "), ({}, {"colour": "red"}, "field clauses.0.colour: no such field"),
            ({}, {"sections": ["nowhere"]}, "no section 'nowhere'"), ({}, {"needs": ["luck"]}, "no need 'luck'"),
            ({}, {"read": "by ear"}, "no way of reading"), ({}, {"level": "full"}, "clauses.0.level"),
        ],
    )  # fmt: skip
    def test_a_wrong_file_is_refused(
        self, tmp_path: Path, whole: dict[str, Any], clause: dict[str, Any], message: str
    ) -> None:
        good = {"ref": "1", "asks": "a", "level": "direct", "gives": "b", "sections": ["claims"], "read": "text"}
        file = {
            "format": 1, "id": "x", "title": "X", "within": "x", "text": "x", "consulted": "2026-11-21", "how": "read",
            "sources": {"a": "b"}, "notes": [], "not_this": [], "clauses": [good | clause],
        }  # fmt: skip
        (tmp_path / "x.yaml").write_text(yaml.safe_dump(file | whole), encoding="utf-8")
        with pytest.raises(DataFileError, match=message):
            frameworks.read(tmp_path / "x.yaml")


class TestPage:
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_section_is_there_and_every_link_arrives(self, name: str) -> None:
        made = page(SPECIMEN.record(), name, SPECIMEN.evidence())
        ids = re.findall(r'\sid="([^"]+)"', made)
        assert len(ids) == len(set(ids))
        assert set(frameworks.SECTIONS) - {"grounds"} <= set(ids)
        assert ("grounds" in ids) == bool(frameworks.load(name).grounds)
        assert set(re.findall(r'href="#([^"]+)"', made)) <= set(ids)
        assert set(re.findall(r'aria-labelledby="([\w-]+)"', made)) <= set(ids)

    def test_a_run_that_stopped_early_deviates_from_its_plan(self) -> None:
        made = page(SPECIMEN.partial())
        assert section(made, "plan").count("End of the run") == 1
        assert "stopped early" in section(made, "plan")
        assert "Not held: completeness" in section(made, "counterfactual")

    def test_treatment_and_impact_are_never_in_one_table(self, tmp_path: Path) -> None:
        (tmp_path / "ll144.json").write_text(json.dumps(GOLDEN.people_record()), encoding="utf-8")
        evidence = SPECIMEN.evidence()
        evidence.path = tmp_path
        made = page(SPECIMEN.record(), "eu-ai-act", evidence)
        both = section(made, "impact")
        assert "Black or African American" in both
        assert "nothing is computed across the two" in both
        for id in ("claims", "counterfactual", "intersections", "rows", "statistics"):
            told = section(made, id)
            assert "mpact ratio" not in told
            assert "Hispanic" not in told
        assert "same prompt" not in both.lower()
        # Every cell and every claim of the treatment part is what it is without the outcomes.
        alone = page(SPECIMEN.record(), "eu-ai-act", SPECIMEN.evidence())
        for id in ("claims", "controls", "counterfactual", "intersections", "evidence", "statistics"):
            assert section(made, id) == section(alone, id)


class TestLl144:
    def test_runs_of_texts_and_rows_rankings_and_wrong_files_are_refused(self, tmp_path: Path) -> None:
        for record, told in (
            (SPECIMEN.record(), r"outcomes of people who applied.*audit ll144 --data"),
            (GOLDEN.rows(), "audit ll144 --data"),
            (GOLDEN.people_record() | {"kind": "ranking"}, "test data that can never become"),
        ):
            with pytest.raises(ConfigError, match=told):
                page(record, "ll144")
        for content in ("{", "[]", '{"ll144": {}}'):
            (tmp_path / "ll144.json").write_text(content, encoding="utf-8")
            with pytest.raises(DataFileError, match=r"ll144\.json"):
                page(SPECIMEN.record(), "eu-ai-act", SimpleNamespace(path=tmp_path))

    def test_outcomes_beside_a_run_are_reported_alone(self, tmp_path: Path) -> None:
        (tmp_path / "ll144.json").write_text(json.dumps(GOLDEN.people_record()), encoding="utf-8")
        made = page(SPECIMEN.record(), "ll144", SimpleNamespace(path=tmp_path))
        assert "0.979" in section(made, "impact")
        assert "--format ll144-summary" in section(made, "impact")
        assert "Not tested: this record holds outcomes" in section(made, "says")
        for empty in ("claims", "controls", "counterfactual", "intersections", "rows", "evidence"):
            assert f'id="{empty}"' not in made
            assert f'href="#{empty}"' not in made
        assert "reviews" not in text(made)
        assert "Independent auditor: name and firm" in section(made, "system")

    def test_levels_follow_what_the_file_holds(self) -> None:
        record = GOLDEN.people_record()
        found = crossed("ll144", record, record)
        refs = ("5-301(b)(1)–(3)", "5-301(c)(1)–(4)", "5-300, independent auditor")
        assert [found[ref].level for ref in refs] == ["direct", "not_covered", "not_covered"]
        record["ll144"]["data_kind"] = "test"
        found = crossed("ll144", record, record)
        assert [found[ref].level for ref in ("5-301(b)(1)–(3)", "5-302(b)")] == ["input", "input"]


class TestWhatIsNotThere:
    """A clause is not covered by a section that holds nothing."""

    def test_outcomes_are_no_evidence_of_treatment(self) -> None:
        record = GOLDEN.people_record()
        found, texts = crossed("eu-ai-act", record, record), crossed("eu-ai-act", SPECIMEN.record())
        (risk,) = [ref for ref in found if ref.startswith("Art. 9(2)")]
        assert (found[risk].level, found[risk].lacking) == ("not_covered", (frameworks.NOTHING_HERE,))
        assert texts[risk].level == "input"

    def test_links_lead_to_sections_that_hold_something(self) -> None:
        for record in (SPECIMEN.record(), GOLDEN.rows()):
            absent = facts.absent(read(record), None)
            for crossing in (one for name in PAGES for one in crossed(name, record).values()):
                assert not absent & set(crossing.sections)


def test_states_of_gates() -> None:
    def states(controls: dict[str, Any], deterministic: bool) -> list[str]:
        record = SPECIMEN.record() | {"controls": controls, "models": {"m": {"deterministic": deterministic}}}
        by_name = {g.name: g.state for g in facts.gates(read(record))}
        return [by_name[name] for name in ("Positive control", "Same prompts later", "Placebo edits")]

    rate = SPECIMEN.estimate(1.0, 0.6, 1.0, 8)
    seen, not_tested = rate | {"seen": True}, {"m": {"status": "not_tested", "reason": "why"}}
    held = {"positive_control": {"m": seen}, "canary": not_tested}
    assert states(held, True) == ["held", "not_needed", "not_run"]
    assert states(held, False) == ["held", "not_run", "not_run"]
    lost = {
        "positive_control": {"m": seen, "n": rate | {"seen": False}},
        "canary": {"m": {"shifted": True, "p_value": 0.001, "prompts": 8, "answers": 24}},
        "placebo": {"m": {"gender": rate}},
    }
    assert states(lost, False) == ["not_held", "not_held", "measured"]


@pytest.mark.parametrize("name", [page for page in PAGES if page != "ll144"])
def test_every_form_of_a_page_says_from_what_and_when_each_clause_was_read(name: str) -> None:
    framework = frameworks.load(name)
    for form in ("", "-md"):
        text = RENDERERS.create(name + form).render(read(GOLDEN.full()), None).replace("\u00a0", " ")
        for clause in framework.clauses:
            key = clause.source or next(iter(framework.sources))
            mark = f"{frameworks.READ[clause.read]}: {key}, {clause.consulted or framework.consulted}"
            assert mark in text, (form, clause.ref)
        for way in ("general", "secondary"):
            told = text.count(f"{frameworks.READ[way]}: ")
            assert told >= sum(clause.read == way for clause in framework.clauses)


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
        first = {fill.MEASURES["finding"]: "F001", fill.MEASURES["measure"]: "no first names in the prompt"}
        assert found["response"]["blocks"][-1]["lines"][0] == dict.fromkeys(fill.MEASURES.values()) | first
    elif form == "-md":
        assert f"| {fill.FIELDS['deployer']} | **to be filled in** |" in made
        assert "<b>Ltd" not in made
        assert f"| {fill.FIELDS['purpose']} | Whom to invite |" in made
    else:
        assert "Example &lt;b&gt;Ltd&lt;/b&gt; | x" in made
        assert '<label for="field-deployer">' in made
        assert '<label for="field-purpose">' not in made


@pytest.mark.parametrize("name", ["html", "markdown", "json"])
def test_reports_that_are_no_legal_page_hold_it_too(filled: dict[str, Any], name: str) -> None:
    made = RENDERERS.create(name).render(read(filled), SPECIMEN.evidence())
    for told in ("Whom to invite", "A. Person", "no first names in the prompt"):
        assert told in made
    assert (fill.TO_FILL in made) == (name != "json")
    bare = RENDERERS.create(name).render(read(SPECIMEN.record()), SPECIMEN.evidence())
    assert "Filled in by the people" not in bare
    assert head(filled) == head(SPECIMEN.record())


def told(name: str, record: dict[str, Any], clause: str) -> tuple[str, str]:
    """What a page as data says of a clause: the level, and what the report gives."""
    made = json.loads(RENDERERS.create(f"{name}-json").render(read(record), None))
    (table,) = (block for block in made["sections"]["crosswalk"]["blocks"] if "table" in block)
    (line,) = (line for line in table["lines"] if line["Clause"] == clause)
    return line["This report"], line["What it gives"]


def test_levels_rise_with_what_was_filled_in(filled: dict[str, Any]) -> None:
    level, gives = told("eu-ai-act", SPECIMEN.record(), "Annex IV(2)(g)")
    assert (level, gives.endswith(f"Lacking: {frameworks.NEEDS['dated']}.")) == ("input", True)
    assert told("eu-ai-act", filled, "Annex IV(2)(g)")[0] == "direct evidence"
    level, gives = told("nist-ai-rmf", filled, "MEASURE 2.11")
    assert (level, "Risk tolerance" in gives) == ("input", True)
    filled["responsible"]["pages"]["nist-ai-rmf"] = {"risk_tolerance": "two points"}
    assert told("nist-ai-rmf", filled, "MEASURE 2.11")[0] == "direct evidence"
    rate = SPECIMEN.estimate(0.05, 0.01, 0.1, 100)
    filled["controls"] |= {"placebo": {"m": {"gender": rate}}, "noise_floor": {"m": {"declared": True}}}
    level, gives = told("nist-ai-rmf", filled, "MEASURE 2.13")
    assert (level, "Lacking" in gives) == ("input", False)  # no person has read the variants


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("organisation = 'x'", "field format: this field is missing"),
        ("format = 1\nporpoise = 'x'", "line 2: field porpoise: no such field; did you mean purpose"),
        ("format = 1\npurpose = 3", "line 2: field purpose: "), ("format = 1\nmeasures = 'x'", "field measures: "),
        ("format = 1\n[eu-ai-act]\nscope = 'x'", "line 2: field eu-ai-act.scope: no such field"),
        ("format = 1\n[[measures]]\nwhat = 'x'", "field measures.0.what: no such field"),
        ("format = [", "no valid TOML"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "responsible.toml"
    with pytest.raises(DataFileError, match="no such file"):
        fill.load(path, OWN)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=message):
        fill.load(path, OWN)


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


def test_the_command_prints_writes_and_uses_it(place: Path, capsys: Capture) -> None:
    file = place / "responsible.toml"
    (place / "counts.csv").write_text("sex,race,n,selected\nMale,White,100,50\nFemale,White,90,20\n")
    assert said(capsys, "ll144 --counts counts.csv --out runs")[0] == 0
    report = f"report {next((place / 'runs').glob('2*'))}"
    _, printed, _ = both(capsys, f"{report} --write-fill -")
    assert said(capsys, f"{report} --write-fill {file}")[0] == 0
    assert file.read_text(encoding="utf-8") == printed
    assert said(capsys, f"{report} --write-fill {file}")[0] == 2
    file.write_text(printed.replace('auditor = ""', 'auditor = "B. Person, Audits Ltd"'), encoding="utf-8")
    code, out, _ = both(capsys, f"{report} --fill {file} --format ll144,ll144-md,ll144-json,json,html")
    files = out.split()
    assert (code, len(files)) == (0, 5)
    for file in files:
        if not file.endswith("report.html"):  # tables for a reader: their draft names the auditor too
            assert "B. Person, Audits Ltd" in Path(file).read_text(encoding="utf-8"), file
