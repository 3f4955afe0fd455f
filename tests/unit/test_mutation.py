"""Edits of one text: words, case, agreement, persons, hostile characters, published defects, and groups that are named."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor import audit
from auditor.agent.tools import DryRun, asked
from auditor.cli.main import run as cli
from auditor.contrib.hinter.mutants import JointFirst
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan
from auditor.core.types import Case, SourceText, Variant
from auditor.perturb import dictionaries
from auditor.perturb.dictionaries import load, load_options
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.placebo import Placebos
from auditor.text.parse import Parser
from tests.planted import edit_set

ALL = [load(name) for name in ("gender", "nationality", "race")]
RICH = "The British director met a black woman. She told her husband that people loved an honest man."


def one_case(text: str, **options: Any) -> Case:
    options.setdefault("dictionaries", ALL)
    (case,) = MutationSuite(seeds=[SourceText(id="s", text=text)], **options).ask(1, Random(0))
    return case


def variants(text: str, target: str | None = None, attribute: str = "gender", **options: Any) -> set[str]:
    """The order-1 variants of ``text``; with an edit towards ``target``."""
    options.setdefault("dictionaries", [load(attribute)])
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], order=1, per_seed=None, **options)
    found = [v for case in suite.ask(1, Random(0)) for v in case.variants]
    return {str(v.input) for v in found if target is None or any(e.target_group == target for e in v.edits)}


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        # case, possessives and articles
        ("WOMEN FIRST. Women too, women.", "male", "MEN FIRST. Men too, men."),
        ("The woman's hat, the women's room, the ladies' room.", "male",
         "The man's hat, the men's room, the gentlemen's room."),
        ("He’s fine, the guy’s fiancé.", "female", "She’s fine, the woman’s fiancée."),
        ("the gentlemen's club", "female", "the ladies' club"),
        ("AN ACTRESS LEFT. An actress left.", "male", "AN ACTOR LEFT. An actor left."),
        ("A man and an heir.", "female", "A woman and an heiress."),
        ("Mrs. Hart, MRS. HART", "male", "Mr. Hart, MR. HART"),
        ("His <b>wife</b> at www.wife.com", "female", "Her <b>husband</b> at www.wife.com"),
        ("The actress' role was small.", "male", "The actor's role was small."),
        ("The actress\u2019 role was small.", "male", "The actor\u2019s role was small."),
        ("The actress's role was small.", "male", "The actor's role was small."),
        ("THE LADIES' ROOM", "male", "THE GENTLEMEN'S ROOM"),
        ("The ladies' room", "male", "The gentlemen's room"),
        ("He left his/her bag.", "female", "She left her/his bag."),
        ("Is it his/hers?", "female", "Is it hers/his?"),
        # the verb next to "they"
        ("He is late and he always wins.", "nonbinary", "They are late and they always win."),
        ("Is he late? What was he thinking?", "nonbinary", "Are they late? What were they thinking?"),
        ("He's been here. He's gone. He'd go.", "nonbinary", "They've been here. They're gone. They'd go."),
        ("He isn't here, she doesn't know.", "nonbinary", "They aren't here, she doesn't know."),
        ("The reason was he left.", "nonbinary", "The reason was they left."),
        ("She hurt herself; the book is hers; I saw her.", "nonbinary", "They hurt themself; the book is theirs; I saw them."),
        ("HE WAS LATE.", "nonbinary", "THEY WERE LATE."),
        ("He tries and sits down.", "nonbinary", "They try and sits down."),  # a second verb is left to the validity gate
        # trans and nonbinary people
        ("the man and the trans woman", "nonbinary", "the man and the nonbinary person"),
        ("A trans woman lost her keys.", "male", "A man lost his keys."),
        ("He is a man.", "trans_female", "She is a trans woman."),
        ("a woman waited", "trans_female", "a trans woman waited"),
        ("these people think", "trans_female", "these trans women think"),
    ],
)  # fmt: skip
def test_a_change_reads_as_english(text: str, target: str, expected: str) -> None:
    assert expected in variants(text, target)


def test_each_variant_about_a_nonbinary_person_has_one_paradigm_of_pronouns() -> None:
    text = "She said her brother saw her; the prize is hers and she did it herself."
    assert set(variants(text, "nonbinary")) == {
        "They said their brother saw them; the prize is theirs and they did it themself.",
        "Ze said zir brother saw zir; the prize is zirs and ze did it zirself.",
        "Xe said xyr brother saw xem; the prize is xyrs and xe did it xemself.",
    }


def test_a_repair_is_an_edit_of_kind_agreement() -> None:
    case = one_case("An Asian man is here.", dictionaries=[load("race")], per_seed=None)
    variant = next(v for v in case.variants if v.input == "A white man is here.")
    told = [(e.kind, e.source, e.target) for e in variant.edits]
    assert told == [("agreement", "An", "A"), ("swap", "Asian", "white")]
    assert variant.choices == {("race", (3, 8), "white")}


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("Iron Man and Pretty Woman are films.", None), ("I like Stephen King.", None), ("cafe\u0301 man\u0301", None),
        ("Oh boy! Man, was I wrong.", None), ("white wine, a black comedy, the film was in black and white", None),
        ("the Asian Cup, Jack Black, the Black Panther, a white collar worker", None),
        ("Please polish the table. Polish the table. A flag pole in Turkey.", None),
        ("an American film, Cuban coffee and German beer", None),  # nations before things
        ("white elderly working-class men", "white"), ("black and white people", "white"), ("I met a Pole.", "Pole"),
        ("He is American.", "American"), ("the Kenyan and the Swedish teams' captain", "Kenyan"),
        ("The King is dead.", "King"),
    ],
)  # fmt: skip
def test_people_are_found_and_everyday_words_are_left_alone(text: str, person: str | None) -> None:
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=ALL, per_seed=None)
    found = {e.source for case in suite.ask(1, Random(0)) for v in case.variants for e in v.edits}
    assert person in found if person else not found
    assert suite.skipped == ({} if person else {"names no group": 1})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("He was best man, and a woman came.", "best man"),
        ('She saw "the third black man" twice, a Black man in it too.', '"the third black man"'),
        ("The writer/director is a man, as a senior actor/singer is.", "actor/singer"),
        ("He works at the California Institute for Men, and men like it.", "Institute for Men"),
    ],
)
def test_fixed_words_are_left_alone(text: str, left: str) -> None:
    found = one_case(text, dictionaries=[load("gender"), load("race")]).variants
    assert [variant.input for variant in found if left not in str(variant.input)] == []


@pytest.mark.parametrize(
    ("text", "attribute", "wrong"),
    [
        ("The white American man left.", "race", "American American"),
        ("Two black elderly Canadian women won.", "race", "American"),
        ("A British white man left.", "race", "British Asian American"),
        ("An American Indian called a British Indian.", "nationality", "American Indian called a American Indian"),
    ],
)
def test_no_term_reads_as_another_with_its_neighbours(text: str, attribute: str, wrong: str) -> None:
    found = one_case(text, attributes=[attribute], order=1, per_seed=None)
    assert not [v.input for v in found.variants if wrong in str(v.input)]
    placebos = Placebos(dictionaries=ALL).placebos(found, None, Random(0))
    assert not [v.input for v in placebos if "American American" in str(v.input)]


def test_two_people_never_become_one() -> None:
    names = variants("Emily met Anne.", attribute="names", attributes=["names"])
    assert names
    assert not [text for text in names if len(set(text.rstrip(".").split())) < 3]
    for text in ("the woman and the trans woman", "the people and the women", "a mother and a parent"):
        for v in one_case(text, dictionaries=[load("gender")], per_seed=None).variants:
            left, right = (side.split(" ", 1)[1] for side in str(v.input).split(" and "))
            assert left != right, v.input


@pytest.mark.parametrize("per_seed", [1, 8, None])
def test_every_subset_of_a_joint_choice_is_there(per_seed: int | None) -> None:
    case = one_case("A British man met a black friend.", order=3, per_seed=per_seed)
    assert max(v.order for v in case.variants) == 3
    by_choices = {v.choices for v in case.variants}
    for variant in case.variants:
        for size in range(1, variant.order):
            for some in itertools.combinations(variant.attributes, size):
                assert frozenset(c for c in variant.choices if c[0] in some) in by_choices
    orders = [v.order for v in case.variants]
    assert orders == sorted(orders)
    assert [v.id for v in case.variants] == [f"{case.id}.v{i}" for i in range(len(orders))]


@pytest.mark.parametrize("per_seed", [2, 3, 8])
@pytest.mark.parametrize("seed", range(2))
def test_the_pair_that_is_compared_first_is_in_every_text(per_seed: int, seed: int) -> None:
    def groups(text: str, **more: Any) -> list[str]:
        found = one_case(text, dictionaries=[load("gender")], order=1, per_seed=per_seed, seed=seed, **more)
        return [v.groups["gender"] for v in found.variants]

    about_one = groups("A woman left the house. The woman was late.")
    assert 1 <= about_one.count("male") <= max(1, per_seed // 2)
    assert {"female", "male"} <= set(groups("A child left the house."))
    asked = groups("A woman left the house.", groups={"gender": ["nonbinary"]})
    assert set(asked) == {"nonbinary"}


def test_cases_depend_on_seed_and_text_alone() -> None:
    seeds = [SourceText(id=str(i), text=RICH) for i in range(34)]

    def run(texts: Sequence[SourceText], step: int, seed: int = 7) -> list[Case]:
        suite, out = MutationSuite(seeds=texts, dictionaries=ALL, seed=seed), []
        while cases := suite.ask(step, Random(step)):
            out += cases
        return out

    first = run(seeds, 34)
    assert run(seeds, 3) == first
    assert sorted(run(seeds[::-1], 10), key=lambda c: c.id) == sorted(first, key=lambda c: c.id)
    assert run(seeds, 34, seed=8) != first
    assert len({c.id for c in first}) == 34
    assert len(first[0].id) == 17


def test_under_a_limit_no_place_is_spent_on_another_verb_form() -> None:
    def towards_they(text: str, per_seed: int | None) -> set[str]:
        case = one_case(text, dictionaries=[load("gender")], per_seed=per_seed)
        return {str(v.input) for v in case.variants if "hey " in str(v.input)}

    assert towards_they("He is late.", None) == {"They are late."}
    assert towards_they("He is late.", 8) == set()
    assert towards_they("He was late.", 8) == {"They were late."}  # both forms are VBD
    suite = MutationSuite(seeds=[SourceText(id="s", text="He is late.")], dictionaries=[load("gender")])
    suite.ask(1, Random(0))
    assert suite.describe()["passed_over"]["needs another verb form"] == 1


def test_truncated_text_makes_no_variant() -> None:
    text = "A man left. A black woman stayed."
    case = one_case(text, limit_chars=lambda t: t.index("A black"))
    assert set(case.original.groups) == {"gender"}
    assert all(e.where < (11, 0) for v in case.variants for e in v.edits if isinstance(e.where, tuple))
    cut = one_case(text, limit_chars=lambda t: t.index("black") + 4)
    assert set(cut.original.groups) == {"gender"}


def test_options_are_checked() -> None:
    for wrong in ({"order": 0}, {"per_seed": 0}, {"dictionaries": []}, {"dictionaries": [ALL[0], ALL[0]]}):
        with pytest.raises(ConfigError):
            MutationSuite(**({"seeds": [], "dictionaries": ALL} | wrong))


def test_raw_pairs_are_literal_and_repaired(tmp_path: Path) -> None:
    (tmp_path / "age").mkdir()
    (tmp_path / "age" / "old_young.csv").write_text("elderly;teenage\nC++ (old);Rust (new)\nman.*;x1\n")
    pairs = load_options([str(tmp_path / "age")])
    assert "A teenage woman" in variants("An elderly woman", "young", dictionaries=pairs)
    assert "a Rust (new) coder" in variants("a C++ (old) coder", "young", dictionaries=pairs)
    assert variants("The manxyz", "young", dictionaries=pairs) == set()
    assert variants("The man.* said", "young", dictionaries=pairs) == {"The x1 said"}


def test_a_closing_quotation_mark_is_no_apostrophe() -> None:
    quoted = ("'The ladies' he wrote.", "The word 'actress' was there.", "A 'ladies' day.")
    for text in (*quoted, "\u2018Dear ladies\u2019 she began.", "A \u2018ladies\u2019 day."):
        found = variants(text)
        assert found
        assert not any("'s" in v or "\u2019s" in v for v in found)
    assert "'Yes,' said the gentlemen's coach." in variants("'Yes,' said the ladies' coach.")
    assert "It's the gentlemen's room." in variants("It's the ladies' room.")


@pytest.mark.parametrize("tie", ["\u00ad", "\u200c", "\u200d", "\u2060"])
def test_a_word_divided_by_something_invisible_is_left_alone(tie: str) -> None:
    assert variants(f"the wo{tie}man left") == set()
    assert variants(f"the man{tie}age left") == set()
    assert any("wo" + tie + "man and" in v for v in variants(f"the wo{tie}man and the man"))
    assert any(v.startswith("\ufeffWoman ") for v in variants("\ufeffMan is tall."))  # beside a word it hides nothing


def test_one_word_stands_for_a_list_of_one(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "attribute: job\ngroups: {a: {}, b: {}}\nneeds: {lower: king}\nnot_before: {king: of, '*': size}\n"
        "slots: {noun.sg: {pos: NN, number: sg, terms: {a: [king, in], b: [duke]}}}\n"
    )
    by_text = {t.text: t for t in dictionaries.load(path).terms}
    assert by_text["king"].tags == {"lower"}
    assert by_text["in"].tags == frozenset()  # "in" stands in "king", but is not it
    assert by_text["king"].not_before == {"of", "size"}
    assert by_text["duke"].not_before == {"size"}


def test_a_term_does_not_reach_over_a_blank_line() -> None:
    assert any("trans man" in v.replace("\n", " ") for v in variants("the trans\nwoman left"))
    assert not any(v.startswith("the trans man") for v in variants("the trans\n\nwoman left"))
    assert "the trans\n\nman left" in variants("the trans\n\nwoman left")


@pytest.mark.parametrize("parsed", [False, True])
@pytest.mark.parametrize("fixture", edit_set.MUTATOR_FIXTURES, ids=lambda f: f.id)
def test_published_defect(fixture: edit_set.MutatorFixture, parsed: bool) -> None:
    parser = Parser("embedded") if parsed else None
    assert edit_set.check_mutator(lambda *a: edit_set.mutate(*a, parser=parser), [fixture]) == {}


@pytest.mark.parametrize("fixture", edit_set.PERSON_FIXTURES, ids=lambda f: f.id)
def test_the_words_of_one_person(fixture: edit_set.MutatorFixture) -> None:
    assert edit_set.check_mutator(edit_set.mutate_subject, [fixture]) == {}


def test_a_mutator_that_changes_everybody_fails_on_persons() -> None:
    assert len(edit_set.check_mutator(edit_set.mutate, edit_set.PERSON_FIXTURES)) >= 6


PAIR = {"age": ["old/young"], "gender": ["female/male"]}
THERE = {("age", "young", "old"), ("gender", "male", "female")}
BACK = {(a, target, source) for a, source, target in THERE}


def between(text: str, groups: Any, kind: Any = MutationSuite) -> tuple[Variant, ...]:
    words = [dictionaries.load("age"), dictionaries.load("gender")]
    found = kind(seeds=[SourceText(id="1", text=text)], dictionaries=words, groups=groups).ask(1, Random(0))
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
    found = between(text, PAIR, kind)
    assert found or (kind is JointFirst and not joint)  # a search asks joint changes alone
    assert all(moves(v) <= THERE | BACK for v in found)
    several = [moves(v) for v in found if v.order == 2]
    assert (joint is None and not several) or (several and all(m == joint for m in several))
    for variant in between(text, {"age": ["old"], "gender": ["female"]}, kind):
        ends = {(attribute, end) for attribute, *both in moves(variant) for end in both}
        assert ends & {("age", "old"), ("gender", "female")}


def test_groups_are_on_disk_and_slips_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["A young man liked the film.", "The woman liked the film."]
    named = ("age:old", "gender:female/male")
    made = audit("sentiment", model="vader", data=texts, attributes="age,gender", groups=named, out=tmp_path)
    plan = json.loads((made.path / "plan.json").read_text(encoding="utf-8"))
    assert plan["plan"]["groups"] == ["age:old", "gender:female/male"]
    assert plan["inputs"]["suite"]["groups"] == {"age": ["old"], "gender": ["female/male"]}
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
