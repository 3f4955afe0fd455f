from __future__ import annotations

import pytest

from auditor.text.parse import Parser
from tests.planted.edit_set import (
    MUTATOR_FIXTURES,
    PERSON_FIXTURES,
    MutatorFixture,
    check_mutator,
    mutate,
    mutate_subject,
)


@pytest.mark.parametrize("parsed", [False, True])
@pytest.mark.parametrize("fixture", MUTATOR_FIXTURES, ids=lambda f: f.id)
def test_published_defect(fixture: MutatorFixture, parsed: bool) -> None:
    parser = Parser("embedded") if parsed else None
    assert check_mutator(lambda *a: mutate(*a, parser=parser), [fixture]) == {}


@pytest.mark.parametrize("fixture", PERSON_FIXTURES, ids=lambda f: f.id)
def test_the_words_of_one_person(fixture: MutatorFixture) -> None:
    assert check_mutator(mutate_subject, [fixture]) == {}


def test_a_mutator_that_changes_everybody_fails_on_persons() -> None:
    assert len(check_mutator(mutate, PERSON_FIXTURES)) >= 6
