"""Groups that a run is about: each change leads to one of them, or from one; of a pair, between the two."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor import SourceText
from auditor.agent.tools import DryRun, asked
from auditor.cli.main import run as cli
from auditor.contrib.hinter.joint_first import JointFirst
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.plan import Plan
from auditor.core.types import Variant
from auditor.perturb import dictionaries
from auditor.perturb.mutation import MutationSuite

PAIR = {"age": ["old/young"], "gender": ["female/male"]}
THERE = {("age", "young", "old"), ("gender", "male", "female")}
BACK = {(a, target, source) for a, source, target in THERE}


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
    one_sided = variants(text, {"age": ["old"], "gender": ["female"]}, kind)
    assert all(
        {("age", "old"), ("gender", "female")} & {(a, end) for a, *ends in moves(v) for end in ends} for v in one_sided
    )


def test_groups_are_on_disk_and_slips_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "texts.txt"
    data.write_text("A young man liked the film.\nThe woman liked the film.\n", encoding="utf-8")
    given = ["--task", "sentiment", "--model", "vader", "--data", str(data), "--out", str(tmp_path / "out")]
    assert cli([*given, "--attributes", "age,gender", "--groups", "age:old,gender:female/male"]) == 0
    (folder,) = (p for p in (tmp_path / "out").iterdir() if p.is_dir())
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert plan["plan"]["groups"] == ["age:old", "gender:female/male"]
    assert plan["inputs"]["suite"]["groups"] == {"age": ["old"], "gender": ["female/male"]}
    with pytest.raises(UnknownPlugin, match="unknown group of gender"):
        variants("A man works.", {"gender": ["feminine"]})
    for wrong in ("old", "age:", ":old", "gender:female/", "gender:/male"):
        with pytest.raises(ConfigError, match="--groups takes ATTRIBUTE:GROUP"):
            Plan(groups=(wrong,))
    with pytest.raises(ConfigError, match="not among --attributes"):
        Plan(groups=("age:old",), attributes=("gender",))
    assert cli(["--task", "hiring", "--model", "vader", "--groups", "gender:female/masculine"]) == 2
    assert "unknown group of gender 'masculine'" in capsys.readouterr().err
    for groups in (["age:ancient"], ["../age:old"], "age:old", [1]):
        with pytest.raises(ConfigError):
            asked(DryRun, "dry_run", {"purpose": "pilot", "texts": 5, "groups": groups}).checked()
