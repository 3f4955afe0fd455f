from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.types import Case, SourceText, is_wording
from auditor.measure.observations import Arm, shape_of
from auditor.perturb.dictionaries import builtin, load, neutral
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.neutral_edits import GAP, is_frame, unframed, worded
from auditor.perturb.placebo import Placebos
from auditor.testing import check_variant

ALL = [load(name) for name in builtin()]
NAMES = [d.attribute for d in ALL]
SOME = ["gender", "nationality", "age"]
RICH = "An old woman saw the British director of the movie in the city. The big store often sold tickets to teachers."


def one_case(text: str, attributes: list[str] = SOME, **options: Any) -> Case:
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=ALL, attributes=attributes, **options)
    (case,) = suite.ask(1, Random(0))
    return case


def test_a_placebo_for_each_variant_with_as_many_changed_spans() -> None:
    case = one_case(RICH)
    made = Placebos(dictionaries=ALL).placebos(case, None, Random(1))
    for attribute in SOME:
        arm = [v for v in case.variants if v.attributes == (attribute,)]
        own = [v for v in made if v.attributes == (attribute,)]
        assert 3 <= len(own) <= max(3, len(arm)), attribute
        assert {len([e for e in v.edits if e.kind == "placebo"]) for v in own} == {1}
    assert [v.id for v in made] == [f"{case.id}.p{i}" for i in range(len(made))]
    assert len({v.input for v in made if v.attributes == ("gender",)}) == sum(v.attributes == ("gender",) for v in made)


def test_no_group_is_changed() -> None:
    case = one_case(RICH)
    for variant in Placebos(dictionaries=ALL).placebos(case, None, Random(1)):
        assert variant.groups == case.original.groups
        assert {e.kind for e in variant.edits} <= {"placebo", "agreement"}
        assert all(e.source_group == e.target_group for e in variant.edits)
        assert check_variant(RICH, variant) == []


def test_another_word_for_the_group_comes_before_neutral_words() -> None:
    case = one_case("The lady left the movie.", ["gender"])
    made = Placebos(dictionaries=ALL).placebos(case, 1, Random(0))
    assert [v.input for v in made] == ["The woman left the movie."]
    assert [(e.attribute, e.source_group) for v in made for e in v.edits] == [("gender", "female")]
    case = one_case("The British lawyer left the movie.", ["nationality"])
    made = Placebos(dictionaries=ALL).placebos(case, None, Random(0))
    assert {v.input for v in made} >= {"The British attorney left the movie.", "The British lawyer left the film."}
    assert {(e.attribute, e.source_group) for v in made for e in v.edits} == {("nationality", "neutral")}


def test_articles_are_repaired() -> None:
    case = one_case("A lawyer told her about it.", ["gender"])
    (made,) = Placebos(dictionaries=ALL).placebos(case, 1, Random(0))
    assert made.input == "An attorney told her about it."


def test_nobody_gets_the_name_of_somebody_else() -> None:
    case = one_case("Emily met Anne, and Emily paid.", ["names"])
    made = Placebos(dictionaries=ALL).placebos(case, None, Random(0))
    assert len(made) == 8
    for variant in made:
        words = str(variant.input).replace(",", "").split()
        assert words[0] == words[4] != words[2]
        assert not {words[0], words[2]} & {"Emily", "Anne"}


def test_where_there_is_no_room_it_is_counted() -> None:
    placebos = Placebos(dictionaries=ALL)
    case = one_case("He slept.", ["gender"])
    assert placebos.placebos(case, None, Random(0)) == ()
    assert placebos.passed_over == {"placebo for gender: no neutral word stands in the text": 1}


def test_placebos_add_as_many_words_as_their_edits() -> None:
    case = one_case("A woman didn't like the film, and the store wasn't big.", ["gender"], per_seed=None)
    case = dataclasses.replace(case, variants=tuple(v for v in case.variants if " trans " in f" {v.input} "))
    made = Placebos(dictionaries=ALL).placebos(case, 2, Random(0))
    assert {shape_of(v.edits).more_words for v in case.variants} == {1}
    assert [shape_of(v.edits).more_words for v in made] == [1, 1]
    plain = one_case("A woman didn't like the film, and the store wasn't big.", ["gender"], groups={"gender": ["male"]})
    made = Placebos(dictionaries=ALL).placebos(plain, 2, Random(0))
    assert [shape_of(v.edits).more_words for v in made] == [0, 0]


