"""The dependency invariant: verdicts and reasons; it equals the published algorithms in tests/property."""

from __future__ import annotations

import pytest

from auditor.core.types import Case, Variant
from auditor.perturb.gate.dependency import DependencyInvariant
from auditor.text.parse import MAX_CHARS, Parser


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
