"""HInter's own mutation: lower-cased, word boundaries, one pair after the other."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.contrib.hinter.mutants import HinterSuite, Pair, replace, replace_again
from auditor.core.types import SourceText
from auditor.perturb import dictionaries
from auditor.perturb.edits import apply

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def pair(source: str, target: str, attribute: str = "gender") -> Pair:
    return Pair(attribute, source, target, "a", "b")


WORDS = st.lists(st.sampled_from(["man", "men", "old", "the", "a", "woman", "white", "saw"]), max_size=12)


@settings(max_examples=200, deadline=None)
@given(WORDS, st.sampled_from(["man", "old man", "white"]), st.sampled_from(["woman", "white woman", "old"]), WORDS)
def test_edits_amount_to_one_replacement_after_the_other(words: list[str], a: str, b: str, more: list[str]) -> None:
    text = " ".join(words)
    first, second = pair(a, b), pair(b.split()[0], "tall " + "".join(more[:1]), "body")
    edits = replace(text, first)
    expected = re.sub(rf"\b{first.source}\b", first.target, text)
    assert apply(text, edits) == expected
    both = replace_again(text, edits, second)
    assert apply(text, both) == re.sub(rf"\b{second.source}\b", second.target, expected)
    assert all(text[slice(*e.where)] == e.source for e in both)  # type: ignore[misc]


def test_no_sub_word_is_hit() -> None:
    text = "the blacksmith and the black man"
    assert apply(text, replace(text, pair("black", "white"))) == "the blacksmith and the white man"
    assert apply("the blacksmith", replace("the blacksmith", pair("black", "white"))) == "the blacksmith"


def test_joint_variants_have_their_parts_in_the_case(tmp_path: Path) -> None:
    folder = tmp_path / "gender"
    folder.mkdir()
    (folder / "female_male.csv").write_text("woman;man\nwomen;men\n")
    other = tmp_path / "race"
    other.mkdir()
    (other / "african_asian.csv").write_text("nigerian;korean\n")
    suite = HinterSuite(
        seeds=[SourceText(id="1", text="A Nigerian woman met women."), SourceText(id="2", text="Nothing here.")],
        dictionaries=[
            *dictionaries.load_options([str(folder / "female_male.csv")]),
            *dictionaries.load_options([str(other / "african_asian.csv")]),
        ],
    )
    (case,) = suite.ask(10, Random(0))
    assert case.original.input == "a nigerian woman met women."
    texts = {v.input: v.order for v in case.variants}
    assert texts == {
        "a nigerian man met women.": 1,
        "a nigerian woman met men.": 1,
        "a korean woman met women.": 1,
        "a korean man met women.": 2,
        "a korean woman met men.": 2,
    }
    joint = next(v for v in case.variants if v.order == 2)
    assert sum(v.choices < joint.choices for v in case.variants) == 2
    assert suite.skipped["no source word"] == 1


def test_published_pairs_run_as_they_are() -> None:
    files = sorted((SHARED / "hinter_pairs" / "gender").glob("*_*.csv"))
    if not files:
        pytest.skip("the published pair files are not beside this checkout")
    suite = HinterSuite(
        seeds=[SourceText(id="1", text="The girl and her girlfriend saw an actress.")],
        dictionaries=dictionaries.load_options([str(file) for file in files]),
        order=1,
    )
    (case,) = suite.ask(1, Random(0))
    assert any("actor" in v.input for v in case.variants)  # type: ignore[operator]
    for variant in case.variants:
        assert apply(case.original.input, variant.edits) == variant.input  # type: ignore[arg-type]
