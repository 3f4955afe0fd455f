"""The fast invariant equals the published algorithms: any sequences, and any texts of a toy parser."""

from __future__ import annotations

from collections.abc import Sequence

import literal_hinter as literal
from hypothesis import example, given, settings
from hypothesis import strategies as st

from auditor.core.types import Case, Variant
from auditor.perturb.dependency import DependencyInvariant, tolerant_table_comp
from auditor.text.parse import MAX_CHARS, Parse, Parser, sentences

SEQUENCES = st.lists(st.sampled_from("abc"), max_size=9)


@settings(deadline=None, max_examples=400)
@given(SEQUENCES, SEQUENCES)
@example(["a", "b"], ["b"])
@example(["b"], ["a", "b"])
def test_tolerant_comparison_equals_algorithm_4(first: list[str], second: list[str]) -> None:
    at = tolerant_table_comp(first, second)
    assert (at is None) == literal.tolerant_table_comp(first, second)
    assert at is None or 0 <= at <= len(second)


@settings(deadline=None, max_examples=200)
@given(SEQUENCES, st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.booleans()), max_size=3))
def test_near_copies_too(first: list[str], edits: list[tuple[int, str, bool]]) -> None:
    second = list(first)
    for place, letter, insert in edits:
        place = min(place, len(second))
        second[place : place if insert else place + 1] = [letter]
    for a, b in ((first, second), (second, first)):
        assert (tolerant_table_comp(a, b) is None) == literal.tolerant_table_comp(a, b)


class Toy:
    """A parser by spelling: the tag is a word's first letter, the relation its length."""

    def parse_one(self, sentence: str) -> Parse:
        words = tuple(sentence.split())
        size = len(words)
        return Parse(
            words=words, tags=tuple(word[0] for word in words), deps=tuple(str(len(word)) for word in words),
            heads=(0,) * size, starts=(0,) * size,
        )  # fmt: skip

    def parse(self, sentences: Sequence[str]) -> list[Parse]:
        return [self.parse_one(sentence) for sentence in sentences]


SENTENCE = st.lists(st.sampled_from(["man", "men", "me", "women", "his", "him", "a"]), min_size=1, max_size=4).map(
    lambda words: " ".join(["It", *words]) + ". "
)
TEXT = st.lists(SENTENCE, min_size=1, max_size=4)


@st.composite
def cases(draw: st.DrawFn) -> list[tuple[str, list[str]]]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        original = draw(TEXT)
        variants = []
        for _ in range(draw(st.integers(1, 6))):
            parts = [part if draw(st.booleans()) else draw(SENTENCE) for part in original]
            variants.append("".join(draw(st.sampled_from([parts, parts, parts, parts[:-1], [*parts, "End."]]))))
        found.append(("".join(original), variants))
    return found


def case(original: str, *variants: str) -> Case:
    changed = tuple(Variant(id=f"{original}.v{n}", input=text) for n, text in enumerate(variants))
    return Case(id=original, suite="toy", original=Variant(id=f"{original}.o", input=original), variants=changed)


@settings(deadline=None, max_examples=120)
@given(cases())
def test_whole_check_equals_algorithm_3(texts: list[tuple[str, list[str]]]) -> None:
    toy = Toy()
    made = [case(original, *variants) for original, variants in texts]
    check = DependencyInvariant(parser=toy)
    for (original, variants), checks in zip(texts, check.check_many(made), strict=True):
        for text, found in zip(variants, checks, strict=True):
            expected = literal.inv_check(original, text, lambda t: [t[a:b] for a, b in sentences(t)], toy.parse_one)
            assert (found.status == "valid") == expected
            assert bool(found.reason) == (found.status == "invalid")


def test_the_papers_example_rows_and_endless_sentences() -> None:
    check, long = DependencyInvariant(parser=Parser()), "a " * MAX_CHARS
    paper = case("The woman sold his car to me.", "The man sold his car to me.", "The woman sold him car to me.")
    (valid, invalid), (unknown,) = check.check_many([paper, case(long + "man", long + "woman")])
    assert (valid.status, valid.reason, valid.check) == ("valid", "", "dependency.v1")
    assert (invalid.status, invalid.reason) == ("invalid", "sentence 1: tag PRP$ became PRP at 'him'")
    assert (unknown.status, unknown.reason) == ("unknown", f"sentence 1 is longer than {MAX_CHARS} characters")
    row, other = (Variant(id=name, input={"sex": name}) for name in "mf")
    assert check.check(row, [other])[0].status == "unknown"
