"""Dictionary files; group words where they mean a person, and everyday words that look like them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, UnknownPlugin
from auditor.core.types import Case, SourceText
from auditor.perturb import dictionaries
from auditor.perturb.dictionaries import VIEWS, builtin, check, load, load_options, view
from auditor.perturb.mutation import MutationSuite

SMALL = """
attribute: age
groups: {old: {}, young: {}, unmarked: {unmarked: true}}
slots:
  adult.sg: {pos: NN, number: sg, terms: {old: pensioner, young: youngster, unmarked: somebody}}
"""


MORE = """
extends: nationality
source: our own list
groups: {hmong: {label: Hmong people}}
slots:
  adjective: {terms: {german: Saxon, hmong: Hmong}}
  noun.pl: {terms: {german: Saxons}}
"""


def written(folder: Path, text: str | bytes, name: str = "age.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_builtin_dictionaries_are_sound() -> None:
    assert dictionaries.builtin() == [
        "age", "body", "caste", "criminal_record", "disability", "family", "gender", "gender_identity", "migration",
        "names", "nationality", "origin", "politics", "race", "religion", "service", "sexual_orientation",
        "socioeconomic", "victim",
    ]  # fmt: skip
    loaded = [load(name) for name in dictionaries.builtin()]
    assert check(loaded) == []
    assert len(load("nationality").groups) >= 30
    assert {"female", "male", "nonbinary", "trans_female", "trans_male", "unmarked"} == set(load("gender").groups)
    for one in loaded:
        assert all(term.slot and term.pos for term in one.terms)
        assert len(one.sha256) == 64
        assert reading.load_yaml(reading.shipped("dictionaries", f"{one.name}.yaml"))["source"]


# HInter's published pairs: 116 race, 230 gender and 98 body terms.
@pytest.mark.parametrize(("name", "published"), [("race", 116), ("gender", 230), ("body", 98)])
def test_views_are_at_least_as_broad_as_the_published_pairs(name: str, published: int) -> None:
    one = view(name)
    words = {t.text.lower() for t in one.terms}
    assert len(words) >= published
    assert words == {t.text.lower() for part in VIEWS[name] for t in load(part).terms}
    assert {t.attribute for t in one.terms} == {name}
    assert all(t.group in one.groups for t in one.terms)


def test_every_marked_group_can_be_written_in_its_own_right() -> None:
    for name in dictionaries.builtin():
        one = load(name)
        written = {t.group for t in one.terms if "source-only" not in t.tags}
        assert set(one.targets) <= written or name == "origin", name  # names of other languages carry it

    for name in ("race", "nationality"):  # a counterpart of every group in every slot
        one = load(name)
        for term in one.sources:
            assert [g for g in one.targets if g != term.group and not one.counterparts(term, g)] == [], term


def test_a_file_may_extend_a_builtin(tmp_path: Path) -> None:
    path = written(tmp_path, MORE, "more.yaml")
    one, base = load(path), load("nationality")
    assert (one.attribute, set(one.groups)) == ("nationality", {*base.groups, "hmong"})
    assert one.terms[: len(base.terms)] == base.terms
    saxon, hmong, saxons = one.terms[len(base.terms) :]
    assert (saxon.text, saxon.pos, saxon.tags) == ("Saxon", "JJ", {"as:adjective"})
    assert "anglo" in saxon.not_after  # what holds for all words of the slot
    assert hmong.group == "hmong"
    assert (saxons.pos, saxons.number, saxons.role) == ("NNS", "pl", "person")
    assert one.sha256 not in {base.sha256, load("race").sha256}
    assert load_options([str(path)])[0].terms == one.terms
    with pytest.raises(UnknownPlugin, match="Did you mean race"):
        load(written(tmp_path, MORE.replace("extends: nationality", "extends: rice"), "rice.yaml"))
    with pytest.raises(DataFileError, match="is not the attribute that is extended"):
        load(written(tmp_path, MORE + "attribute: race\n", "race.yaml"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("attribute: age", "attribut: age"), "field attribut"),
        (("old: pensioner", "elder: pensioner"), "'elder' is not a group"),
        (("pos: NN", "part: NN"), r"field slots.adult.sg.part"),
        (("young: youngster", "young: '**'"), "no letter or digit"),
        (("young: youngster", "young: [youth, youth]"), "is twice in group"),
        (("pos: NN", "needs: magic"), "'magic' is not a condition"),
        (("young: {}", "young: {fallback: none}"), "field groups.young.fallback"),
        (("young: {}", "young: {colour: red}"), "field groups.young.colour"),
        (("attribute: age", "attribute: age\ndefault: perhaps"), "line 3: field default"),
        (("slots:", "slots: ]"), "line 4"),
        (("  adult.sg: {pos: NN", "  adult.sg: {pos: [NN"), "not valid YAML"),
    ],
)
def test_malformed_files_name_file_and_field(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = written(tmp_path, SMALL.replace(*change))
    with pytest.raises(DataFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_pairs_take_names_from_folder_and_file(tmp_path: Path) -> None:
    folder = tmp_path / "age"
    folder.mkdir()
    written(folder, b"\xef\xbb\xbfold;young\r\n\r\n elderly ; teenage \r\nlonely\r\n;x\r\n", "old_young.csv")
    written(folder, "young;old\nyoung;elderly\n", "young_old.csv")
    written(folder, "young\n", "young.csv")
    (one,) = load_options([str(folder)])
    assert (one.attribute, sorted(one.groups), len(one.notes)) == ("age", ["old", "young"], 2)
    pairs = ["old young", "elderly teenage", "young old", "young elderly"]
    assert [f"{s.text} {t.text}" for s, t in one.pairs or ()] == pairs
    young = next(t for t in one.sources if t.text == "young")
    assert [t.text for t in one.counterparts(young, "old")] == ["old", "elderly"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"man;woman\ncaf\xe9;bar\n", r"a_b.csv, line 2: byte 13 is not UTF-8"),
        ("man;woman\na;b;c\n", r"a_b.csv, line 2: 3 cells"), ("man,woman\n", "semicolon"), ("man;**\n", "no letter"),
    ],
)  # fmt: skip
def test_pairs_reject_what_is_no_pair_file(tmp_path: Path, content: str | bytes, told: str) -> None:
    with pytest.raises(DataFileError, match=told):
        load_options([str(written(tmp_path, content, "a_b.csv"))])


def test_an_attribute_has_one_dictionary_and_a_word_one_attribute(tmp_path: Path) -> None:
    first = written(tmp_path, "man;woman\n", "male_female.csv")
    second = written(tmp_path, "woman;man\n", "female_male.csv")
    loaded = load_options([f"sex={first}", f"sex={second}", "race"])
    assert [d.attribute for d in loaded] == ["race", "sex"]
    assert len(loaded[1].pairs or ()) == 2
    with pytest.raises(ConfigError, match="two dictionaries"):
        load_options(["race", f"race={first}"])
    with pytest.raises(ConfigError, match="attribute: age"):
        load_options([f"race={written(tmp_path, SMALL)}"])
    other = load(written(tmp_path, SMALL.replace("pensioner", "grandma")))
    assert check([load("gender"), other]) == ["'grandma' belongs to gender and age; keep it in one of them"]


ALL = [load(name) for name in builtin()]
NAMES = [d.attribute for d in ALL]


def cases(text: str, attributes: list[str], **options: Any) -> list[Case]:
    suite = MutationSuite(
        seeds=[SourceText(id="s", text=text)], dictionaries=ALL, attributes=attributes, per_seed=None, **options
    )
    return list(suite.ask(1, Random(0)))


def texts(text: str, attribute: str, target: str) -> set[str]:
    return {
        str(v.input)
        for case in cases(text, [attribute], order=1)
        for v in case.variants
        if any(e.target_group == target for e in v.edits)
    }


EVERYDAY = """I love old films and poor acting.
A blind date went wrong. Love is blind.
It went straight to video, in a straight line.
Christian is a Christian name.
Christian Bale and Christian Slater shine.
Grace under pressure. Hope remains. Joy came.
Will they come? May I? June was hot. Mark my words.
Fat chance of that. A tall order. On thin ice. A bald eagle.
The old school is closed, and an old friend called.
A poor actor, a poor director, the poor guy.
A pretty smart choice by a pretty old teacher.
She struggles with depression; a film with autism in it.
The senior manager and a junior partner. A queer feeling.
An Emily and the Tyrones, #Emily, emily.
a blonde-wood table, a redhead-duck
A single room, married to the job. Not a single person came. A pregnant pause.
AS Roma won. They live in Roma. The little people pay.
A refugee camp, an immigrant visa, foreign policy. Citizen Kane. Trans fat.
"""


def test_everyday_words_are_left_alone() -> None:
    others = [name for name in NAMES if name != "gender"]
    found = [case for text in EVERYDAY.splitlines() for case in cases(text, others)]
    assert [e.source for case in found for v in case.variants for e in v.edits] == []


@pytest.mark.parametrize(
    ("text", "attribute", "target", "expected"),
    [
        ("An old woman left.", "age", "young", "A young woman left."),
        ("a 25-year-old nurse", "age", "old", "a 75-year-old nurse"),
        ("A blind man crossed.", "disability", "deaf", "A deaf man crossed."),
        ("a man in a wheelchair", "disability", "chronic", "a man with a chronic illness"),
        ("the tall young actress", "body", "short", "the short young actress"),
        ("a Jew and a nurse", "religion", "unbelieving", "an atheist and a nurse"),
        ("a college-educated woman", "socioeconomic", "no_degree", "an uneducated woman"),
        ("A Filipino nurse called.", "nationality", "german", "A German nurse called."),
        ("Puerto Ricans and a nurse", "nationality", "palestinian", "Palestinians and a nurse"),
        ("A heterosexual and a nurse", "sexual_orientation", "gay", "A gay person and a nurse"),
        ("a First Nations teacher", "race", "white", "a white teacher"),
        ("A Dalit student spoke.", "caste", "dominant", "A Brahmin student spoke."),
        ("Refugees called.", "migration", "native_born", "Native-born citizens called."),
        ("An intersex person spoke.", "gender_identity", "two_spirit", "A two-spirit person spoke."),
        ("A Jain doctor spoke.", "religion", "bahai", "A Bahá'í doctor spoke."),
        ("A Muslim and a nurse", "religion", "jehovahs_witness", "A Jehovah's Witness and a nurse"),
        ("a woman with kids", "family", "childless", "a woman without children"),
        ("An ex-convict and a nurse", "criminal_record", "no_record", "A law-abiding citizen and a nurse"),
        ("a child with Down syndrome", "disability", "blind", "a child with blindness"),
        ("Republicans and Democrats", "politics", "socialist", "Socialists and Democrats"),
        ("a Holocaust survivor", "victim", "illness", "a cancer survivor"),
        ("Mr. Todd and nurse Emily's car", "names", "asian_female", "Mr. Todd and nurse Anjali's car"),
    ],
)
def test_group_words_are_found(text: str, attribute: str, target: str, expected: str) -> None:
    assert expected in texts(text, attribute, target)
