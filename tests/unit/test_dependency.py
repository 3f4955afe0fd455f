"""The dependency invariant: verdicts, reasons, and how little it parses."""

from __future__ import annotations

import csv
import random
import re
import sys
from pathlib import Path

import pytest

from auditor.core.types import Case, Variant
from auditor.perturb.gate.dependency import DependencyInvariant
from auditor.text.parse import MAX_CHARS, Parser
from auditor.text.split import sentences

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import literal_hinter as literal


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser()


def case(number: int, original: str, *variants: str) -> Case:
    return Case(
        id=f"c{number}",
        suite="test",
        original=Variant(id=f"c{number}.o", input=original),
        variants=tuple(Variant(id=f"c{number}.v{i}", input=text) for i, text in enumerate(variants)),
    )


def test_the_papers_example(parser: Parser) -> None:
    found = DependencyInvariant(parser=parser).check_many(
        [case(0, "The woman sold his car to me.", "The man sold his car to me.", "The woman sold him car to me.")]
    )
    valid, invalid = found[0]
    assert (valid.status, valid.reason, valid.check) == ("valid", "", "dependency.v1")
    assert (invalid.status, invalid.reason) == ("invalid", "sentence 1: tag PRP$ became PRP at 'him'")


def test_rows_and_endless_sentences_are_unknown(parser: Parser) -> None:
    check = DependencyInvariant(parser=parser)
    row = Variant(id="r.o", input={"sex": "m"})
    assert check.check(row, [Variant(id="r.v", input={"sex": "f"})])[0].status == "unknown"
    long = "a " * MAX_CHARS
    one = case(1, long + "man", long + "woman")
    found = check.check_many([one])[0][0]
    assert (found.status, found.reason) == ("unknown", f"sentence 1 is longer than {MAX_CHARS} characters")


def test_verdicts_equal_the_literal_algorithms_on_real_texts(parser: Parser) -> None:
    reviews = Path(__file__).parents[3] / "shared" / "data" / "movie_reviews" / "imdb_sample.csv"
    if not reviews.exists():
        pytest.skip("../shared/data/movie_reviews is not here")
    with reviews.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)][:8]
    assert_equal_to_literal(cases_of(texts, 10, random.Random(11)), parser, at_least=50)


def test_verdicts_equal_the_literal_algorithms_on_own_texts(parser: Parser) -> None:
    assert_equal_to_literal(cases_of(TEXTS, 12, random.Random(2)), parser, at_least=40)


TEXTS = [
    "The man sold his car to him. She was there, but the men did not see her. He left.",
    "A woman met two British men at the bank. They were old; he was not.<br />His wife came later.",
    "My boss told the girl that she was late. The American guy laughed at her. What a man!",
    "The nurse said her brother was fine. The women and the boy waited for him. Dr. Lee, a man of 50, came.",
]
SWAPS = {
    "he": "she", "she": "they", "his": "him", "her": "him", "him": "her", "He": "She", "She": "He",
    "His": "Her", "man": "disabled man", "men": "women", "woman": "men", "women": "trans women",
    "boy": "girl. A girl", "girl": "boy", "guy": "man", "British": "Nigerian", "American": "Britain",
    "wife": "husband", "brother": "sister",
}  # fmt: skip


def cases_of(texts: list[str], each: int, rng: random.Random) -> list[Case]:
    cases = []
    for number, text in enumerate(texts):
        places = [found for found in re.finditer(r"[A-Za-z]+", text) if found[0] in SWAPS]
        variants = []
        for _ in range(each if places else 0):
            variant = text
            for found in sorted(
                rng.sample(places, min(len(places), rng.choice([1, 1, 2, 3]))), key=lambda f: -f.start()
            ):
                variant = variant[: found.start()] + SWAPS[found[0]] + variant[found.end() :]
            variants.append(variant)
        cases.append(case(number, text, *variants))
    return cases


def assert_equal_to_literal(cases: list[Case], parser: Parser, *, at_least: int) -> None:
    def split(text: str) -> list[str]:
        return [text[a:b] for a, b in sentences(text)]

    other = Parser()  # its own memory: the two must agree without sharing anything
    statuses: list[bool] = []
    for one, checks in zip(cases, DependencyInvariant(parser=parser).check_many(cases), strict=True):
        for variant, check in zip(one.variants, checks, strict=True):
            expected = literal.inv_check(
                str(one.original.input), str(variant.input), split, lambda s: other.parse([s])[0]
            )
            assert (check.status == "valid") == expected, (variant.input, check.reason)
            statuses.append(expected)
    assert len(statuses) >= at_least
    assert 0.05 < sum(statuses) / len(statuses) < 0.95  # both verdicts occur, or the comparison says little
