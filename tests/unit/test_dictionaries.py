from __future__ import annotations

from pathlib import Path

import pytest

from auditor.core.errors import ConfigError, DataFileError, UnknownPlugin
from auditor.perturb import dictionaries
from auditor.perturb.dictionaries import VIEWS, check, load, load_options, neutral, parse_option, view

PAIRS = Path(__file__).parents[3] / "shared" / "data" / "hinter_pairs"
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
        "age",
        "body",
        "caste",
        "criminal_record",
        "disability",
        "family",
        "gender",
        "gender_identity",
        "migration",
        "names",
        "nationality",
        "politics",
        "race",
        "religion",
        "service",
        "sexual_orientation",
        "socioeconomic",
        "victim",
    ]
    loaded = [load(name) for name in dictionaries.builtin()]
    assert check(loaded) == []
    assert len(load("nationality").groups) >= 30
    assert {"female", "male", "nonbinary", "trans_female", "trans_male", "unmarked"} == set(load("gender").groups)
    for one in loaded:
        assert all(term.slot and term.pos and term.source for term in one.terms)
        assert len(one.sha256) == 64


def test_the_default_attributes_are_few() -> None:
    default = [name for name in dictionaries.builtin() if load(name).default]
    assert default == ["age", "disability", "gender", "nationality", "race", "religion"]
    assert load_options(["body"])[0].default  # what is named is wanted


# HInter's published pairs: 116 race, 230 gender and 98 body terms.
@pytest.mark.parametrize(("name", "published"), [("race", 116), ("gender", 230), ("body", 98)])
def test_views_are_at_least_as_broad_as_the_published_pairs(name: str, published: int) -> None:
    one = view(name)
    words = {t.text.lower() for t in one.terms}
    assert len(words) >= published
    assert words == {t.text.lower() for part in VIEWS[name] for t in load(part).terms}
    assert {t.attribute for t in one.terms} == {name}
    assert all(t.group in one.groups for t in one.terms)


def test_a_view_keeps_traits_apart() -> None:
    body = view("body")
    tall = next(t for t in body.sources if t.text == "tall")
    assert {t.text for g in body.targets for t in body.counterparts(tall, g)} == {"tall", "short"}
    with pytest.raises(UnknownPlugin, match="Did you mean body"):
        view("bdy")


def test_every_marked_group_can_be_written_in_its_own_right() -> None:
    for name in dictionaries.builtin():
        one = load(name)
        written = {t.group for t in one.terms if "source-only" not in t.tags}
        assert set(one.targets) <= written, name


def test_words_that_groups_do_not_use_are_found_and_never_written() -> None:
    for name, words in {
        "sexual_orientation": {"homosexual", "homosexuals"},
        "nationality": {"Philippine"},
        "disability": {"handicapped", "hearing-impaired", "wheelchair-bound"},
        "gender_identity": {"transsexual", "transgendered"},
        "criminal_record": {"felon", "ex-con"},
    }.items():
        one = load(name)
        assert words <= {t.text for t in one.sources}
        assert not words & {t.text for t in one.terms if "source-only" not in t.tags}
    assert not [t.text for t in load("nationality").terms if "citizen" in t.text]


def test_names_have_enough_forms_for_each_gender_and_group() -> None:
    names = load("names")
    assert len(names.groups) == 10
    seen: set[str] = set()
    for group in names.groups.values():
        own = {t.text for t in names.terms if t.group == group.name}
        assert len(own) >= 20
        assert group.source
        assert group.agrees in {"female", "male"}
        assert group.name.endswith(group.agrees)
        assert not own & seen
        seen |= own


def test_name_lists_are_those_of_the_study() -> None:
    path = PAIRS.parent / "names" / "bertrand_mullainathan.csv"
    if not path.is_file():
        pytest.skip("the published name list is not beside the checkout")
    listed = {tuple(line.split(",")[:3]) for line in path.read_text().splitlines()[1:]}
    names = load("names")
    ours = {(t.text, *t.group.split("_")) for t in names.terms if t.group.startswith(("black", "white"))}
    for race in ("black", "white"):
        for gender in ("female", "male"):
            own = [t.text for t in names.terms if t.group == f"{race}_{gender}"]
            known = [(name, race, gender) in listed for name in own]
            assert known == sorted(known, reverse=True)  # each group's last ones are from the other list
            assert sum(known) >= 8
    assert listed - ours == {("Kenya", "black", "female"), ("Jay", "white", "male")}


def test_alternatives_stay_within_the_group() -> None:
    for name in dictionaries.builtin():
        one = load(name)
        for term in one.sources:
            for other in one.alternatives(term):
                assert other.group == term.group
                assert (other.pos, other.number) == (term.pos, term.number)
                assert other.text.lower() != term.text.lower()
                assert "source-only" not in other.tags
    gender = load("gender")
    she = next(t for t in gender.terms if t.text == "she")
    assert gender.alternatives(she) == ()


