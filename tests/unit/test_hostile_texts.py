"""Apostrophes, slashes and invisible characters in texts; short forms in dictionary files."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from auditor.contrib.hinter.mutants import HinterSuite
from auditor.core.errors import ConfigError, DataFileError, UnknownPlugin
from auditor.core.types import Edit, SourceText
from auditor.perturb import dictionaries
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.substitution import Choice, fits


def variants(text: str, attribute: str = "gender") -> set[str]:
    suite = MutationSuite(
        seeds=[SourceText(id="1", text=text)],
        dictionaries=[dictionaries.load(attribute)],
        attributes=[attribute],
        order=1,
        per_seed=None,
    )
    return {str(v.input) for case in suite.ask(1, Random(0)) for v in case.variants}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The actress' role was small.", "The actor's role was small."),
        ("The actress\u2019 role was small.", "The actor\u2019s role was small."),
        ("The actress's role was small.", "The actor's role was small."),
        ("THE LADIES' ROOM", "THE GENTLEMEN'S ROOM"),
        ("The ladies' room", "The gentlemen's room"),
        ("He left his/her bag.", "She left her/his bag."),
        ("Is it his/hers?", "Is it hers/his?"),
    ],
)
def test_possessives_are_repaired(text: str, wanted: str) -> None:
    assert wanted in variants(text)


@pytest.mark.parametrize(
    "text",
    [
        "'The ladies' he wrote.",
        "\u2018Dear ladies\u2019 she began.",
        "The word 'actress' was there.",
        "A \u2018ladies\u2019 day.",
    ],
)
def test_a_closing_quotation_mark_is_no_apostrophe(text: str) -> None:
    found = variants(text)
    assert found
    assert not any("'s" in v or "\u2019s" in v for v in found)


def test_the_apostrophe_of_an_earlier_quotation_does_not_count() -> None:
    assert "'Yes,' said the gentlemen's coach." in variants("'Yes,' said the ladies' coach.")
    assert "It's the gentlemen's room." in variants("It's the ladies' room.")


@pytest.mark.parametrize("tie", ["\u00ad", "\u200c", "\u200d", "\u2060"])
def test_a_word_divided_by_something_invisible_is_left_alone(tie: str) -> None:
    assert variants(f"the wo{tie}man left") == set()
    assert variants(f"the man{tie}age left") == set()
    assert any("wo" + tie + "man and" in v for v in variants(f"the wo{tie}man and the man"))


def test_an_invisible_mark_beside_a_word_does_not_hide_it() -> None:
    assert any(v.startswith("\ufeffWoman ") for v in variants("\ufeffMan is tall."))


@pytest.mark.parametrize("kind", [MutationSuite, HinterSuite])
def test_an_attribute_that_no_dictionary_holds_is_named(kind: type[MutationSuite] | type[HinterSuite]) -> None:
    gender = dictionaries.load("gender")
    seeds = [SourceText(id="1", text="the man")]
    with pytest.raises(UnknownPlugin, match="gendre"):
        kind(seeds=seeds, dictionaries=[gender], attributes=["gendre"])
    with pytest.raises(ConfigError, match="two dictionaries"):
        kind(seeds=seeds, dictionaries=[gender, gender], attributes=["gender"])
    with pytest.raises(ConfigError, match="no attribute"):
        kind(seeds=seeds, dictionaries=[], attributes=None)


HEAD = "attribute: job\ngroups: {a: {}, b: {}}\n"
SLOTS = "slots: {noun.sg: {pos: NN, number: sg, terms: {a: [king, in], b: [duke]}}}\n"


def read(tmp_path: Path, text: str) -> dictionaries.Dictionary:
    path = tmp_path / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return dictionaries.load(path)


def test_one_word_stands_for_a_list_of_one(tmp_path: Path) -> None:
    one = read(tmp_path, HEAD + "needs: {lower: king}\nnot_before: {king: of, '*': size}\n" + SLOTS)
    by_text = {t.text: t for t in one.terms}
    assert by_text["king"].tags == {"lower"}
    assert by_text["in"].tags == frozenset()  # "in" stands in "king", but is not it
    assert by_text["king"].not_before == {"of", "size"}
    assert by_text["duke"].not_before == {"size"}


@pytest.mark.parametrize("groups", ["{no: {}, b: {}}", "{1: {}, b: {}}"])
def test_a_group_that_yaml_reads_as_no_word_is_named(tmp_path: Path, groups: str) -> None:
    with pytest.raises(DataFileError, match=r"groups: .* is not text; put it in quotation marks"):
        read(tmp_path, f"attribute: job\ngroups: {groups}\n" + SLOTS)


def choice(*spans: tuple[int, int]) -> Choice:
    edits = tuple(
        Edit(attribute="a", kind="swap", source_group="x", target_group="y", source="s", target="t", where=span)
        for span in spans
    )
    return Choice("a", "y", (), 0, edits)


@pytest.mark.parametrize(
    ("other", "apart"),
    [
        ((5, 9), True),
        ((4, 9), False),
        ((0, 2), True),
        ((0, 3), False),
        ((2, 5), False),
        ((3, 4), False),
        ((0, 9), False),
    ],
)
def test_edits_of_two_choices_may_touch_and_not_overlap(other: tuple[int, int], apart: bool) -> None:
    """The one choice changes characters 2 to 4; one that ends or begins inside it cannot be made with it."""
    assert fits([choice((2, 5)), choice(other)]) is apart
    assert fits([choice(other), choice((2, 5))]) is apart


def test_two_people_get_two_names() -> None:
    found = variants("Emily met Anne.", "names")
    assert found
    for text in found:
        first, _, second = text.rstrip(".").split()
        assert first != second


def test_a_term_does_not_reach_over_a_blank_line() -> None:
    assert any("trans man" in v.replace("\n", " ") for v in variants("the trans\nwoman left"))
    assert not any(v.startswith("the trans man") for v in variants("the trans\n\nwoman left"))
    assert "the trans\n\nman left" in variants("the trans\n\nwoman left")
