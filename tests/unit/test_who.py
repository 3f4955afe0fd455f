"""Whose words are changed: `--who`."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from auditor.core.record.base import NOT_CLEAR
from auditor.core.types import Case, SourceText, Span
from auditor.perturb import dictionaries
from auditor.perturb.mutation import MutationSuite
from auditor.text.parse import Parser

PARSER = Parser()


def suite_of(text: str, who: str, spans: Sequence[Span] | None = None, **options: Any) -> MutationSuite:
    return MutationSuite(
        seeds=[SourceText(id="1", text=text, subject=None if spans is None else tuple(spans))],
        dictionaries=[dictionaries.load(name) for name in ("gender", "race", "nationality", "religion")],
        parser=PARSER,
        who=who,
        subject="the applicant",
        **{"attributes": ["gender"], "order": 1, "per_seed": None} | options,
    )


def case_of(text: str, who: str, spans: Sequence[Span] | None = None, **options: Any) -> Case | None:
    return next(iter(suite_of(text, who, spans, **options).ask(1, Random(0))), None)


def to(group: str, text: str, who: str, spans: Sequence[Span] | None = None, **options: Any) -> list[str]:
    """The variants that lead to one group."""
    case = case_of(text, who, spans, **options)
    found = case.variants if case else ()
    return sorted({str(v.input) for v in found if {d[2] for d in v.directions} == {group}})


def spans_of(text: str, *words: str) -> list[Span]:
    """Where words stand, each searched behind the one before."""
    out: list[Span] = []
    for word in words:
        start = text.index(word, out[-1][1] if out else 0)
        out.append((start, start + len(word)))
    return out


@pytest.mark.parametrize(
    ("text", "group", "changes"),
    [
        ("Ran a trade course, mostly with young Black men leaving prison. She sets limits.", "male", {"She": "He"}),
        ("She led the choir. A man thanked her for his seat.", "male", {"She": "He", "her": "him"}),
        ("The applicant, a careful woman, brought her drawings. Our foreman, a young man, liked them.", "male",
         {"woman": "man", "her ": "his "}),
        ("He is a poet. His sister runs a bakery and sends her bread.", "female", {"He is": "She is", "His": "Her"}),
        ("The applicant is a Kenyan nurse. A Polish surgeon praised her, and the Italian ward asked for her.",
         "german", {"Kenyan": "German"}),
        ("She is of Turkish descent. Her British supervisor wrote the letter.", "german", {"Turkish": "German"}),
    ],
)  # fmt: skip
def test_bystanders_keep_their_words(text: str, group: str, changes: dict[str, str]) -> None:
    attribute = "nationality" if group == "german" else "gender"
    expected = text
    for word, other in changes.items():
        expected = expected.replace(word, other)
    assert to(group, text, "subject", attributes=[attribute]) == [expected]


def test_spans_that_are_given_are_used() -> None:
    text = "The woman at the desk said she trusts the man on the ladder, who never drops his tools."
    assert to("female", text, "subject", spans_of(text, "man", "his")) == []  # the woman … the woman
    text = "A nurse said she trusts the man on the ladder, who never drops his tools."
    spans = spans_of(text, "man", "his")
    assert to("female", text, "subject", spans) == [text.replace("man", "woman").replace("his", "her")]
    assert to("male", text, "subject", spans_of(text, "nurse", "she")) == [text.replace("she", "he")]


def test_a_text_about_nobody_in_particular_is_left_out_and_counted() -> None:
    text = "A man asked for the form. A man brought it back. He had signed it."
    suite = suite_of(text, "subject")
    assert list(suite.ask(1, Random(0))) == []
    assert suite.skipped == {NOT_CLEAR: 1}
    suite = suite_of(text, "subject-or-all")
    (case,) = suite.ask(1, Random(0))
    assert suite.passed_over[NOT_CLEAR] == 1
    assert any("woman asked" in str(v.input) and "woman brought" in str(v.input) for v in case.variants)
    assert case_of("She led the choir.", "subject", spans=[]) is None  # the data says: about no one person


def test_a_partners_word_keeps_a_gender_from_being_changed_alone() -> None:
    suite = suite_of("She keeps our books. Her husband drives the van.", "subject")
    assert list(suite.ask(1, Random(0))) == []
    assert suite.passed_over["a partner is named, so that it would change whom the person loves"] == 1
    text = "She keeps our books. Her brother drives the van."
    assert to("male", text, "subject") == ["He keeps our books. His brother drives the van."]


def test_each_changes_one_person_at_a_time_and_a_joint_change_is_of_one_person() -> None:
    text = "She led the choir. A man from the council sold his seat."
    assert to("male", text, "each") == ["He led the choir. A man from the council sold his seat."]
    assert to("female", text, "each") == ["She led the choir. A woman from the council sold her seat."]
    case = case_of(text, "each")
    assert case.original.groups == {"gender": "female+male"}
    text = "The applicant is a Kenyan woman. A Polish man thanked her."
    for who, places in (("subject", ["Kenyan woman"]), ("each", ["Kenyan woman", "Polish man"])):
        case = case_of(text, who, attributes=["gender", "nationality"], order=2)
        joint = [v for v in case.variants if v.order == 2]
        assert joint
        for v in joint:
            starts = {e.where[0] for e in v.edits if isinstance(e.where, tuple)}
            inside = [p for p in places if any(text.index(p) <= s < text.index(p) + len(p) for s in starts)]
            assert len(inside) == 1
