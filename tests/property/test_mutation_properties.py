from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.types import Edit, SourceText
from auditor.perturb.dictionaries import load
from auditor.perturb.mutation import MutationSuite
from auditor.testing import check_variant
from auditor.text.english import article_for
from tests.planted.edit_set import mutate

NAMES = ("gender", "nationality", "race")
ALL = [load(name) for name in NAMES]
TERMS = sorted({t.text for d in ALL for t in d.sources})
GLUE = [
    "a", "an", "An", "the", "is", "was", "'s", "’s", "'", ".", ",", "!", "<br />", "\n", "(", "-", "--", "/", "_",
    "\u0301", "é", "😀", "İ", "friend", "actor", "#",
]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(TERMS), st.sampled_from(TERMS).map(str.upper), st.sampled_from(TERMS).map(str.title),
    st.sampled_from(GLUE), st.text(max_size=3),
)  # fmt: skip
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from([" ", "", "  ", " "])), max_size=25).map(
    lambda parts: "".join(p + s for p, s in parts)
)
ONE_TO_ONE = [
    ("woman", "man"), ("women", "men"), ("girl", "boy"), ("mother", "father"), ("mom", "dad"),
    ("sisters", "brothers"), ("wife", "husband"), ("actress", "actor"), ("queen", "king"), ("she", "he"),
    ("herself", "himself"), ("heroine", "hero"), ("niece", "nephew"), ("waitresses", "waiters"), ("heiress", "heir"),
    ("ladies", "gentlemen"),
]  # fmt: skip
PARTS = st.tuples(
    st.sampled_from(ONE_TO_ONE),
    st.sampled_from(["a", "an", "the", "this"]),
    st.sampled_from([str.lower, str.upper, str.capitalize]),
)


def undone(text: str, edits: tuple[Edit, ...]) -> str:
    """Return the original text: with earlier edits taken back, ``where`` holds in what is left."""
    for edit in edits:
        start = edit.where[0]
        assert text[start:].startswith(edit.target)
        text = text[:start] + edit.source + text[start + len(edit.target) :]
    return text


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.sampled_from([1, 3]))
def test_edits_reproduce_every_variant_and_reverse(text: str, per_seed: int) -> None:
    suite = MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=ALL, order=3, per_seed=per_seed)
    for case in suite.ask(1, Random(0)):
        assert case.original.input == text
        choices = [v.choices for v in case.variants]
        assert len(set(choices)) == len(choices)
        for variant in case.variants:
            assert check_variant(text, variant) == []
            assert variant.order >= 1
            assert variant.choices
            assert all(e.attribute in variant.groups for e in variant.edits)
            assert undone(str(variant.input), variant.edits) == text


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.sampled_from(NAMES))
def test_identity_edit_is_a_no_op(text: str, attribute: str) -> None:
    for group in sorted(load(attribute).groups):
        assert set(mutate(text, attribute, group, group)) <= {text}


@settings(max_examples=80, deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=6))
def test_there_and_back_again(parts: list[Any]) -> None:
    def write(side: int) -> str:
        words = []
        for pair, article, case in parts:
            word = pair[side]
            words.append(f"{article_for(word) if article in {'a', 'an'} else article} {case(word)}, so")
        return "once " + " ".join(words) + " x."

    female, male = write(0), write(1)
    assert mutate(female, "gender", "female", "male") == [male]
    assert mutate(male, "gender", "male", "female") == [female]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_survived(text: str) -> None:
    MutationSuite(seeds=[SourceText(id="s", text=text)], dictionaries=ALL).ask(1, Random(0))
