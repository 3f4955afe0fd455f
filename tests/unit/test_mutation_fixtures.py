from __future__ import annotations

import re

import pytest

from auditor.testing import MUTATOR_FIXTURES, PERSON_FIXTURES, check_mutator, mutate, mutate_subject


@pytest.mark.parametrize("fixture", MUTATOR_FIXTURES, ids=lambda f: f.id)
def test_published_defect(fixture: object) -> None:
    assert check_mutator(mutate, [fixture]) == []  # type: ignore[list-item]


@pytest.mark.parametrize("fixture", MUTATOR_FIXTURES, ids=lambda f: f.id)
def test_published_defect_with_the_parser(fixture: object) -> None:
    from auditor.text.parse import Parser

    parser = Parser("embedded")
    assert check_mutator(lambda *a: mutate(*a, parser=parser), [fixture]) == []  # type: ignore[list-item]


@pytest.mark.parametrize("fixture", PERSON_FIXTURES, ids=lambda f: f.id)
def test_the_words_of_one_person(fixture: object) -> None:
    assert check_mutator(mutate_subject, [fixture]) == []  # type: ignore[list-item]


def test_a_mutator_that_changes_everybody_fails_on_persons() -> None:
    assert len(check_mutator(mutate, PERSON_FIXTURES)) >= 6


def test_fixtures_are_distinct_and_consistent() -> None:
    fixtures = (*MUTATOR_FIXTURES, *PERSON_FIXTURES)
    assert len({f.id for f in fixtures}) == len(fixtures)
    for one in fixtures:
        for good in one.must_equal_one_of:
            assert not any(re.search(rf"(?<!\w){re.escape(bad)}", good.lower()) for bad in one.must_not_contain)


def sequential(text: str, attribute: str, source: str, target: str) -> list[str]:
    """What the published tools do: lower-case, then one replacement after the other."""
    swaps = {
        "gender": [
            ("father", "mother"),
            ("mother", "father"),
            ("woman", "man"),
            ("man", "woman"),
            ("his", "hers"),
            ("her", "him"),
            ("she", "he"),
        ],
        "race": [("white", "asian"), ("black", "asian"), ("asian", "white")],
    }
    out = text.lower()
    for a, b in swaps.get(attribute, []):
        out = out.replace(a, b)
    return [out]


def test_attributes_that_no_run_looks_for_by_default() -> None:
    assert mutate("A gay man.", "sexual_orientation", "gay", "straight") == ["A straight man.", "A heterosexual man."]


def test_the_suite_sees_a_sequential_mutator() -> None:
    failed = {f.fixture for f in check_mutator(sequential)}
    assert {
        "race-whitespace",
        "race-blacksmith",
        "his-possessive",
        "mother-and-father",
        "man-and-woman",
        "case-kept",
    } <= failed


def test_doing_nothing_is_a_failure_where_a_group_is_named() -> None:
    failed = {f.fixture for f in check_mutator(lambda *_: [])}
    assert failed == {f.id for f in MUTATOR_FIXTURES if f.must_equal_one_of}


def test_chance_is_a_failure() -> None:
    results = iter(["The blue car is hers.", "The blue car is his.", "The blue car is hers."])
    fixture = next(f for f in MUTATOR_FIXTURES if f.id == "his-independent")
    (failure,) = check_mutator(lambda *_: [next(results)], [fixture])
    assert failure.problem == "a second call returned something else"
