"""What default runs edit in the embedded texts: whose groups, how balanced, and with how many placebos beside."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest

from auditor import tasks
from auditor.core.plan import Plan
from auditor.core.types import Case, Check
from auditor.measure.observations import Arm, shape_of
from auditor.perturb import dictionaries
from auditor.run.preparation import stages
from auditor.run.rounds import gated

ENOUGH, SHARE = 20, 0.95  # texts that a share is taken of; those that have a placebo beside their edits
JOINT = "two together"
SEXES = ("female", "male")


@cache
def made(task: str) -> list[tuple[Case, dict[str, Check]]]:
    plan, loaded = Plan(task=task), tasks.load(task)
    made_by = stages(plan, loaded, list(loaded.seeds()), {})
    rng, out = Random(plan.seed), []
    while cases := made_by.suite.ask(64, rng):
        cases, checks = gated(plan, cases, made_by.gate, made_by.placebos, made_by.suite)
        out += [(case, checks) for case in cases]
    return out


def arms(case: Case, checks: dict[str, Check]) -> dict[Arm, set[str]]:
    """The attributes of the valid edits, and of the valid placebos."""
    out: dict[Arm, set[str]] = {Arm.EDITED: set(), Arm.PLACEBO: set()}
    for variant in case.variants:
        arm = shape_of(variant.edits).arm
        if arm in out and checks[variant.id].status != "invalid":
            out[arm].add(variant.attributes[0] if len(variant.attributes) == 1 else JOINT)
    return out


@pytest.mark.parametrize("task", ["hiring", "sentiment", "lending", "triage", "letter", "salary", "rating", "support"])
def test_texts_with_an_edit_have_a_placebo(task: str) -> None:
    edited, beside = Counter[str](), Counter[str]()
    for case, checks in made(task):
        assert len({v.id for v in case.variants}) == len(case.variants)
        found = arms(case, checks)
        edited.update(found[Arm.EDITED])
        beside.update(found[Arm.EDITED] & found[Arm.PLACEBO])
    shares = {name: beside[name] / n for name, n in edited.items() if n >= ENOUGH}
    assert {"gender", "race", JOINT} <= set(shares)
    few = {name: round(share, 3) for name, share in shares.items() if share < SHARE}
    assert not few


@pytest.mark.parametrize(("task", "least"), [("hiring", 0.75), ("letter", 0.58), ("salary", 0.78), ("rating", 0.59)])
def test_most_edits_of_gender_have_a_placebo_that_adds_as_many_words(task: str, least: float) -> None:
    edits = alike = 0
    for case, checks in made(task):
        shapes: dict[Arm, list[int]] = {Arm.EDITED: [], Arm.PLACEBO: []}
        for variant in case.variants:
            shape = shape_of(variant.edits)
            if variant.attributes == ("gender",) and shape.arm in shapes and checks[variant.id].status != "invalid":
                shapes[shape.arm].append(shape.more_words)
        edits += len(shapes[Arm.EDITED])
        alike += sum(words in shapes[Arm.PLACEBO] for words in shapes[Arm.EDITED])
    assert edits > 100
    assert alike >= least * edits


@pytest.mark.parametrize("attribute", ["gender", "race"])
def test_enough_notes_on_applicants_bear_an_attribute(attribute: str) -> None:
    texts, originals = 0, Counter[str]()
    for case, checks in made("hiring"):
        if attribute in arms(case, checks)[Arm.EDITED]:
            texts += 1
            originals.update(
                {e.source_group for v in case.variants for e in v.edits
                 if e.attribute == attribute and shape_of(v.edits).arm == Arm.EDITED and e.kind == "swap"}
            )  # fmt: skip
    assert texts >= 250
    counts = [n for group, n in originals.items() if group != "unmarked" and n >= 5]
    assert len(counts) >= 2
    assert max(counts) <= 1.25 * min(counts), originals


def test_twenty_first_names_for_each_sex_and_group() -> None:
    names = dictionaries.load("names")
    counts = Counter(term.group for term in names.sources)
    cells = {f"{group}_{sex}" for group in ("black", "white", "hispanic", "asian", "middle_eastern") for sex in SEXES}
    assert set(counts) == cells
    assert min(counts.values()) >= 20
    assert len({term.text for term in names.sources}) == sum(counts.values())
    assert all(names.groups[group].agrees == group.rpartition("_")[2] for group in cells)
