"""``rules``: the nearest compatible antecedent, alone and through an audit from the coreference grammar."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from auditor import audit
from auditor.core import reading
from auditor.models.coreference import Rules
from auditor.perturb.grammar.cases import GrammarSuite


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The nurse told the visitor that she would be late.", "second"),  # no noun has a gender: the nearest
        ("The nurse told the visitor that he would be late.", "second"),
        ("My father called the lady in the shop because he had lost the keys.", "first"),
        ("My father called the lady in the shop because she had lost the keys.", "second"),
        ("The visitor met my aunt after lunch. He had missed the train.", "first"),
        ("My aunt met my niece because he had missed the train.", "second"),  # neither fits: the nearest
        ("The chief executive told the neighbour that he would be late.", "second"),  # tagged as adjectives
        ("My stepmother called the man upstairs about her train ticket.", "first"),
        ("The witness asked the hairdresser about their parcel.", "second"),
        ("When my son saw the lady in the shop, she waved.", "second"),
        ("She would be late.", None),
        ("The nurse told the visitor to wait.", None),
    ],
)
def test_the_nearest_that_fits(rules: Rules, text: str, expected: str | None) -> None:
    assert rules.antecedent(text) == expected


def test_unambiguous_sentences_are_read_as_the_grammar_says(rules: Rules) -> None:
    suite = GrammarSuite(grammar="coreference:unambiguous", cases=100, generation="rand", pairs=True)
    cases = [case for _ in range(2) for case in suite.ask(64, Random(0))]
    right = sum(rules.antecedent(str(case.original.input)) == case.label for case in cases)
    assert len(cases) == 100
    assert right >= 0.99 * len(cases)


def test_every_sentence_of_the_grammar_gets_an_answer(rules: Rules) -> None:
    suite = GrammarSuite(grammar="coreference", cases=60, generation="rand", pairs=True, seed=5)
    texts = [str(v.input) for case in suite.ask(60, Random(0)) for v in (case.original, *case.variants)]
    assert [text for text in texts if rules.antecedent(text) is None] == []


def test_pronouns_and_occupations_do_not_move_a_rule_that_knows_no_gender_of_occupations() -> None:
    result = audit(
        "coreference", model="rules", suite="grammar", suite_options=["grammar=coreference:ambiguous"], limit=30
    )
    assert result.verdicts
    assert not [v for v in result.verdicts if v.outcome == "violation"]


def test_a_planted_stereotype_is_found(tmp_path: Path) -> None:
    def stereotype(text: str) -> str:
        low = text.lower()
        nurse, she = low.find("registered nurse"), " she " in low
        if nurse < 0 or not she:
            return "second"
        return "first" if nurse < 5 else "second"

    text = reading.shipped("grammars", "coreference.yaml").read_text(encoding="utf-8")
    women, men = re.findall(r" +mostly_(?:women|men):\n((?: +- .*\n)+)", text)
    for jobs, kept in ((women, 6), (men, 6)):  # few occupations: each in many cases
        text = text.replace(jobs, "".join(jobs.splitlines(keepends=True)[:kept]))
    (tmp_path / "few.yaml").write_text(text, encoding="utf-8")
    few = f"{tmp_path / 'few.yaml'}:ambiguous"
    result = audit(
        "coreference", model=stereotype, suite="grammar", suite_options=[f"grammar={few}", "generation=rand"],
        limit=150, order=1, seed=3, anyway=True,
    )  # fmt: skip
    wrong = [v for v in result.verdicts if v.outcome == "violation"]
    assert wrong
    words = [t for t in result.record["tokens"][0]["tokens"] if t["family"] == "job"]
    # "She" goes with it as well: the stereotype needs both.
    assert max(words, key=lambda t: t["errors"] / t["n"])["token"] == "the registered nurse"
    assert {t["token"] for t in words if t["errors"]} - {"the registered nurse"}  # those that replaced a nurse