def test_joint_placebos_have_the_shape_of_their_edits() -> None:
    from auditor.run.rounds import with_placebos

    case = one_case(RICH + " He didn't ask again, and nobody was there.", ["gender", "nationality"], per_seed=4)
    made = with_placebos(case, Placebos(dictionaries=ALL), per_seed=4, seed=7)
    joint = [v for v in made.variants if v.order == 2]
    arms = {arm: [shape_of(v.edits) for v in joint if shape_of(v.edits).arm == arm] for arm in Arm}
    assert len(arms[Arm.PLACEBO]) == len(arms[Arm.EDITED]) == 4
    assert {s.spans for s in arms[Arm.PLACEBO]} == {s.spans for s in arms[Arm.EDITED]}
    words = {arm: sorted(s.more_words for s in shapes) for arm, shapes in arms.items()}
    assert words[Arm.PLACEBO] == words[Arm.EDITED]


def test_a_word_opens_a_sentence_or_follows_a_comma() -> None:
    from auditor.perturb.matching import Matcher

    matcher = Matcher([neutral()])
    found = matcher.scan("The cook left. We saw the cook, but late; all but one.").hits
    assert [(h.start, h.surface) for h in found if h.surface.lower() in ("the", "we", "but")] == [
        (0, "The"), (15, "We"), (32, "but"),
    ]  # fmt: skip


def test_text_that_the_model_does_not_see_is_left_alone() -> None:
    text = "The woman left. The lawyer saw the movie in the city."
    case = one_case(text, ["gender"], limit_chars=lambda _: 16)
    for variant in Placebos(dictionaries=ALL, limit_chars=lambda _: 16).placebos(case, None, Random(0)):
        assert str(variant.input).endswith("The lawyer saw the movie in the city.")


def test_the_draw_alone_decides() -> None:
    case = one_case(RICH)
    make = Placebos(dictionaries=ALL).placebos
    assert make(case, None, Random(3)) == make(case, None, Random(3))
    assert any(make(case, None, Random(3)) != make(case, None, Random(seed)) for seed in range(4, 8))


PIECES = st.sampled_from(sorted({t.text for d in (*ALL, neutral()) for t in d.sources}))
GLUE = st.sampled_from([" ", ". A ", ", an ", " and the ", " met a ", "'s "])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(PIECES, GLUE), min_size=1, max_size=12), st.integers(0, 5))
def test_placebo_records_reproduce_their_texts(parts: list[tuple[str, str]], seed: int) -> None:
    text = "The " + "".join(piece + glue for piece, glue in parts) + "end."
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=ALL, attributes=NAMES, order=1)
    for case in suite.ask(1, Random(0)):
        for variant in case.variants:
            assert check_variant(text, variant) == []
        for variant in Placebos(dictionaries=ALL).placebos(case, 2, Random(seed)):
            assert check_variant(text, variant) == []
            assert variant.order == 1


def test_a_table_row_has_no_placebo() -> None:
    from auditor.core.types import Variant

    case = Case(id="c", suite="s", original=Variant(id="c.o", input={"age": 3}), variants=())
    assert Placebos(dictionaries=ALL).placebos(case, None, Random(0)) == ()


@pytest.mark.parametrize("text", ["the big deal", "job interview", "film noir", "the movie star", "to film it"])
def test_idioms_are_no_neutral_sites(text: str) -> None:
    from auditor.perturb.matching import Matcher

    assert Matcher([neutral()]).scan(text).hits == []


@pytest.mark.parametrize("task", ["sentiment", "hiring"])
def test_most_embedded_texts_have_a_placebo_for_gender(task: str) -> None:
    from auditor.tasks import load as load_task

    suite = MutationSuite(seeds=load_task(task).seeds(), dictionaries=ALL, attributes=["gender"], order=1, per_seed=2)
    maker = Placebos(dictionaries=ALL)
    made = [bool(maker.placebos(case, 1, Random(0))) for case in suite.ask(1000, Random(0))]
    assert sum(made) >= 0.93 * len(made)


def worded_case(text: str, n: int, attributes: list[str]) -> Case:
    case = one_case(text, attributes, order=1)
    neutral_edits = [v.edits for v in Placebos(dictionaries=ALL).neutral(case, 20, Random(1))]
    return dataclasses.replace(case, variants=(*case.variants, *worded(case, n, neutral_edits)))


