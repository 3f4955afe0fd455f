"""The controls of a run: placebo variants kept apart, the positive control, canaries, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from judged import edit

from auditor import Result, SourceText, audit
from auditor.core.protocols import Reply
from auditor.core.types import Case, Edit, Request, Variant, is_wording
from auditor.run.preparation import CANARY_REPLICATES
from auditor.run.rounds import is_placebo, with_placebos
from auditor.tasks import load
from auditor.testing.planted import Planted
from tests.asking import workers

SEEDS = workers(20, "He works as a {role} {place}. The book and the coat came in the morning.")


def run(model: Any, **options: Any) -> Result:
    options = {"anyway": True} | options  # models that mind nothing but what a test plants
    return audit("sentiment", model=model, data=SEEDS, attributes=("gender",), per_seed=3, **options)


def test_placebos_are_asked_and_kept_apart() -> None:
    result = run(Planted(additive={"novel|jacket|afternoon": 1.0}, base="constant"))
    placebos = [v for v in result.verdicts if v.order == 0]
    assert placebos
    assert result.record["counts"]["placebos"] >= len(placebos)
    for verdict in placebos:
        variant = result.evidence.variant(verdict.variant_id)
        assert is_placebo(variant)
        assert verdict.attributes == ("gender",)
        assert result.evidence.responses(variant.id)
    changed = [v for v in placebos if v.outcome == "violation"]
    assert changed, "a model that minds neutral words must change with some placebo"
    assert result.record["counts"]["violations"] == {"1": 0, "2": 0}
    rates = {e["name"]: e["estimate"]["value"] for e in result.estimates if e["attributes"] == ["gender"]}
    assert rates["violation_rate"] == 0
    assert rates["placebo_rate"] == pytest.approx(len(changed) / len(placebos), abs=0.02)
    assert result.record["controls"]["placebo"]["planted"]["gender"]["value"] == rates["placebo_rate"]
    groups = {c["group"]: c["n"] for c in result.record["controls"]["answers_by_group"]}
    assert groups["male"] == len(SEEDS)  # the originals, and no placebo
    assert "neutral edits" in result.to_text(full=True)


@pytest.mark.parametrize("wobble", [0.0, 0.2])
def test_further_wordings_are_asked_once_and_enter_no_figure_but_net_differences(wobble: float) -> None:
    def model() -> Planted:
        rules = {"novel|jacket|afternoon": 1.0, "woman|she": 0.6}
        return Planted(additive=rules, base="constant", wobble=wobble, seed=3)

    before, after = run(model()), run(model(), wordings=3)
    cases = [after.evidence.case(case_id) for case_id in sorted({v.case_id for v in after.verdicts})]
    made = [v for case in cases for v in case.variants if is_wording(v)]
    valid = [v for v in made if after.evidence.check(v.id).status != "invalid"]
    assert len(made) > len(SEEDS)
    assert len(valid) > len(SEEDS)
    # A prompt may be that of a placebo variant, which is asked with all replicates.
    asked = [len(after.evidence.responses(v.id)) for v in valid]
    assert set(asked) <= {1, 3 if wobble else 1}
    assert asked.count(1) > len(SEEDS)
    assert not {v.variant_id for v in after.verdicts} & {v.id for v in made}
    assert after.verdicts == before.verdicts
    assert after.estimates == before.estimates
    assert rates(after) == rates(before)
    assert after.record["controls"]["answers_by_group"] == before.record["controls"]["answers_by_group"]
    assert after.record["controls"]["noise_floor"] == before.record["controls"]["noise_floor"]
    assert after.record["claims"] != before.record["claims"]


def rates(result: Any) -> list[Any]:
    return [(f.code, f.attributes, f.rate) for f in result.findings if f.code.startswith(("MUT", "HID"))]


def test_a_blind_model_bounds_nothing_and_a_seeing_one_does() -> None:
    seeing = run(Planted(), delta=0.3)
    control = seeing.record["controls"]["positive_control"]["planted"]
    assert control["seen"] is True
    assert {f.verdict for f in seeing.findings if f.code == "DIR110"} == {"bounded"}
    blind = run(Planted(base="constant"), delta=0.3)
    assert blind.record["controls"]["positive_control"]["planted"]["seen"] is False
    assert {f.verdict for f in blind.findings} == {"not_determined"}
    assert any("positive control was not seen" in claim.why for claim in blind.run.claims or ())


class Changing(Planted):
    """Answers otherwise once it has been asked ``after`` questions."""

    def __init__(self, after: int, **options: Any) -> None:
        super().__init__(**options)
        self.asked, self.after = 0, after

    async def generate(self, batch: Sequence[Request]) -> list[Any]:
        self.asked += len(batch)
        told = await super().generate(batch)
        if self.asked <= self.after:
            return list(told)
        return [reply._replace(text="negative") if isinstance(reply, Reply) else reply for reply in told]


def test_a_model_that_changes_during_the_run_is_noticed() -> None:
    model = Changing(10**9, base="constant", wobble=0.02)
    steady = run(model)
    before_the_end = model.asked - 8 * CANARY_REPLICATES - 2 * 8 * 2  # canaries, then the rest of the positive control
    drift = steady.record["controls"]["canary"]["planted"]
    assert (drift["shifted"], drift["prompts"]) == (False, 8)
    changed = run(Changing(before_the_end, base="constant", wobble=0.02))
    drift = changed.record["controls"]["canary"]["planted"]
    assert drift["shifted"] is True
    assert "may have changed meanwhile" in changed.to_text()
    declared = run(Planted(base="constant"))
    assert declared.record["controls"]["canary"]["planted"]["status"] == "not_tested"


def test_refusing_texts_about_one_group_is_a_finding() -> None:
    result = run(Planted(base="constant", refuse={"she": 1.0}))
    refused = [f for f in result.findings if f.code == "REF120"]
    # Women are among the others whom nonbinary people are compared with.
    assert (("gender", "male", "female"),) in {f.directions for f in refused}
    assert {attribute for f in refused for attribute, *_ in f.directions} == {"gender"}


def test_hidden_findings_with_scores_say_their_interaction_contrast() -> None:
    texts = [SourceText(id=s.id, text=s.text + " A British visitor took them.") for s in SEEDS]
    model = Planted(additive={"she": 0.6, "french|kenyan|indian": 0.6}, base="constant", scores=True)
    result = audit("sentiment", model=model, data=texts, attributes=("gender", "nationality"), per_seed=None)
    hidden = [f for f in result.findings if f.kind == "hidden"]
    assert hidden
    assert all(any("interaction contrast" in note for note in f.notes) for f in hidden)


def test_the_paper_s_protocol_has_no_controls() -> None:
    result = run(Planted(base="constant"), protocol="hinter")
    assert result.record["counts"]["placebos"] == 0
    for control in ("placebo", "positive_control", "canary"):
        assert result.record["controls"][control]["reason"] == "the protocol has none"


class Stub:
    def placebos(self, case: Case, n: int, rng: Random) -> list[Variant]:
        return [
            Variant(id="1", input="one B c", edits=(placebo("a", 0, "a", "one"),)),
            Variant(id="2", input="A two c", edits=(placebo("b", 2, "b", "two"),)),
            Variant(id="3", input="one B c", edits=(placebo("b", 0, "a", "one"),)),
        ]


class Silent:
    def placebos(self, case: Case, n: int, rng: Random) -> list[Variant]:
        return []


def placebo(attribute: str, at: int, source: str, target: str, kind: str = "placebo") -> Edit:
    return edit(source, target, ("x", "x"), at, attribute=attribute, kind=kind)


def test_joint_placebos_are_put_together_from_single_ones() -> None:
    swap = (placebo("a", 0, "A", "X", "swap"), placebo("b", 2, "B", "Y", "swap"))
    made = [("X B c", swap[:1]), ("A Y c", swap[1:]), ("X Y c", swap)]
    variants = tuple(Variant(id=f"c.v{n}", input=text, edits=edits) for n, (text, edits) in enumerate(made))
    case = Case(id="c", suite="s", original=Variant(id="c.o", input="A B c"), variants=variants)
    whole = with_placebos(case, Stub(), per_seed=8, seed=1)
    added = {(v.id, v.attributes, v.input) for v in whole.variants if is_placebo(v)}
    assert added == {
        ("c.p0", ("a",), "one B c"), ("c.p1", ("b",), "A two c"), ("c.p2", ("b",), "one B c"),
        ("c.p3", ("a", "b"), "one two c"),  # the other pair changes one place twice
    }  # fmt: skip
    assert with_placebos(whole, Stub(), per_seed=8, seed=1) is whole
    assert with_placebos(case, Silent(), per_seed=8, seed=1) == case


def test_control_pairs_and_the_compared_label() -> None:
    sentiment = load("sentiment")
    assert len(sentiment.controls) >= 8
    assert len(load("hiring").controls) >= 8
    assert sentiment.outcomes({}) == ("positive",)
    assert load("hiring").outcomes({}) == (load("hiring").favourable,)