def test_neutral_words_name_no_group() -> None:
    words = neutral()
    named = {t.text.lower() for n in dictionaries.builtin() for t in load(n).sources}
    assert not named & {t.text.lower() for t in words.terms}
    assert [t.text for t in words.sources if not any(o.slot == t.slot for o in words.terms if o is not t)] == []
    assert len({t.slot for t in words.terms}) >= 50


def test_female_and_male_have_counterparts_in_every_slot() -> None:
    gender = load("gender")
    for term in gender.sources:
        if term.group == "female" and "source-only" not in term.tags:
            assert gender.counterparts(term, "male"), term
        if term.group == "male":
            assert gender.counterparts(term, "female"), term


@pytest.mark.parametrize("name", ["race", "nationality"])
def test_every_group_has_a_counterpart_in_every_slot(name: str) -> None:
    one = load(name)
    for term in one.sources:
        for group in one.targets:
            assert group == term.group or one.counterparts(term, group), (term, group)


def test_counterparts_fall_back_and_say_so() -> None:
    gender = load("gender")
    father = next(t for t in gender.sources if t.text == "father")
    assert [(t.text, t.group) for t in gender.counterparts(father, "nonbinary")] == [("parent", "unmarked")]
    assert [(t.text, t.group) for t in gender.counterparts(father, "trans_female")] == [("mother", "female")]


def test_unknown_name_offers_near_misses() -> None:
    with pytest.raises(UnknownPlugin, match="Did you mean gender"):
        load("gendre")


def test_own_file(tmp_path: Path) -> None:
    one = load(written(tmp_path, SMALL))
    assert one.attribute == "age"
    assert one.targets == ("old", "young")


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
    assert (hmong.group, hmong.source) == ("hmong", "our own list")
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
        (("old: pensioner", "elder: pensioner"), "'elder' is no group"),
        (("pos: NN", "part: NN"), r"field slots.adult.sg.part"),
        (("young: youngster", "young: 3"), "3 is not text"),
        (("young: youngster", "young: '**'"), "no letter or digit"),
        (("young: youngster", "young: [youth, youth]"), "stands twice"),
        (("pos: NN", "needs: magic"), "'magic' is no condition"),
        (("young: {}", "young: {fallback: none}"), "field groups.young.fallback"),
        (("young: {}", "young: {colour: red}"), "field groups.young.colour"),
        (("attribute: age", "attribute: age\ndefault: perhaps"), "neither true nor false"),
        (("slots:", "slots: ]"), "line 4"),
        (("  adult.sg: {pos: NN", "  adult.sg: {pos: [NN"), "no valid YAML"),
    ],
)
def test_malformed_files_name_file_and_field(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = written(tmp_path, SMALL.replace(*change))
    with pytest.raises(DataFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_empty_file(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="expected fields"):
        load(written(tmp_path, ""))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="no such file"):
        load(tmp_path / "none.yaml")


def test_check_finds_a_word_of_two_attributes(tmp_path: Path) -> None:
    other = load(written(tmp_path, SMALL.replace("pensioner", "grandma")))
    assert check([load("gender"), other]) == ["'grandma' belongs to gender and age; keep it in one of them"]


def test_check_finds_everyday_words(tmp_path: Path) -> None:
    loose = load(written(tmp_path, SMALL.replace("pensioner", "Will").replace("youngster", "MAY")))
    assert check([loose]) == [
        f"age: {word!r} is an everyday word, and no condition tells its uses apart" for word in ("MAY", "Will")
    ]
    told = load(written(tmp_path, SMALL.replace("pensioner", "old").replace("pos: NN", "pos: NN, as: noun")))
    assert check([told]) == []
    file = written(tmp_path, "go;stay\n", "a_b.csv")
    (pairs,) = load_options([f"verbs={file}"])
    assert "everyday" in check([pairs])[0]


def test_check_finds_groups_that_no_edit_leads_to(tmp_path: Path) -> None:
    one = load(written(tmp_path, SMALL.replace("old: {}", "old: {}, lost: {}")))
    assert check([one]) == ["age: no word of group 'lost' can be written, so no edit leads to it"]


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


@pytest.mark.parametrize(
    ("option", "parts"),
    [("race=x/pairs.csv", ("race", "x/pairs.csv")), ("x/a=b.csv", (None, "x/a=b.csv")), ("gender", (None, "gender"))],
)
def test_parse_option(option: str, parts: tuple[str | None, str]) -> None:
    assert parse_option(option) == parts


@pytest.mark.parametrize("option", ["", "=x.csv", "race="])
def test_parse_option_rejects(option: str) -> None:
    with pytest.raises(ConfigError):
        parse_option(option)


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


@pytest.mark.skipif(not PAIRS.is_dir(), reason="the published pair files are not beside the checkout")
def test_published_pair_files_load() -> None:
    loaded = {d.attribute: d for d in load_options([str(PAIRS / name) for name in ("race", "gender", "body")])}
    assert sorted(loaded) == ["body", "gender", "race"]
    race = loaded["race"].pairs or ()
    assert ("african", "japanese") in {(s.text, t.text) for s, t in race}
    assert all(s.text == s.text.strip() for d in loaded.values() for s, _ in d.pairs or ())
