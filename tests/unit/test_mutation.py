from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.types import Case, SourceText
from auditor.perturb.dictionaries import load, load_options
from auditor.perturb.edits import apply
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.placebo import Placebos
from auditor.testing import check_variant

ALL = [load(name) for name in ("gender", "nationality", "race")]
DATA = Path(__file__).parents[3] / "shared" / "data"
RICH = "The British director met a black woman. She told her husband that people loved an honest man."


def one_case(text: str, **options: Any) -> Case:
    options.setdefault("dictionaries", ALL)
    (case,) = MutationSuite(seeds=[SourceText(id="s", text=text)], **options).ask(1, Random(0))
    return case


def texts(text: str, target: str, attribute: str = "gender", **options: Any) -> set[str]:
    """The order-1 variants of ``text`` with an edit towards ``target``."""
    options.setdefault("dictionaries", [load(attribute)])
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], order=1, per_seed=None, **options)
    cases = suite.ask(1, Random(0))
    return {str(v.input) for c in cases for v in c.variants if any(e.target_group == target for e in v.edits)}


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("WOMEN FIRST. Women too, women.", "male", "MEN FIRST. Men too, men."),
        (
            "The woman's hat, the women's room, the ladies' room.",
            "male",
            "The man's hat, the men's room, the gentlemen's room.",
        ),
        ("He’s fine, the guy’s fiancé.", "female", "She’s fine, the woman’s fiancée."),
        ("the gentlemen's club", "female", "the ladies' club"),
        ("AN ACTRESS LEFT. An actress left.", "male", "AN ACTOR LEFT. An actor left."),
        ("A man and an heir.", "female", "A woman and an heiress."),
        ("Mrs. Hart, MRS. HART", "male", "Mr. Hart, MR. HART"),
        ("His <b>wife</b> at www.wife.com", "female", "Her <b>husband</b> at www.wife.com"),
    ],
)
def test_case_possessives_and_articles(text: str, target: str, expected: str) -> None:
    assert expected in texts(text, target)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He is late and he always wins.", "They are late and they always win."),
        ("Is he late? What was he thinking?", "Are they late? What were they thinking?"),
        ("He's been here. He's gone. He'd go.", "They've been here. They're gone. They'd go."),
        ("He isn't here, she doesn't know.", "They aren't here, she doesn't know."),
        ("The reason was he left.", "The reason was they left."),
        ("She hurt herself; the book is hers; I saw her.", "They hurt themself; the book is theirs; I saw them."),
        ("HE WAS LATE.", "THEY WERE LATE."),
        ("He tries and sits down.", "They try and sits down."),  # a second verb is left to the validity gate
    ],
)
def test_they_takes_the_verb_next_to_it(text: str, expected: str) -> None:
    assert expected in texts(text, "nonbinary")


def test_a_repair_is_an_edit_of_kind_agreement() -> None:
    case = one_case("An Asian man is here.", dictionaries=[load("race")], per_seed=None)
    variant = next(v for v in case.variants if v.input == "A white man is here.")
    assert [(e.kind, e.source, e.target) for e in variant.edits] == [
        ("agreement", "An", "A"),
        ("swap", "Asian", "white"),
    ]
    assert variant.choices == {("race", (3, 8), "white")}


def test_a_wrong_article_in_the_original_stays() -> None:
    assert "a Asian man" not in texts("an white man", "asian", "race")
    assert texts("an white man", "black", "race") == {
        "an black man",
        "an African American man",
        "an Black American man",
    }


@pytest.mark.parametrize(
    "text",
    [
        "Iron Man and Pretty Woman are films.",
        "I like Stephen King.",
        "A man-made lake and a he-man.",
        "Oh boy! Man, was I wrong.",
        "#women @man man_x wOman",
        "white wine, a black comedy, the film was in black and white",
        "the Asian Cup, Jack Black, the Black Panther, a white collar worker",
        "American Beauty and American Pie",
        "He speaks French; in English with German subtitles",
        "Please polish the table. Polish the table. A flag pole in Turkey.",
        "Their Asian horror films were good; they said so.",
        "North American deer and Latin American soap",
        "cafe\u0301 man\u0301",
    ],
)
def test_everyday_words_are_left_alone(text: str) -> None:
    gender = [] if "He " in text else ["gender"]
    suite = MutationSuite(
        seeds=[SourceText(id="s", text=text)], dictionaries=ALL, attributes=[*gender, "race", "nationality"]
    )
    assert suite.ask(1, Random(0)) == []
    assert suite.skipped == {"names no group": 1}


