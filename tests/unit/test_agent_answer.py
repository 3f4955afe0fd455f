"""Groups that a goal names: what is asked for them, and how the report answers in its first lines."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from auditor import SourceText, agent
from auditor.agent import session_report
from auditor.agent.tools import DryRun, asked
from auditor.agent.values import Record
from auditor.cli.main import run as cli
from auditor.contrib.hinter.joint_first import JointFirst
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.plan import Plan
from auditor.core.types import Variant
from auditor.perturb import dictionaries
from auditor.perturb.mutation import MutationSuite
from auditor.testing.planted import Planted

GOAL = "Does our résumé screener treat older women differently?"
OLDER_WOMEN = {"age": ["old"], "gender": ["female"]}


def cases(text: str, groups: Any, **options: Any) -> tuple[Variant, ...]:
    suite = MutationSuite(
        seeds=[SourceText(id="1", text=text)],
        dictionaries=[dictionaries.load("age"), dictionaries.load("gender")],
        groups=groups,
        **options,
    )
    found = suite.ask(1, Random(0))
    return found[0].variants if found else ()


def ends(variant: Variant, end: str) -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    for edit in variant.edits:
        if edit.kind != "agreement":
            out.setdefault(edit.attribute, set()).add(getattr(edit, end))
    return out


@pytest.mark.parametrize(
    "text",
    [
        "A young man works as a clerk. He likes the film.",
        "The elderly woman bought the book. She left.",
        "An old man works as a clerk.",
        "A young woman works as a clerk.",
        "An old man met a young woman.",
    ],
)
@pytest.mark.parametrize("per_seed", [2, 8, None])
def test_each_change_leads_to_a_named_group_or_from_one(text: str, per_seed: int | None) -> None:
    found = cases(text, OLDER_WOMEN, per_seed=per_seed)
    assert found
    for variant in found:
        to, away = ends(variant, "target_group"), ends(variant, "source_group")
        leads = all(set(OLDER_WOMEN[a]) & to[a] for a in to)
        leaves = all(set(OLDER_WOMEN[a]) & away[a] for a in away)
        assert leads or leaves, variant.input


def test_without_groups_nothing_is_left_out() -> None:
    text = "A young man works as a clerk."
    assert [v.input for v in cases(text, None)] == [v.input for v in cases(text, {})]
    assert len(cases(text, None, per_seed=None)) > len(cases(text, OLDER_WOMEN, per_seed=None))


def test_a_search_takes_groups_too() -> None:
    texts = [SourceText(id=str(i), text=f"A young man works as a clerk in room {i}.") for i in range(40)]
    both = [dictionaries.load("age"), dictionaries.load("gender")]
    suite = JointFirst(seeds=texts, dictionaries=both, groups=OLDER_WOMEN)
    targets = [ends(v, "target_group") for case in suite.ask(8, Random(0)) for v in case.variants]
    assert targets
    assert all(to.get("age", {"old"}) == {"old"} for to in targets)


def test_slips_in_groups_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownPlugin, match="unknown group of gender"):
        cases("A man works.", {"gender": ["feminine"]})
    with pytest.raises(UnknownPlugin, match="unknown attribute"):
        cases("A man works.", {"height": ["tall"]})
    for wrong in ("old", "age:", ":old"):
        with pytest.raises(ConfigError, match="--groups takes ATTRIBUTE:GROUP"):
            Plan(groups=(wrong,))
    with pytest.raises(ConfigError, match="not among --attributes"):
        Plan(groups=("age:old",), attributes=("gender",))
    with pytest.raises(ConfigError, match="belongs to --suite mutation"):
        Plan(groups=("age:old",), suite="grammar")
    assert cli(["--task", "hiring", "--model", "vader", "--groups", "age:ancient", "--limit", "3"]) == 2
    assert "unknown group of age" in capsys.readouterr().err
    for groups in (["age:ancient"], ["../age:old"], "age:old", [1]):
        with pytest.raises(ConfigError):
            asked(DryRun, "dry_run", {"purpose": "pilot", "texts": 5, "groups": groups}).checked()
    values = {"purpose": "pilot", "texts": 5, "attributes": ["age"], "groups": ["age:old"]}
    kept = asked(DryRun, "dry_run", values).checked()
    assert kept.groups == ("age:old",)


def test_the_command_asks_for_the_groups_alone(tmp_path: Path) -> None:
    data = tmp_path / "texts.txt"
    data.write_text("A young man liked the film.\nThe old woman liked the film.\n", encoding="utf-8")
    given = ["--task", "sentiment", "--model", "vader", "--data", str(data), "--out", str(tmp_path / "out")]
    assert cli([*given, "--attributes", "age,gender", "--groups", "age:old,gender:female"]) == 0
    (folder,) = (p for p in (tmp_path / "out").iterdir() if p.is_dir())
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert plan["plan"]["groups"] == ["age:old", "gender:female"]
    assert plan["inputs"]["suite"]["groups"] == {"age": ["old"], "gender": ["female"]}


# -- the first lines of a report -----------------------------------------------------------------------


def people(n: int = 48) -> list[SourceText]:
    return [
        SourceText(
            id=f"s{i}",
            text=f"A young man works as a clerk in room {i}. He likes the film and bought the coat in the morning.",
        )
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> agent.AgentResult:
    model = Planted(
        labels=("invite", "reject"),
        base="constant",
        interaction={"old|elderly|older|aged|retired|75-year-old|70-year-old", "she|her|woman|lady"},
    )
    return agent.run(GOAL, model=model, data=people(), out=tmp_path_factory.mktemp("answer"), cache=False)


def test_the_question_is_answered_first_and_with_figures(found: agent.AgentResult) -> None:
    (lead,) = session_report.lead(found.session)
    assert lead.startswith(
        "A difference was shown for age and gender together. Older people against young people: their difference in "
        "“invite” is lower for women and girls than for men and boys"
    )
    (question,) = [q for q in found.questions if q["attributes"] == ["age", "gender"]]
    assert " texts when age + gender was edited, neutral edits changed them in 0." in lead
    assert f"(Run {question['run']}, finding {question['finding']}.)" in lead
    text = " ".join(found.to_text(full=True).split())
    assert text.index("A difference was shown") < text.index("How the question was read")
    assert lead in " ".join(found.to_markdown().split()).replace("\\", "")


def test_a_model_that_rejects_older_people_differs_for_age_and_not_for_gender(tmp_path: Path) -> None:
    old = "old|elderly|older|aged|retired|75-year-old|70-year-old"
    model = Planted(labels=("invite", "reject"), base="constant", additive={old: 1.0})
    result = agent.run(GOAL, model=model, data=people(96), out=tmp_path, cache=False)
    (lead,) = session_report.lead(result.session)
    verdicts = {tuple(q["attributes"]): q["verdict"] for q in result.questions}
    assert verdicts["age",] == "shown"
    assert verdicts["gender",] != "shown"
    assert lead.startswith("A difference was shown for age. Older people were invited in 0 of 100 texts, ")
    assert "shown for age and gender" not in lead
    told = " ".join(result.to_text(full=True).split())
    assert "Verdicts of fresh runs" in told


def test_what_its_own_run_shows_stands_in_the_first_line(found: agent.AgentResult) -> None:
    by_set = {tuple(q["attributes"]): dict(q) for q in found.questions}
    joint, gender = by_set["age", "gender"], by_set["gender",]
    gender |= {"verdict": "shown", "row": joint["row"] | {"attributes": ["gender"]}}
    record = found.record | {"questions": [joint | {"verdict": "not_determined"}, gender]}
    (lead,) = session_report.lead(msgspec.convert(record, Record))
    assert lead.startswith("A difference was shown for gender. ")


def test_two_groups_side_by_side_are_answered_each_for_itself(tmp_path: Path) -> None:
    old = "old|elderly|older|aged|retired|75-year-old|70-year-old"
    model = Planted(labels=("invite", "reject"), base="constant", additive={old: 1.0})
    goal = "Does our résumé screener reject women and older applicants more often?"
    result = agent.run(goal, model=model, data=people(), out=tmp_path, cache=False)
    assert [q["attributes"] for q in result.questions] == [["age"], ["gender"]]
    assert all(r["request"]["order"] == 1 for r in result.record["runs"])
    (lead,) = session_report.lead(result.session)
    assert lead.startswith("A difference was shown for age. ")
    same = agent.run(goal, model=Planted(labels=("invite", "reject"), base="constant"), data=people(), out=tmp_path)
    (lead,) = session_report.lead(same.session)
    assert lead.startswith("The model cannot be judged for age: all its answers are the same.")
    assert "The model cannot be judged for gender: " in lead


def test_the_plans_look_at_the_named_groups(found: agent.AgentResult) -> None:
    assert all(r["request"]["groups"] == ["age:old", "gender:female"] for r in found.record["runs"])
    for run in found.runs:
        for finding in run.findings:
            for attribute, source, target in finding.directions:
                for one, *ends in zip(*(part.split("+") for part in (attribute, source, target)), strict=True):
                    assert {"age": "old", "gender": "female"}[one] in ends


def test_a_run_has_one_row_for_each_set(found: agent.AgentResult) -> None:
    (joint,) = [q for q in found.questions if q["attributes"] == ["age", "gender"]]
    assert joint["explored"] == ["R1"]


def test_a_model_that_does_not_fit_the_task_is_told_first(tmp_path: Path) -> None:
    result = agent.run(GOAL, model=lambda text: "banana", data=people(), out=tmp_path, cache=False)
    assert not result.complete
    assert [r["purpose"] for r in result.record["runs"]] == ["pilot"], "nothing further was asked"
    (lead,) = session_report.lead(result.session)
    assert lead.startswith("Nothing was measured: no answer of this run could be judged")
    assert "what the task hiring reads, is in the report of the run" in lead


def test_what_is_open_says_why(tmp_path: Path) -> None:
    result = agent.run(GOAL, model=Planted(labels=("invite", "reject"), base="constant"), data=people(), out=tmp_path)
    (lead,) = session_report.lead(result.session)
    told = "The model cannot be judged for age and gender together: all its answers are the same."
    assert lead.startswith(told)
    assert "on 0 of" in lead
    assert "Why: " in lead


def test_each_form_of_the_report_has_the_blocks(found: agent.AgentResult) -> None:
    headings = [s.title for s in session_report.build(found.session, found.steps).sections]
    assert headings[:2] == ["Answer", "How the question was read"]


def test_large_figures_are_written_out(found: agent.AgentResult) -> None:
    figures = {"texts": 12_345, "calls": 1_000_000, "calls_per_text": 81.375}
    step = {"kind": "size", "reason": "counted", "figures": figures}
    (told,) = [s.blocks for s in session_report.build(found.session, [step]).sections if s.id == "steps"]
    assert told[0].lines == ("1. size: counted [texts 12,345; calls 1,000,000; calls per text 81.375]",)


def test_an_amount_is_told_with_its_difference(tmp_path: Path) -> None:
    def offers(text: str) -> int:
        return 50_000 if {"she", "her", "woman"} & set(text.lower().split()) else 60_000

    goal = "Do women get another starting salary?"
    result = agent.run(goal, model=offers, out=tmp_path, cache=False, max_calls=1_000)
    (question,) = result.questions
    assert question["verdict"] == "shown"
    (lead,) = session_report.lead(result.session)
    assert "Women and girls were given 10,000.00 USD/year less than men and boys" in lead
    told = " ".join(result.to_text(full=True).split())
    assert "not measured" not in told
