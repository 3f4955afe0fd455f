"""Compliance reports: frameworks, what a record is evidence for, and what they refuse."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import specimen as SPECIMEN
import test_compliance_golden as GOLDEN
import yaml

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.record import RunRecord, read
from auditor.core.registry import PAGES, RENDERERS
from auditor.report.legal import facts, frameworks
from auditor.report.legal.legal_page import Page

FORMATS = ("eu-ai-act", "nist-ai-rmf", "ai-verify")
RESPONSIBLE = {
    "source": "responsible.toml",
    "fields": {"purpose": "Whom to invite", "affected": "Applicants", "organisation": "Example <b>Ltd</b>"},
    "signature": {"name": "A. Person", "date": "2026-11-22", "signed": "on paper"},
    "measures": [{"finding": "F001", "measure": "no first names in the prompt"}],
    "pages": {"nist-ai-rmf": {"risk_tolerance": "two points"}, "eu-ai-act": {"annex_iii_point": "4(a)"}},
}


def page(record: dict[str, Any], name: str = "eu-ai-act", evidence: Any = None) -> str:
    return str(RENDERERS.create(name).render(read(record), evidence))


def text(markup: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup.split("</style>")[-1])).replace("\u00a0", " ")


def section(markup: str, id: str) -> str:
    found = re.search(rf'<section aria-labelledby="{id}".*?(?=<section aria-labelledby=|</main>)', markup, re.DOTALL)
    assert found is not None
    return text(found.group())


def optional(record: dict[str, Any] | None) -> RunRecord | None:
    return None if record is None else read(record)


class TestFrameworks:
    def test_every_file_loads_and_is_dated(self) -> None:
        assert {"ai-verify", "eu-ai-act", "ll144", "nist-ai-rmf"} < set(PAGES)
        for name in PAGES:
            found = frameworks.load(name)
            assert datetime.date(2026, 11, 21) <= found.consulted <= datetime.date(2026, 11, 22)
            assert found.clauses
            assert found.sources

    @pytest.mark.parametrize("name", PAGES)
    def test_every_clause_names_the_data_it_uses(self, name: str) -> None:
        found = frameworks.load(name)
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
    @pytest.mark.parametrize("filled", [False, True])
    def test_what_lacks_something_is_no_direct_evidence(self, name: str, filled: bool) -> None:
        for record in (SPECIMEN.record(), GOLDEN.full(), GOLDEN.rows(), GOLDEN.people_record()):
            if filled:
                record = record | {"responsible": RESPONSIBLE}
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

    def test_a_wrong_file_of_outcomes_is_named(self, tmp_path: Path) -> None:
        for content in ("{", "[]", '{"ll144": {}}'):
            (tmp_path / "ll144.json").write_text(content, encoding="utf-8")
            with pytest.raises(DataFileError, match=r"ll144\.json"):
                page(SPECIMEN.record(), "eu-ai-act", SimpleNamespace(path=tmp_path))


class TestLl144:
    def test_a_run_of_texts_is_refused_with_the_command(self) -> None:
        with pytest.raises(ConfigError, match=r"outcomes of people who applied.*audit ll144 --data"):
            page(SPECIMEN.record(), "ll144", SPECIMEN.evidence())
        with pytest.raises(ConfigError, match="audit ll144 --data"):
            page(GOLDEN.rows(), "ll144")

    def test_rankings_of_a_model_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="test data that can never become"):
            page(GOLDEN.people_record() | {"kind": "ranking"}, "ll144")

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
        crossings = frameworks.cross(frameworks.load("ll144"), facts.known(read(record), read(record)))
        level = {c.clause.ref: c.level for c in crossings}
        assert level["5-301(b)(1)–(3)"] == "direct"
        assert level["5-301(c)(1)–(4)"] == "not_covered"
        assert level["5-300, independent auditor"] == "not_covered"
        record["ll144"]["data_kind"] = "test"
        crossings = frameworks.cross(frameworks.load("ll144"), facts.known(read(record), read(record)))
        level = {c.clause.ref: c.level for c in crossings}
        assert level["5-301(b)(1)–(3)"] == "input"
        assert level["5-302(b)"] == "input"


class TestWhatIsNotThere:
    """A clause is not covered by a section that holds nothing."""

    def levels(self, name: str, record: dict[str, Any], outcomes: dict[str, Any] | None) -> dict[str, Any]:
        found = frameworks.cross(
            frameworks.load(name),
            facts.known(read(record), optional(outcomes)),
            facts.absent(read(record), optional(outcomes)),
        )
        return {c.clause.ref: c for c in found}

    def test_outcomes_are_no_evidence_of_treatment(self) -> None:
        record = GOLDEN.people_record()
        found = self.levels("eu-ai-act", record, record)
        risk = next(c for ref, c in found.items() if ref.startswith("Art. 9(2)"))
        assert risk.level == "not_covered"
        assert risk.lacking == (frameworks.NOTHING_HERE,)
        texts = self.levels("eu-ai-act", SPECIMEN.record(), None)
        assert next(c for ref, c in texts.items() if ref.startswith("Art. 9(2)")).level == "input"

    def test_links_lead_to_sections_that_hold_something(self) -> None:
        for name in PAGES:
            for record, outcomes in ((SPECIMEN.record(), None), (GOLDEN.rows(), None)):
                absent = facts.absent(read(record), optional(outcomes))
                for crossing in self.levels(name, record, outcomes).values():
                    assert not absent & set(crossing.sections)


class TestGates:
    def states(self, controls: dict[str, Any], **models: bool) -> dict[str, str]:
        record = SPECIMEN.record() | {"controls": controls}
        record["models"] = {name: {"deterministic": d} for name, d in models.items()}
        return {g.name: g.state for g in facts.gates(read(record))}

    def test_states(self) -> None:
        rate = SPECIMEN.estimate(1.0, 0.6, 1.0, 8)
        not_tested = {"status": "not_tested", "reason": "why"}
        held = self.states({"positive_control": {"m": rate | {"seen": True}}, "canary": {"m": not_tested}}, m=True)
        assert held["Positive control"] == "held"
        assert held["Same prompts later"] == "not_needed"
        assert held["Placebo edits"] == "not_run"
        lost = self.states(
            {
                "positive_control": {"m": rate | {"seen": True}, "n": rate | {"seen": False}},
                "canary": {"m": {"shifted": True, "p_value": 0.001, "prompts": 8, "answers": 24}},
                "placebo": {"m": {"gender": rate}},
            },
            m=False,
        )
        assert lost["Positive control"] == "not_held"
        assert lost["Same prompts later"] == "not_held"
        assert lost["Placebo edits"] == "measured"
        assert self.states({"canary": {"m": not_tested}}, m=False)["Same prompts later"] == "not_run"


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
