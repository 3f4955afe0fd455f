"""The gate of constructs: the conformance suite, and what it says of other inputs."""

from __future__ import annotations

import pytest

from auditor.core.types import Edit, Variant
from auditor.perturb.gate.constructs import Constructs, edits_of
from auditor.testing import GATE_FIXTURES, GateFixture, check_gate
from auditor.testing.conformance import gate_fixture
from auditor.text.parse import MAX_CHARS, Parser

PARSER = Parser()
FM, MN = "gender:female>male", "gender:male>nonbinary"


@pytest.mark.parametrize("one", GATE_FIXTURES, ids=lambda one: one.id)
def test_the_gate_meets_the_conformance_suite(one: GateFixture) -> None:
    assert check_gate(Constructs(parser=PARSER), [one]) == []


def test_the_suite_tells_a_gate_that_keeps_all_and_one_that_keeps_nothing() -> None:
    class Fixed(Constructs):
        def __init__(self, status: str) -> None:
            super().__init__(parser=PARSER)
            self.status = status

        def check(self, original, variants):  # type: ignore[no-untyped-def]
            return [self._result(v, self.status, "so") for v in variants]  # type: ignore[arg-type]

    good = {one.id for one in GATE_FIXTURES if one.good}
    assert {failure.fixture for failure in check_gate(Fixed("invalid"))} == good
    assert {failure.fixture for failure in check_gate(Fixed("valid"))} == {f.id for f in GATE_FIXTURES} - good


def checked(text: str, *changes: str) -> tuple[str, str]:
    one = gate_fixture("", text, *changes, good=True)
    check = Constructs(parser=PARSER).check(one.original, [one.variant])[0]
    return check.status, check.reason


def test_errors_of_the_original_are_not_the_variants() -> None:
    assert checked("He are late, an woman says.", f"{FM} woman=man") == ("valid", "")
    assert checked("He is late, a woman says.", f"{MN} He=They")[0] == "invalid"


def test_without_edits_words_are_compared() -> None:
    variant = Variant(id="c.v0", input="She sold a his car.")
    found = edits_of("He sold a red car.", variant)
    assert [(e.source, e.target, e.where) for e in found] == [("He", "She", (0, 2)), ("red", "his", (10, 13))]


def test_a_word_that_was_put_in_is_judged_without_edits_too() -> None:
    variant = Variant(id="c.v0", input="A boy came twice.")
    (check,) = Constructs(parser=PARSER).check(Variant(id="c.o", input="A man came."), [variant])
    assert check.status == "valid"


def test_rows_and_long_sentences_are_unknown() -> None:
    gate = Constructs(parser=PARSER)
    row = gate.check(Variant(id="c.o", input={"a": 1}), [Variant(id="c.v0", input={"a": 2})])[0]
    assert row.status == "unknown"
    text = "he " * (MAX_CHARS // 3 + 10)
    long = Variant(id="c.v0", input="she" + text[2:], edits=(
        Edit(attribute="gender", kind="swap", source_group="male", target_group="female", source="he", target="she",
             where=(0, 2)),))  # fmt: skip
    assert gate.check(Variant(id="c.o", input=text), [long])[0].status == "unknown"