@pytest.mark.parametrize(
    ("text", "attribute", "source"),
    [
        ("white elderly working-class men", "race", "white"),
        ("a black female lawyer", "race", "black"),
        ("black and white people", "race", "white"),
        ("black 12-year-old boy", "race", "black"),
        ("He is American.", "nationality", "American"),
        ("an American film critic", "nationality", "American"),
        ("the Kenyan and the Swedish teams' captain", "nationality", "Kenyan"),
        ("of Cuban origin", "nationality", "Cuban"),
        ("I met a Pole.", "nationality", "Pole"),
        ("Polish people waited.", "nationality", "Polish"),
        ("two american soldiers", "nationality", "american"),
        ("The King is dead.", "gender", "King"),
    ],
)
def test_people_are_found(text: str, attribute: str, source: str) -> None:
    case = one_case(text, dictionaries=[load(attribute)])
    assert {e.source for v in case.variants for e in v.edits} >= {source}


@pytest.mark.parametrize("text", ["an American film", "Cuban coffee", "He likes Cuban coffee and German beer."])
def test_nations_before_things_are_left_out(text: str) -> None:
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=[load("nationality")])
    assert list(suite.ask(1, Random(0))) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("He was best man, and a man of his word.", "man"),
        ('She saw "The Last Black Man" twice, a Black man in it too.', "Black"),
        ("The writer/director is a man, as a senior actor/singer is.", "actor"),
        ("He works at the California Institute for Men, and men like it.", "Men"),
    ],
)
def test_fixed_words_are_left_alone(text: str, left: str) -> None:
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=[load("gender"), load("race")])
    for case in suite.ask(1, Random(0)):
        assert all(variant.input.find(left) == text.find(left) or left in variant.input for variant in case.variants)


def test_markup_does_not_hide_what_follows_a_pronoun() -> None:
    assert "<strong>His</strong> office is open." in texts("<strong>Her</strong> office is open.", "male")


def test_lower_case_and_sentence_start_decide_the_capital() -> None:
    assert "White men left. The black man stayed." in texts("White men left. The Asian man stayed.", "black", "race")
    assert "Black men left." in texts("Asian men left.", "black", "race")
    assert "a french writer" in texts("an american writer", "french", "nationality")
    assert texts("an american beauty", "french", "nationality") == set()  # a title has no capitals there either


def test_longest_term_wins_over_attributes() -> None:
    case = one_case("The Native American women sang.", order=1)
    assert set(case.original.groups) == {"gender", "race"}


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("the man and the trans woman", "nonbinary", "the man and the nonbinary person"),
        ("A trans woman lost her keys.", "male", "A man lost his keys."),
        ("He is a man.", "trans_female", "She is a trans woman."),
        ("a woman waited", "trans_female", "a trans woman waited"),
        ("these people think", "trans_female", "these trans women think"),
    ],
)
def test_trans_and_nonbinary_groups(text: str, target: str, expected: str) -> None:
    assert expected in texts(text, target)


@pytest.mark.parametrize(
    ("text", "attribute", "wrong"),
    [
        ("A white American opened a shop.", "race", "American American"),
        ("The white American man left.", "race", "American American"),
        ("A black British singer won.", "race", "Native American"),
        ("Two black elderly Canadian women won.", "race", "American"),
        ("A British white man left.", "race", "British Asian American"),
        ("A British Indian doctor called.", "nationality", "American Indian"),
        ("An American Indian called a British Indian.", "nationality", "American Indian called a American Indian"),
    ],
)
def test_no_term_reads_as_another_with_its_neighbours(text: str, attribute: str, wrong: str) -> None:
    found = one_case(text, attributes=[attribute], order=1, per_seed=None)
    assert not [v.input for v in found.variants if wrong in str(v.input)]
    placebos = Placebos(dictionaries=ALL).placebos(found, None, Random(0))
    assert not [v.input for v in placebos if "American American" in str(v.input)]


def test_two_words_of_a_group_do_not_become_one_word_twice() -> None:
    religion = [load("religion")]
    (case,) = MutationSuite(
        seeds=[SourceText(id="s", text="The agnostic secular women met an old Sikh.")],
        dictionaries=religion,
        order=1,
        per_seed=None,
    ).ask(1, Random(0))
    assert case.variants
    assert not [v.input for v in case.variants if re.search(r"\b(\w+) \1\b", str(v.input))]
    assert "The man woman and he she." in texts("The woman man and she he.", "male")


def test_a_seam_within_one_group_is_kept() -> None:
    assert "An Asian American left." in texts("A white American left.", "asian", "race")
    assert "The Asian American and the nurse left." in texts("The white American and the nurse left.", "asian", "race")
    assert "a Native American man from Britain" in texts("a white man from Britain", "native_american", "race")


def test_two_people_never_become_one_word() -> None:
    for text in ("the woman and the trans woman", "the people and the women", "a mother and a parent"):
        for v in one_case(text, dictionaries=[load("gender")], per_seed=None).variants:
            left, right = (side.split(" ", 1)[1] for side in str(v.input).split(" and "))
            assert left != right, v.input