def test_both_sides_of_a_text_get_the_same_wordings() -> None:
    case = worded_case(RICH, 3, ["gender", "age"])
    made = [v for v in case.variants if is_wording(v)]
    sides: dict[tuple[str, object], list[object]] = {}
    for v in made:
        assert not check_variant(str(case.original.input), v)
        assert v.order == 1
        own = tuple((e.where, e.target) for e in v.edits if e.kind == "wording")
        real = tuple(e for e in v.edits if e.kind not in ("wording", "agreement"))
        sides.setdefault((v.attributes[0], own), []).append(real)
    for attribute in ("gender", "age"):
        wordings = [found for (name, _), found in sides.items() if name == attribute]
        assert len(wordings) == 3
        assert all(len(found) == 2 and () in found for found in wordings)
        single = [v for v in case.variants if v.attributes == (attribute,) and not is_wording(v)]
        assert len({real for found in wordings for real in found if real}) == min(3, len(single))  # by turns


def test_of_a_primary_pair_only_its_two_groups_get_further_wordings() -> None:
    case = one_case(RICH, ["gender"], order=1)
    neutral_edits = [v.edits for v in Placebos(dictionaries=ALL).neutral(case, 20, Random(1))]
    made = worded(case, 3, neutral_edits, {"gender": ("female", "male")})
    assert len(made) == 6
    assert {d[2] for v in made for d in v.directions} == {"male", "neutral"}
    nobody = one_case("A child saw the British movie in the city.", ["gender"], order=1)
    neutral_edits = [v.edits for v in Placebos(dictionaries=ALL).neutral(nobody, 20, Random(1))]
    made = worded(nobody, 3, neutral_edits, {"gender": ("female", "male")})
    assert len([v for v in made if {d[2] for d in v.directions} & {"female"}]) == 3
    assert len([v for v in made if {d[2] for d in v.directions} & {"male"}]) == 3


def test_a_text_without_neutral_words_gets_sentences_before_or_after_it() -> None:
    case = one_case("She sings.", ["gender"], order=1)
    made = worded(case, 7, [v.edits for v in Placebos(dictionaries=ALL).neutral(case, 20, Random(1))])
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


def test_a_wording_touches_no_word_beside_a_changed_one() -> None:
    case = worded_case("A woman saw an old movie. A big store sold it.", 50, ["gender", "age"])
    made = [v for v in case.variants if is_wording(v)]
    assert made
    for v in made:
        neutral_at = [e.where for e in v.edits if e.kind == "wording"]
        others = [e.where for e in v.edits if e.kind not in ("wording", "agreement")]
        assert all(a[0] >= b[1] + GAP or b[0] >= a[1] + GAP for a in neutral_at for b in others)
    assert not any("movie" not in str(v.input) for v in made if v.attributes == ("age",))
    assert any("film" in str(v.input) for v in made if v.attributes == ("gender",))


def test_a_placebo_in_the_same_words_is_not_asked_twice() -> None:
    case = one_case(RICH, ["gender"], order=1)
    (placebo,) = Placebos(dictionaries=ALL).neutral(case, 1, Random(1))[:1]
    kept = tuple(
        dataclasses.replace(e, attribute="gender", kind="placebo" if e.kind == "wording" else e.kind)
        for e in placebo.edits
    )
    beside = dataclasses.replace(case, variants=(*case.variants, dataclasses.replace(placebo, id="p", edits=kept)))
    made = worded(beside, 1, [placebo.edits])
    assert len(made) == 1
    assert not any(v.input == placebo.input for v in made)
    assert len(worded(case, 1, [placebo.edits])) == 2


def test_a_wording_is_another_arm_of_the_same_comparison() -> None:
    case = worded_case(RICH, 2, ["gender"])
    arms = {shape_of(v.edits).arm for v in case.variants}
    assert arms == {Arm.EDITED, Arm.PLACEBO, Arm.REWORDED}
    for v in case.variants:
        shape = shape_of(v.edits)
        if shape.arm == Arm.REWORDED:
            assert shape.attributes == ("gender",)
            assert [d[1] for d in shape.directions] == ["female"]


def test_one_spelling_has_other_words_at_another_place() -> None:
    """*But* that opens a sentence has two of the three words that it has behind a comma."""
    text = "The woman told the man, but he left her. But nobody saw him, and she was sad."
    case = one_case(text, ["gender"])
    made = [v.input for n in range(40) for v in Placebos(dictionaries=ALL).placebos(case, None, Random(n))]
    assert any("but as it happens" in one for one in made if isinstance(one, str))
    assert not any("But as it happens" in one for one in made if isinstance(one, str))
