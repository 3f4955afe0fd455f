"""Planted models: their bias is exactly what their rules say."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import ConfigError
from auditor.core.protocols import Reply
from auditor.testing.planted import Planted
from tests.asking import ask, bare

SUBJECTS = {"he": "He", "she": "She"}
NATIONS = {"french": "French", "nigerian": "Nigerian"}


def label(model: Planted, text: str, replicate: int = 0) -> str:
    (reply,) = ask(model, bare(text, replicate=replicate))
    assert isinstance(reply, Reply)
    return reply.text


def square(model: Planted) -> dict[tuple[str, str], str]:
    """The labels of the four texts that name one of two subjects and one of two nations."""
    return {
        (s, n): label(model, f"{SUBJECTS[s]} is the {NATIONS[n]} nurse in a fine film.")
        for s, n in itertools.product(SUBJECTS, NATIONS)
    }


def test_interaction_flips_only_the_joint_text() -> None:
    labels = square(Planted(interaction={"she", "nigerian"}))
    assert {key for key, value in labels.items() if value == "negative"} == {("she", "nigerian")}


def test_additive_weights_at_the_threshold_flip_alone() -> None:
    labels = square(Planted(additive={"she": 1.0, "nigerian": 1.0}))
    assert {key for key, value in labels.items() if value == "positive"} == {("he", "french")}


def test_terms_are_whole_words_of_any_case_and_number() -> None:
    model = Planted(additive={"african american|she": 1.0})
    assert label(model, "AFRICAN   American actors.") == "negative"
    assert label(model, "She.") == "negative"
    assert label(model, "A shed for the American and the African.") == "positive"


@given(
    before=st.text(alphabet="bcdfg ", max_size=20),
    after=st.text(alphabet="bcdfg ", max_size=20),
    terms=st.lists(st.sampled_from(["she", "he", "nigerian", "african american"]), min_size=2, max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_hash_base_does_not_see_person_terms(before: str, after: str, terms: list[str]) -> None:
    model = Planted(base="hash", ignore={"she|he", "nigerian", "african american"}, labels=[str(i) for i in range(50)])
    first, second = (
        f"{before} {article} {term} {term} {after}" for article, term in zip(("a", "an"), terms, strict=True)
    )
    assert label(model, first) == label(model, second)


def test_wobble_is_independent_by_prompt_and_replicate() -> None:
    model = Planted(wobble=0.2, seed=3)

    def said(model: Planted) -> list[bool]:
        return [
            r.text == "negative"
            for r in ask(model, *(bare(f"Film {i}", replicate=r) for i in range(400) for r in range(3)))
        ]

    wobbles = said(model)
    # 1,200 draws at 0.2: a share within 5 standard errors of it.
    assert abs(sum(wobbles) / len(wobbles) - 0.2) < 5 * math.sqrt(0.2 * 0.8 / len(wobbles))
    changed = sum(len(set(wobbles[i : i + 3])) > 1 for i in range(0, len(wobbles), 3))
    assert abs(changed / 400 - (1 - 0.8**3 - 0.2**3)) < 5 * math.sqrt(0.48 * 0.52 / 400)
    assert wobbles == said(model)
    assert wobbles != said(Planted(wobble=0.2, seed=4))


def test_scores_show_additivity_and_interaction() -> None:
    def logit(model: Planted, text: str) -> float:
        (reply,) = ask(model, bare(text))
        assert isinstance(reply, Reply)
        p = reply.scores["positive"]
        assert (reply.text == "positive") == (p > 0.5)
        return math.log(p / (1 - p))

    additive = Planted(additive={"she": 0.7, "nigerian": 0.5}, scores=True)
    joint, she, nigerian, neither = (logit(additive, t) for t in ("she nigerian", "she", "nigerian", "it"))
    assert joint - she - nigerian + neither == pytest.approx(0)
    planted = Planted(interaction={"she", "nigerian"}, scores=True)
    joint, she, nigerian, neither = (logit(planted, t) for t in ("she nigerian", "she", "nigerian", "it"))
    assert joint - she - nigerian + neither == pytest.approx(-2)


def test_spec() -> None:
    model = Planted(
        "wobble=0.03, seed=1, interaction=she|woman+nigerian, additive=she:0.6+african american:0.5,"
        "labels=yes|no,"
        "style=chat, base=constant, scores=true, cacheable=true"
    )
    same = Planted(
        wobble=0.03, seed=1, interaction={"nigerian", "she|woman"}, additive={"african american": 0.5, "she": 0.6},
        labels=("yes", "no"), base="constant", scores=True,
    )  # fmt: skip
    assert model.fingerprint == same.fingerprint
    assert model.fingerprint != Planted().fingerprint
    assert (model.style, model.cacheable, model.deterministic) == ("chat", True, False)
    assert model.name.startswith("planted:wobble=0.03")
    assert Planted().name == "planted"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wobble=2", "wobble should be less than or equal to 1; got '2'"),
        ("wobble=nan", "wobble should be .*; got 'nan'"),
        ("wobble=often", "wobble should be a valid number"),
        ("wobbel=0.1", "'wobbel=0.1' is not an option"),
        ("wobble", "'wobble' is not an option"),
        ("fail=she:1.5", "fail.she should be less than or equal to 1"),
        ("labels=yes", "two or more"),
        ("labels=yes|yes", "two or more"),
        ("labels=a|b|c,scores=true", "exactly two labels"),
        ("threshold=0", "threshold should be greater than 0"),
        ("base=coin", "base should be 'keywords', 'hash' or 'constant'; got 'coin'"),
        ("style=voice", "style should be 'text' or 'chat'"),
        ("interaction=she+--", "not a word"),
        ("scores=maybe", "scores should be a valid boolean"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Planted(spec)
