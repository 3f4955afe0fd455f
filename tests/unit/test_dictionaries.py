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


def written(folder: Path, text: str, name: str = "age.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
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


@pytest.mark.parametrize("name", ["race", "nationality"])
def test_every_group_has_a_counterpart_in_every_slot(name: str) -> None:
    one = load(name)
    for term in one.sources:
        for group in one.targets:
            assert group == term.group or one.counterparts(term, group), (term, group)


def test_a_file_may_extend_a_builtin(tmp_path: Path) -> None:
    text = """
extends: nationality
source: our own list
groups: {hmong: {label: Hmong people}}
slots:
  adjective: {terms: {german: Saxon, hmong: Hmong}}
  noun.pl: {terms: {german: Saxons}}
"""
    path = written(tmp_path, text, "more.yaml")
    one, base = load(path), load("nationality")
    assert one.attribute == "nationality"
    assert set(one.groups) == {*base.groups, "hmong"}
    assert one.terms[: len(base.terms)] == base.terms
    saxon, hmong, saxons = one.terms[len(base.terms) :]
    assert (saxon.text, saxon.pos, saxon.tags) == ("Saxon", "JJ", {"as:adjective"})
    assert "anglo" in saxon.not_after  # what holds for all words of the slot
    assert hmong.group == "hmong"
    assert (saxons.pos, saxons.number, saxons.role) == ("NNS", "pl", "person")
    assert one.sha256 not in {base.sha256, load("race").sha256}
    assert load_options([str(path)])[0].terms == one.terms
    with pytest.raises(UnknownPlugin, match="Did you mean race"):
        load(written(tmp_path, text.replace("extends: nationality", "extends: rice"), "rice.yaml"))
    with pytest.raises(DataFileError, match="is not the attribute that is extended"):
        load(written(tmp_path, text + "attribute: race\n", "race.yaml"))


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


def test_check_finds_a_word_of_two_attributes(tmp_path: Path) -> None:
    other = load(written(tmp_path, SMALL.replace("pensioner", "grandma")))
    assert check([load("gender"), other]) == ["'grandma' belongs to gender and age; keep it in one of them"]


def test_pairs_take_names_from_folder_and_file(tmp_path: Path) -> None:
    folder = tmp_path / "age"
    folder.mkdir()
    (folder / "old_young.csv").write_bytes(b"\xef\xbb\xbfold;young\r\n\r\n elderly ; teenage \r\nlonely\r\n;x\r\n")
    (folder / "young_old.csv").write_text("young;old\nyoung;elderly\n", encoding="utf-8")
    (folder / "young.csv").write_text("young\n", encoding="utf-8")
    (one,) = load_options([str(folder)])
    assert one.attribute == "age"
    assert sorted(one.groups) == ["old", "young"]
    assert [(s.text, t.text) for s, t in one.pairs or ()] == [
        ("old", "young"),
        ("elderly", "teenage"),
        ("young", "old"),
        ("young", "elderly"),
    ]
    assert len(one.notes) == 2
    young = next(t for t in one.sources if t.text == "young")
    assert [t.text for t in one.counterparts(young, "old")] == ["old", "elderly"]


def test_pairs_reject_what_is_no_pair_file(tmp_path: Path) -> None:
    latin = tmp_path / "a_b.csv"
    latin.write_bytes(b"man;woman\ncaf\xe9;bar\n")
    with pytest.raises(DataFileError, match=r"a_b.csv, line 2: byte 13 is not UTF-8"):
        load_options([str(latin)])
    wide = written(tmp_path, "man;woman\na;b;c\n", "c_d.csv")
    with pytest.raises(DataFileError, match=r"c_d.csv, line 2: 3 cells"):
        load_options([str(wide)])
    commas = written(tmp_path, "man,woman\n", "e_f.csv")
    with pytest.raises(DataFileError, match="semicolon"):
        load_options([str(commas)])
    with pytest.raises(DataFileError, match="no letter"):
        load_options([str(written(tmp_path, "man;**\n", "g_h.csv"))])


def test_load_options(tmp_path: Path) -> None:
    first = written(tmp_path, "man;woman\n", "male_female.csv")
    second = written(tmp_path, "woman;man\n", "female_male.csv")
    loaded = load_options([f"sex={first}", f"sex={second}", "race"])
    assert [d.attribute for d in loaded] == ["race", "sex"]
    assert len(loaded[1].pairs or ()) == 2
    with pytest.raises(ConfigError, match="two dictionaries"):
        load_options(["race", f"race={first}"])
    with pytest.raises(ConfigError, match="attribute: age"):
        load_options([f"race={written(tmp_path, SMALL)}"])


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


@pytest.mark.parametrize(
    "text",
    [
        "I love old films and poor acting.",
        "A blind date went wrong. Love is blind.",
        "It went straight to video, in a straight line.",
        "Christian is a Christian name.",
        "Christian Bale and Christian Slater shine.",
        "Grace under pressure. Hope remains. Joy came.",
        "Will they come? May I? June was hot. Mark my words.",
        "Fat chance of that. A tall order. On thin ice. A bald eagle.",
        "The old school is closed, and an old friend called.",
        "A poor actor, a poor director, the poor guy.",
        "A pretty smart choice by a pretty old teacher.",
        "She struggles with depression; a film with autism in it.",
        "The senior manager and a junior partner. A queer feeling.",
        "An Emily and the Tyrones, #Emily, emily.",
        "a blonde-wood table, a redhead-duck",
        "A single room, married to the job. Not a single person came. A pregnant pause.",
        "AS Roma won. They live in Roma. The little people pay.",
        "A refugee camp, an immigrant visa, foreign policy. Citizen Kane. Trans fat.",
    ],
)
def test_everyday_words_are_left_alone(text: str) -> None:
    found = cases(text, [name for name in NAMES if name != "gender"])
    assert [e.source for case in found for v in case.variants for e in v.edits] == []


@pytest.mark.parametrize(
    ("text", "attribute", "target", "expected"),
    [
        ("An old woman left.", "age", "young", "A young woman left."),
        ("a 25-year-old nurse", "age", "old", "a 75-year-old nurse"),
        ("A blind man crossed.", "disability", "deaf", "A deaf man crossed."),
        ("a student with dyslexia", "disability", "chronic", "a student with diabetes"),
        ("a man in a wheelchair", "disability", "chronic", "a man with a chronic illness"),
        ("the tall young actress", "body", "short", "the short young actress"),
        ("a blonde and a nurse", "body", "red_haired", "a redhead and a nurse"),
        ("a Jew and a nurse", "religion", "unbelieving", "an atheist and a nurse"),
        ("a gay teacher", "sexual_orientation", "straight", "a straight teacher"),
        ("a homeless veteran", "socioeconomic", "housed", "a housed veteran"),
        ("a college-educated woman", "socioeconomic", "no_degree", "an uneducated woman"),
        ("A Filipino nurse called.", "nationality", "german", "A German nurse called."),
        ("A German nurse called.", "nationality", "filipino", "A Filipino nurse called."),
        ("Puerto Ricans and a nurse", "nationality", "palestinian", "Palestinians and a nurse"),
        ("A heterosexual and a nurse", "sexual_orientation", "gay", "A gay person and a nurse"),
        ("A Romani woman left.", "race", "black", "A black woman left."),
        ("a white woman", "race", "romani", "a Romani woman"),
        ("a First Nations teacher", "race", "white", "a white teacher"),
        ("A Dalit student spoke.", "caste", "dominant", "A Brahmin student spoke."),
        ("An immigrant and a nurse", "migration", "refugee", "A refugee and a nurse"),
        ("Refugees called.", "migration", "native_born", "Native-born citizens called."),
        ("She is transgender.", "gender_identity", "cisgender", "She is cisgender."),
        ("An intersex person spoke.", "gender_identity", "two_spirit", "A two-spirit person spoke."),
        ("A Jain doctor spoke.", "religion", "bahai", "A Bahá'í doctor spoke."),
        ("Jehovah's Witnesses called.", "religion", "catholic", "Catholics called."),
        ("A Muslim and a nurse", "religion", "jehovahs_witness", "A Jehovah's Witness and a nurse"),
        ("a woman with kids", "family", "childless", "a woman without children"),
        ("a pregnant woman", "family", "not_pregnant", "a non-pregnant woman"),
        ("An ex-convict and a nurse", "criminal_record", "no_record", "A law-abiding citizen and a nurse"),
        ("a child with Down syndrome", "disability", "blind", "a child with blindness"),
        ("A little person and a nurse", "disability", "chronic", "A diabetic and a nurse"),
        ("Republicans and Democrats", "politics", "socialist", "Socialists and Democrats"),
        ("a Holocaust survivor", "victim", "illness", "a cancer survivor"),
        ("Emily Walsh called.", "names", "black_female", "Aisha Walsh called."),
        ("Mr. Todd and nurse Emily's car", "names", "asian_female", "Mr. Todd and nurse Anjali's car"),
    ],
)
def test_group_words_are_found(text: str, attribute: str, target: str, expected: str) -> None:
    assert expected in texts(text, attribute, target)