def test_marking_is_recorded() -> None:
    case = one_case("The people left.", dictionaries=[load("gender")])
    assert {e.kind for v in case.variants for e in v.edits} == {"marking"}
    assert case.original.groups == {"gender": "unmarked"}


def test_every_word_of_a_group_is_changed() -> None:
    assert "A woman saw a woman; her husband did not." in texts("A man saw a man; his wife did not.", "female")


@pytest.mark.parametrize("per_seed", [1, 8, None])
def test_every_subset_of_a_joint_choice_is_there(per_seed: int | None) -> None:
    case = one_case("A British man met a black friend.", order=3, per_seed=per_seed)
    assert max(v.order for v in case.variants) == 3
    by_choices = {v.choices for v in case.variants}
    assert len(by_choices) == len(case.variants)
    for variant in case.variants:
        assert check_variant(str(case.original.input), variant) == []
        for size in range(1, variant.order):
            for some in itertools.combinations(variant.attributes, size):
                assert frozenset(c for c in variant.choices if c[0] in some) in by_choices
    orders = [v.order for v in case.variants]
    assert orders == sorted(orders)
    assert [v.id for v in case.variants] == [f"{case.id}.v{i}" for i in range(len(orders))]


def test_per_seed_is_spread_over_targets() -> None:
    case = one_case(RICH, order=2, per_seed=4)
    for attributes in {v.attributes for v in case.variants}:
        some = [v for v in case.variants if v.attributes == attributes]
        assert len(some) == 4
        assert len({v.groups[attributes[-1]] for v in some}) > 1
    race = [v.groups["race"] for v in case.variants if v.attributes == ("race",)]
    assert len(set(race)) == 4


