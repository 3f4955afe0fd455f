"""Placebo edits have the shape of the edits that they are compared with, in texts and in grammars."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from auditor.core.types import Case, SourceText, Variant, is_wording
from auditor.measure.observations import Arm, shape_of
from auditor.perturb import grammar
from auditor.perturb.dictionaries import builtin, load
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.placebo import WORDED, Placebos, is_frame, unframed, worded
from auditor.run.rounds import is_placebo, with_placebos
from auditor.testing import check_variant

ALL = [load(name) for name in builtin()]
SOME = ["gender", "nationality", "age"]
RICH = "An old woman saw the British director of the movie in the city. The big store often sold tickets to teachers."


def one_case(text: str, attributes: list[str] = SOME, **options: Any) -> Case:
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=ALL, attributes=attributes, **options)
    (case,) = suite.ask(1, Random(0))
    return case


def test_a_placebo_for_each_variant_with_as_many_changed_spans_and_no_group_changed() -> None:
    case = one_case(RICH)
    made = Placebos(dictionaries=ALL).placebos(case, None, Random(1))
    for attribute in SOME:
        arm = [v for v in case.variants if v.attributes == (attribute,)]
        own = [v for v in made if v.attributes == (attribute,)]
        assert 3 <= len(own) <= max(3, len(arm)), attribute
        assert {len([e for e in v.edits if e.kind == "placebo"]) for v in own} == {1}
    assert [v.id for v in made] == [f"{case.id}.p{i}" for i in range(len(made))]
    assert len({v.input for v in made if v.attributes == ("gender",)}) == sum(v.attributes == ("gender",) for v in made)
    for variant in made:
        assert variant.groups == case.original.groups
        assert {e.kind for e in variant.edits} <= {"placebo", "agreement"}
        assert all(e.source_group == e.target_group for e in variant.edits)
        assert check_variant(RICH, variant) == []


def test_joint_placebos_have_the_shape_of_their_edits() -> None:
    case = one_case(RICH + " He didn't ask again, and nobody was there.", ["gender", "nationality"], per_seed=4)
    made = with_placebos(case, Placebos(dictionaries=ALL), per_seed=4, seed=7)
    joint = [v for v in made.variants if v.order == 2]
    arms = {arm: [shape_of(v.edits) for v in joint if shape_of(v.edits).arm == arm] for arm in Arm}
    assert len(arms[Arm.PLACEBO]) == len(arms[Arm.EDITED]) == 4
    assert {s.spans for s in arms[Arm.PLACEBO]} == {s.spans for s in arms[Arm.EDITED]}
    words = {arm: sorted(s.more_words for s in shapes) for arm, shapes in arms.items()}
    assert words[Arm.PLACEBO] == words[Arm.EDITED]


def reworded(case: Case, n: int, *primary: dict[str, tuple[str, str]]) -> tuple[Variant, ...]:
    neutral_edits = [v.edits for v in Placebos(dictionaries=ALL).neutral(case, 20, Random(1))]
    return tuple(worded(case, n, neutral_edits, *primary))


def test_both_sides_of_a_text_get_the_same_wordings() -> None:
    case = one_case(RICH, ["gender", "age"], order=1)
    made = reworded(case, 3)
    sides: dict[tuple[str, object], list[object]] = {}
    for v in made:
        assert not check_variant(str(case.original.input), v)
        assert is_wording(v)
        assert v.order == 1
        own = tuple((e.where, e.target) for e in v.edits if e.kind == "wording")
        real = tuple(e for e in v.edits if e.kind not in ("wording", "agreement"))
        sides.setdefault((v.attributes[0], own), []).append(real)
    for attribute in ("gender", "age"):
        wordings = [found for (name, _), found in sides.items() if name == attribute]
        assert len(wordings) == 3
        assert {len(own) for name, own in sides if name == attribute} == {WORDED}
        assert all(len(found) == 2 and () in found for found in wordings)
        single = [v for v in case.variants if v.attributes == (attribute,)]
        assert len({real for found in wordings for real in found if real}) == min(3, len(single))  # by turns


def test_of_a_primary_pair_only_its_two_groups_get_further_wordings() -> None:
    primary = {"gender": ("female", "male")}
    made = reworded(one_case(RICH, ["gender"], order=1), 3, primary)
    assert len(made) == 6
    assert {d[2] for v in made for d in v.directions} == {"male", "neutral"}
    made = reworded(one_case("A child saw the British movie in the city.", ["gender"], order=1), 3, primary)
    for group in primary["gender"]:
        assert len([v for v in made if {d[2] for d in v.directions} & {group}]) == 3


def test_a_text_without_neutral_words_gets_sentences_before_or_after_it() -> None:
    case = one_case("She sings.", ["gender"], order=1)
    made = reworded(case, 7)
    assert len(made) == 14
    for v in made:
        assert not check_variant(str(case.original.input), v)
        assert sum(is_frame(e) for e in v.edits) in (1, 2)
        assert unframed(v, case.original).input in {case.original.input, *(o.input for o in case.variants)}
        shape = shape_of(v.edits)
        assert shape.frames
        assert not any("text" in word for word in shape.words_in)
    short = Placebos(dictionaries=ALL, limit_chars=lambda text: 20)
    assert short.neutral(case, 20, Random(1)) == ()


TWO = """\
format: 1
rules:
  s: ["{who} met {whom} at the {place}, a {faith} school."]
  who: {attribute: gender, groups: {f: [Ann, Eve, Zoe], m: [Bob, Tim, Max]}}
  whom: {attribute: gender, groups: {f: [aunt May, aunt Kim, aunt Liz], m: [uncle Ned, uncle Jo]}}
  place: [gate]
  faith: {attribute: religion, groups: {a: [Muslim, Sunni, Shia], b: [Hindu, Shaiva]}}
"""


def test_grammar_placebos_change_as_many_places_as_the_variants_alone_and_together(tmp_path: Path) -> None:
    def spans(variant: Variant) -> int:
        return sum(e.kind != "agreement" for e in variant.edits)

    path = tmp_path / "two.yaml"
    path.write_text(TWO, encoding="utf-8")
    suite = GrammarSuite(grammar=grammar.load(str(path)), generation="rand", cases=20, order=2)
    cases = suite.ask(20, Random(0))
    for case in cases:
        for variant in suite.placebos(case, None, Random(1)):
            beside = [v for v in case.variants if v.attributes == variant.attributes]
            assert spans(variant) <= max(map(spans, beside))
            if variant.attributes == ("gender",) and case.original.groups["gender"] in "fm":
                assert spans(variant) == 2  # both people, as in the variants
    whole = with_placebos(cases[0], suite, per_seed=8, seed=1)
    joint = [v for v in whole.variants if is_placebo(v) and v.order == 2]
    assert joint
    for variant in joint:
        assert {e.attribute for e in variant.edits} == {"gender", "religion"}
    assert len({v.id for v in whole.variants}) == len(whole.variants)
