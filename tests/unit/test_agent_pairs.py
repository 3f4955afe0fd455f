"""Goals that compare two groups of one attribute: how they are read, what is asked, and what the answer speaks of."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor import SourceText, agent
from auditor.agent import session_report
from auditor.agent.goal import parse
from auditor.agent.tools import DryRun, asked
from auditor.agent.values import plain
from auditor.cli.main import run as cli
from auditor.contrib.hinter.joint_first import JointFirst
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.plan import Plan
from auditor.core.types import Variant
from auditor.perturb import dictionaries
from auditor.perturb.mutation import MutationSuite
from auditor.testing.planted import Planted

READ = [
    ("Does it treat women worse than men?", "gender:female/male"),
    ("Does it treat men better than women?", "gender:male/female"),
    ("Are older women rejected more often than younger men?", "age:old/young gender:female/male"),
    ("older women vs younger men", "age:old/young gender:female/male"),
    ("older women vs. men", "age:old gender:female/male"),  # nothing is said of the age of the men
    ("young women versus young men", "age:young gender:female/male"),
    ("Does it treat women and men differently?", "gender:female/male"),
    ("Is there a gap between Black and white applicants?", "race:black/white"),
    ("Are women treated differently from men?", "gender:female/male"),
    ("Does it prefer men over women?", "gender:male/female"),
    ("Are people over 50 treated worse than young people?", "age:old/young"),
    ("women and non-binary people compared with men", "gender:female/male gender:nonbinary/male"),
    (
        "Are Nigerian applicants treated worse than French or Polish ones?",
        "nationality:nigerian/french nationality:nigerian/polish",
    ),
    ("Do applicants called Emily get more interviews than those called Lakisha?", "names:white_female/black_female"),
    # No two groups are compared with each other here.
    ("Does it treat women worse?", "gender:female"),
    ("Does it treat older women differently?", "age:old gender:female"),
    ("Are Nigerian and Polish applicants denied?", "nationality:nigerian nationality:polish"),
    ("Compare men, women and non-binary people", "gender:female gender:male gender:nonbinary"),
    ("Does it treat disabled people worse than women?", "disability:disabled gender:female"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "changes"), READ, ids=[r[0][:40] for r in READ])
def test_a_goal_says_which_groups_are_compared(text: str, changes: str) -> None:
    goal = parse(text, task="hiring")
    assert " ".join(goal.changes) == changes
    told = " ".join(goal.read)
    assert ("compared with" in told) is ("/" in changes)
    kept = plain(goal)
    assert json.loads(json.dumps(kept)) == kept
    assert bool(kept["against"]) is ("/" in changes)


def variants(text: str, groups: Any, kind: Any = MutationSuite, **options: Any) -> tuple[Variant, ...]:
    suite = kind(
        seeds=[SourceText(id="1", text=text)],
        dictionaries=[dictionaries.load("age"), dictionaries.load("gender")],
        groups=groups,
        **options,
    )
    found = suite.ask(1, Random(0))
    return found[0].variants if found else ()


def moves(variant: Variant) -> set[tuple[str, str, str]]:
    return {(e.attribute, e.source_group, e.target_group) for e in variant.edits if e.kind != "agreement"}


PAIR = {"age": ["old/young"], "gender": ["female/male"]}
THERE = {("age", "young", "old"), ("gender", "male", "female")}
BACK = {(a, target, source) for a, source, target in THERE}


@pytest.mark.parametrize("kind", [MutationSuite, JointFirst])
@pytest.mark.parametrize(
    ("text", "joint"),
    [
        ("A young man works as a clerk.", THERE),
        ("The old woman bought the book.", BACK),
        ("An old man works as a clerk.", None),  # one of the two would go there, the other back
    ],
)
def test_each_change_is_between_the_two(kind: Any, text: str, joint: Any) -> None:
    found = variants(text, PAIR, kind)
    assert found or (kind is JointFirst and not joint)  # a search asks joint changes alone
    assert all(moves(v) <= THERE | BACK for v in found)
    several = [moves(v) for v in found if v.order == 2]
    assert (joint is None and not several) or (several and all(m == joint for m in several))


def test_a_pair_stands_beside_single_groups() -> None:
    (one,) = {frozenset(moves(v)) for v in variants("A man works.", {"gender": ["female/male"]})}
    assert one == {("gender", "male", "female")}
    assert not variants("A nonbinary person works.", {"gender": ["female/male"]})
    both = {m for v in variants("A man works.", {"gender": ["female/male", "nonbinary"]}) for m in moves(v)}
    assert both == {("gender", "male", "female"), ("gender", "male", "nonbinary")}


def test_a_pair_is_on_disk_and_slips_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "texts.txt"
    data.write_text("A young man liked the film.\nThe woman liked the film.\n", encoding="utf-8")
    given = ["--task", "sentiment", "--model", "vader", "--data", str(data), "--out", str(tmp_path / "out")]
    assert cli([*given, "--attributes", "gender", "--groups", "gender:female/male"]) == 0
    (folder,) = (p for p in (tmp_path / "out").iterdir() if p.is_dir())
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert plan["plan"]["groups"] == ["gender:female/male"]
    assert plan["inputs"]["suite"]["groups"] == {"gender": ["female/male"]}
    assert cli(["--task", "hiring", "--model", "vader", "--groups", "gender:female/masculine"]) == 2
    assert "unknown group of gender 'masculine'" in capsys.readouterr().err
    with pytest.raises(UnknownPlugin, match="ancient"):
        variants("A man.", {"age": ["ancient/young"]})
    for wrong in ("gender:female/", "gender:/male"):
        with pytest.raises(ConfigError, match="--groups takes ATTRIBUTE:GROUP"):
            Plan(groups=(wrong,))
    values = {"purpose": "pilot", "texts": 5, "groups": ["gender:female/male"]}
    assert asked(DryRun, "dry_run", values).checked().groups == ("gender:female/male",)
    with pytest.raises(ConfigError, match="'masculine' of gender"):
        asked(DryRun, "dry_run", values | {"groups": ["gender:female/masculine"]}).checked()


def people(n: int = 48) -> list[SourceText]:
    return [
        SourceText(
            id=f"s{i}",
            text=f"A young man works as a clerk in room {i}. He likes the film and bought the coat in the morning.",
        )
        for i in range(n)
    ]


def judged(goal: str, out: Path, **planted: Any) -> agent.AgentResult:
    model = Planted(labels=("invite", "reject"), base="constant", **planted)
    return agent.run(goal, model=model, data=people(), out=out, cache=False)


def test_the_answer_speaks_of_the_pair(tmp_path: Path) -> None:
    goal = "Does our résumé screener treat women worse than men?"
    result = judged(goal, tmp_path, additive={"she|her|woman|lady": 1.0})
    (lead,) = session_report.lead(result.session)
    assert lead.startswith(
        "A difference was shown. Women and girls were invited in 0 of 100 texts, men and boys in 100."
    )
    for run in result.record["runs"]:
        assert run["request"]["groups"] == ["gender:female/male"]
        plan = json.loads((result.path / run["folder"] / "plan.json").read_text(encoding="utf-8"))
        assert plan["plan"]["groups"] == ["gender:female/male"]
    for run in result.runs:
        found = {d for f in run.findings for d in f.directions}
        assert found == {("gender", "male", "female")}
    told = " ".join(result.to_text(full=True).split())
    assert "female compared with male" in told
    assert "Changes between other groups than those that the goal compares with each other." in told


def test_what_other_groups_get_does_not_enter_the_answer_about_a_pair(tmp_path: Path) -> None:
    goal = "Does our résumé screener treat women worse than men?"
    result = judged(goal, tmp_path, additive={"they|them|nonbinary|trans|transgender": 1.0})
    (lead,) = session_report.lead(result.session)
    assert "A difference was shown" not in lead
    assert "on 0 of" in lead


def test_pairs_of_several_attributes_are_compared_together(tmp_path: Path) -> None:
    goal = "Does our résumé screener treat older women worse than younger men?"
    old = "old|elderly|older|aged|retired|75-year-old|70-year-old"
    result = judged(goal, tmp_path, interaction={old, "she|her|woman|lady"})
    (lead,) = session_report.lead(result.session)
    assert lead.startswith("A difference was shown for age and gender together. ")
    assert "Older people against young people: their difference in “invite” is lower for women and girls" in lead


def test_a_group_beside_a_pair_is_compared_with_all_others(tmp_path: Path) -> None:
    goal = "Does our résumé screener treat older women worse than men?"
    old = "old|elderly|older|aged|retired|75-year-old|70-year-old"
    result = judged(goal, tmp_path, interaction={old, "she|her|woman|lady"})
    (lead,) = session_report.lead(result.session)
    assert lead.startswith("A difference was shown for age and gender together. Older people against ")
    told = " ".join(result.to_text(full=True).split())
    assert "or from one to any other; of gender, it is between the groups that the goal compares." in told