@pytest.mark.parametrize("per_seed", [2, 3, 4, 8])
@pytest.mark.parametrize("seed", range(8))
def test_the_pair_that_is_compared_first_is_in_every_text(per_seed: int, seed: int) -> None:
    def groups(text: str, **options: Any) -> list[str]:
        options = {"order": 1, "per_seed": per_seed, "seed": seed, **options}
        return [v.groups["gender"] for v in one_case(text, dictionaries=[load("gender")], **options).variants]

    about_one = groups("A woman left the house. The woman was late.")
    assert 1 <= about_one.count("male") <= max(1, per_seed // 2)
    assert {"female", "male"} <= set(groups("A child left the house."))
    asked = groups("A woman left the house.", groups={"gender": ["nonbinary"]})
    assert set(asked) == {"nonbinary"}


def test_the_pair_that_is_compared_first_gets_several_words() -> None:
    race = dataclasses.replace(load("race"), primary=("black", "white"))
    for per_seed, wanted in ((8, 3), (4, 2), (2, 1)):
        case = one_case("A white man left.", dictionaries=[race], order=1, per_seed=per_seed)
        about = [v.groups["race"] for v in case.variants]
        assert about.count("black") == wanted
        assert len(about) == per_seed == len({v.input for v in case.variants})
        rest = [name for name in about if name != "black"]
        assert len(set(rest)) == len(rest)


def test_cases_depend_on_seed_and_text_alone() -> None:
    seeds = [SourceText(id=str(i), text=RICH) for i in range(70)]

    def run(texts: Sequence[SourceText], step: int, seed: int = 7) -> list[Case]:
        suite, out = MutationSuite(seeds=texts, dictionaries=ALL, seed=seed), []
        while cases := suite.ask(step, Random(step)):
            out += cases
        return out

    first = run(seeds, 70)
    assert run(seeds, 3) == first
    assert sorted(run(seeds[::-1], 10), key=lambda c: c.id) == sorted(first, key=lambda c: c.id)
    assert run(seeds, 70, seed=8) != first
    assert len({c.id for c in first}) == 70
    assert len(first[0].id) == 17


def test_longer_ids_draw_what_shorter_ones_drew() -> None:
    """Ids had 11 characters, and this was drawn; published figures hang on it."""
    case = one_case(RICH, dictionaries=[load("nationality")], order=1, per_seed=4)
    assert case.id == "c17fea8d803ad912c"
    drawn = [str(v.input).split()[1] for v in case.variants]
    assert drawn == ["Pakistani", "Israeli", "Kenyan", "Filipino"]


def test_other_attributes_do_not_change_what_one_draws() -> None:
    def gender(dictionaries: Sequence[Any]) -> list[object]:
        case = one_case(RICH, dictionaries=dictionaries, order=1, per_seed=2)
        return [v.input for v in case.variants if v.attributes == ("gender",)]

    assert gender([load("gender")]) == gender(ALL) == gender([load("age"), *ALL])


def test_attributes_that_are_not_default_must_be_named() -> None:
    text = "A tall old man left."
    every = [load("age"), load("body")]
    assert set(one_case(text, dictionaries=every).original.groups) == {"age"}
    assert set(one_case(text, dictionaries=every, attributes=["body"]).original.groups) == {"body"}
    with pytest.raises(ConfigError, match="no attribute"):
        MutationSuite(seeds=[], dictionaries=[load("body")])


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


def test_seeds_are_read_lazily() -> None:
    taken = []

    def endless() -> Iterator[SourceText]:
        for i in itertools.count():
            taken.append(i)
            yield SourceText(id=str(i), text="A man left." if i % 2 else "Nobody left.")

    suite = MutationSuite(seeds=endless(), dictionaries=ALL)
    assert len(suite.ask(3, Random(0))) == 3
    assert len(taken) <= 8


def test_truncated_text_makes_no_variant() -> None:
    text = "A man left. A black woman stayed."
    case = one_case(text, limit_chars=lambda t: t.index("A black"))
    assert set(case.original.groups) == {"gender"}
    assert all(e.where < (11, 0) for v in case.variants for e in v.edits if isinstance(e.where, tuple))
    cut = one_case(text, limit_chars=lambda t: t.index("black") + 4)
    assert set(cut.original.groups) == {"gender"}


def test_options_are_checked() -> None:
    for wrong in ({"order": 0}, {"per_seed": 0}, {"dictionaries": []}):
        with pytest.raises(ConfigError):
            MutationSuite(**({"seeds": [], "dictionaries": ALL} | wrong))
    with pytest.raises(ConfigError, match="two dictionaries"):
        MutationSuite(seeds=[], dictionaries=[ALL[0], ALL[0]])
    with pytest.raises(UnknownPlugin, match="Did you mean race"):
        MutationSuite(seeds=[], dictionaries=ALL, attributes=["rac"])


def test_describe_counts_what_was_skipped() -> None:
    suite = MutationSuite(seeds=[SourceText(id="1", text="Rain."), SourceText(id="2", text="A man.")], dictionaries=ALL)
    suite.ask(9, Random(0))
    told = suite.describe()
    assert told["skipped"] == {"names no group": 1}
    assert [d["attribute"] for d in told["dictionaries"]] == ["gender", "nationality", "race"]
    assert all(len(d["sha256"]) == 64 for d in told["dictionaries"])


class Tagger:
    """Tags every token with what the test says."""

    def __init__(self, tag: str) -> None:
        self.tag, self.asked = tag, 0

    def parse(self, sentences: Sequence[str]) -> list[Any]:
        self.asked += 1
        found = []
        for sentence in sentences:
            starts = tuple(i for i in range(len(sentence)) if i == 0 or sentence[i - 1] == " ")
            found.append(SimpleNamespace(starts=starts, tags=(self.tag,) * len(starts)))
        return found


def test_the_parse_settles_her() -> None:
    text = "We watched her dance. We watched her dance."
    possessive, objective = Tagger("PRP$"), Tagger("PRP")
    assert texts(text, "male", parser=possessive) == {"We watched his dance. We watched his dance."}
    assert texts(text, "male", parser=objective) == {"We watched him dance. We watched him dance."}
    assert possessive.asked == 1
    assert texts("We saw her.", "male", parser=possessive) == {"We saw him."}  # nothing follows that she could own


def test_raw_pairs_are_literal_and_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "age"
    folder.mkdir()
    (folder / "old_young.csv").write_text(
        "old man;young man\nelderly;teenage\nC++ (old);Rust (new)\n.*;x1\n".replace(".*;x1\n", "man.*;x1\n"),
        encoding="utf-8",
    )
    pairs = load_options([str(folder)])
    assert "A teenage woman" in texts("An elderly woman", "young", dictionaries=pairs)
    assert "a Rust (new) coder" in texts("a C++ (old) coder", "young", dictionaries=pairs)
    assert texts("The manxyz", "young", dictionaries=pairs) == set()
    assert texts("The man.* said", "young", dictionaries=pairs) == {"The x1 said"}


@pytest.mark.skipif(not (DATA / "hinter_pairs").is_dir(), reason="the published pair files are not beside the checkout")
def test_published_pairs_run() -> None:
    raw = load_options([str(DATA / "hinter_pairs" / name) for name in ("race", "gender", "body")])
    text = "An old Italian teacher and his wife met Japanese people; the actresses liked blonde children."
    case = one_case(text, dictionaries=raw, order=3)
    assert {v.order for v in case.variants} == {1, 2, 3}
    for variant in case.variants:
        assert check_variant(text, variant) == []
    assert {e.source for v in case.variants for e in v.edits} >= {"Italian", "Japanese"}


def test_apply_refuses_nothing_and_changes_nothing_without_edits() -> None:
    assert apply("text \U0001f600\u0301", ()) == "text \U0001f600\u0301"
