"""A conformance suite for anything that rewrites a text so that it names another group.

Each fixture is a defect that was seen in a published tool. A mutator is a function
``(text, attribute, source_group, target_group) -> list of rewritten texts``; `check_mutator` runs it over all
fixtures, `mutate` is this project's own.

Examples
--------
>>> check_mutator(mutate)
[]
>>> naive = lambda text, attribute, source, target: [text.replace("his", "hers")]
>>> check_mutator(naive, [f for f in MUTATOR_FIXTURES if f.id == "his-possessive"])[0].output
('He lost hers keys.',)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from auditor.dictionaries import load
from auditor.suites.mutation import MutationSuite, TextParser, apply
from auditor.types import Edit, Seed, Variant

Mutator = Callable[[str, str, str, str], list[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class MutatorFixture:
    """One text and what may come of it.

    ``must_equal_one_of`` lists the acceptable results; empty means that nothing in the text names the source
    group, so that the only acceptable results are none and the text itself. ``must_not_contain`` holds the
    published wrong results: phrases in lower case that begin at a word. ``why`` says what went wrong where.
    """

    id: str
    text: str
    attribute: str
    source_group: str
    target_group: str
    must_equal_one_of: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One fixture that a mutator does not meet: what it returned, and what is wrong with that."""

    fixture: str
    output: tuple[str, ...]
    problem: str


def _case(
    attribute: str, name: str, text: str, direction: str, *good: str, bad: tuple[str, ...] = (), why: str
) -> MutatorFixture:
    source, _, target = direction.partition(">")
    return MutatorFixture(
        id=name,
        text=text,
        attribute=attribute,
        source_group=source,
        target_group=target,
        must_equal_one_of=good,
        must_not_contain=bad,
        why=why,
    )


_M_F, _F_M = "male>female", "female>male"
_SEQUENTIAL = "sequential replacement turns the second word of a pair back into the first"
_PRONOUN = "his always became hers, and her always him, whatever their place in the sentence"

MUTATOR_FIXTURES: tuple[MutatorFixture, ...] = (
    _case(
        "race",
        "race-whitespace",
        "Strip trailing whitespace from the file.",
        "white>asian",
        bad=("asianpace", "whitepace"),
        why="a term was found inside a longer word",
    ),
    _case(
        "race",
        "race-blacksmith",
        "The blacksmith hired a black man named Dr. Smith.",
        "black>asian",
        "The blacksmith hired an Asian man named Dr. Smith.",
        "The blacksmith hired an Asian American man named Dr. Smith.",
        bad=("asiansmith", "a asian"),
        why="a sub-word hit, a wrong article, and the whole text in lower case",
    ),
    _case(
        "race",
        "race-article",
        "An Asian man in Texas",
        "asian>white",
        "A white man in Texas",
        "A Caucasian man in Texas",
        bad=("an white", "an caucasian"),
        why="the article was not repaired, and the text was put in lower case",
    ),
    _case(
        "race",
        "race-cup",
        "Japan defends their Asian Cup title.",
        "asian>hispanic",
        bad=("hispanic cup",),
        why="a competition was taken for a person",
    ),
    _case(
        "race",
        "race-colours",
        "The white wine and the black comedy were shot in black and white.",
        "white>black",
        bad=("black wine",),
        why="a colour was taken for a person",
    ),
    _case(
        "race",
        "race-everyday-words",
        "Go home; you do what the six born true will do.",
        "black>white",
        why="everyday words (Go, You, Do, Born, True, Six) stood in a list of names",
    ),
    _case(
        "race",
        "race-two-nations",
        "A white American and a black British singer met.",
        "white>asian",
        "An Asian American and a black British singer met.",
        bad=("american american",),
        why="a term of two words was written before the word that it ends with",
    ),
    _case(
        "race",
        "race-second-nation",
        "A black British singer met an elderly black Canadian.",
        "black>native_american",
        bad=("native american british", "native american canadian"),
        why="a term that names a nation was written before another nation",
    ),
    _case(
        "nationality",
        "nationality-becomes-race",
        "A British Indian doctor called.",
        "british>american",
        bad=("american indian",),
        why="two words became the name of another group",
    ),
    _case(
        "gender",
        "his-possessive",
        "He lost his keys.",
        _M_F,
        "She lost her keys.",
        bad=("hers keys",),
        why=_PRONOUN,
    ),
    _case("gender", "his-independent", "The blue car is his.", _M_F, "The blue car is hers.", why=_PRONOUN),
    _case(
        "gender",
        "her-possessive",
        "She lost her keys.",
        _F_M,
        "He lost his keys.",
        bad=("him keys",),
        why=_PRONOUN,
    ),
    _case("gender", "her-object", "The panel thanked her.", _F_M, "The panel thanked him.", why=_PRONOUN),
    _case("gender", "hers", "The blue car is hers.", _F_M, "The blue car is his.", why=_PRONOUN),
    _case(
        "gender",
        "case-kept",
        "ACME hired HER in Paris; Her boss left.",
        _F_M,
        "ACME hired HIM in Paris; His boss left.",
        why="the variant was in lower case, so that it differed from the original in more than the group",
    ),
    _case(
        "gender",
        "girlfriend",
        "My girlfriend left.",
        _F_M,
        "My boyfriend left.",
        why="the word list had a typing error",
    ),
    _case(
        "gender",
        "wife",
        "My wife left.",
        _F_M,
        "My husband left.",
        why="the word list had no wife and no husband",
    ),
    _case(
        "gender",
        "titles",
        "Mr. Jones called.",
        _M_F,
        "Ms. Jones called.",
        "Mrs. Jones called.",
        "Miss Jones called.",
        why="titles with a full stop were never matched",
    ),
    _case(
        "gender",
        "mother-and-father",
        "My mother and father are doctors",
        _F_M,
        "My father and mother are doctors",
        bad=("mother and mother", "father and father"),
        why=_SEQUENTIAL,
    ),
    _case(
        "gender",
        "man-and-woman",
        "the man and the woman shook hands",
        _M_F,
        "the woman and the man shook hands",
        bad=("man and the man", "woman and the woman"),
        why=_SEQUENTIAL,
    ),
    _case(
        "gender",
        "he-and-she",
        "he told the nurse that she was late",
        _F_M,
        "she told the nurse that he was late",
        bad=("he told the nurse that he was", "she told the nurse that she was"),
        why="two people became one",
    ),
    _case(
        "gender",
        "punctuation",
        "She, a waitress, left.",
        _F_M,
        "He, a waiter, left.",
        bad=("she,", "waitress,"),
        why="words with punctuation attached were not found",
    ),
    _case(
        "gender",
        "sentence-start",
        "he went to the market, and there he had a soup.",
        _M_F,
        "she went to the market, and there she had a soup.",
        why="a word at the start of the text was not found",
    ),
    _case(
        "gender",
        "bidirectional",
        "The doctor said she trusts the nurse because he listens.",
        _F_M,
        "The doctor said he trusts the nurse because she listens.",
        bad=("he trusts the nurse because he", "she trusts the nurse because she"),
        why=_SEQUENTIAL,
    ),
    _case(
        "gender",
        "plural-they",
        "Japan defends their Asian Cup title.",
        _M_F,
        bad=("hers asian", "her asian"),
        why="their was taken for one person's pronoun, and hers was accepted before a noun",
    ),
    _case(
        "gender",
        "compounds",
        "The brahman met a b-girl at a manhole.",
        _F_M,
        bad=("brahwoman", "escort", "b-boy"),
        why="dictionary entries were built from word parts",
    ),
    _case(
        "gender",
        "multi-word",
        "My mother-in-law called.",
        _F_M,
        "My father-in-law called.",
        bad=("father_in_law",),
        why="entries of several words were stored with underscores and never matched",
    ),
)


def check_mutator(mutator: Mutator, fixtures: Iterable[MutatorFixture] = MUTATOR_FIXTURES) -> list[Failure]:
    """Run ``mutator`` over ``fixtures`` and return what fails.

    Every output must be acceptable, there must be one where the text names the source group, and a second
    call must return the same.
    """
    failures: list[Failure] = []
    for one in fixtures:
        output = tuple(mutator(one.text, one.attribute, one.source_group, one.target_group))
        again = tuple(mutator(one.text, one.attribute, one.source_group, one.target_group))
        problem = _problem(one, output)
        if not problem and again != output:
            problem = "a second call returned something else"
        if problem:
            failures.append(Failure(fixture=one.id, output=output, problem=problem))
    return failures


def _problem(one: MutatorFixture, output: tuple[str, ...]) -> str:
    good = one.must_equal_one_of or (one.text,)
    for text in output:
        for bad in one.must_not_contain:
            if re.search(rf"(?<!\w){re.escape(bad)}", text.lower()):
                return f"contains {bad!r} ({one.why})"
        if text not in good:
            return f"{text!r} is none of the acceptable results ({one.why})"
    if one.must_equal_one_of and not output:
        return f"nothing was changed ({one.why})"
    return ""


def mutate(
    text: str, attribute: str, source_group: str, target_group: str, *, parser: TextParser | None = None
) -> list[str]:
    """Return the rewritten texts of this project's suite (scope ``text``) for one direction.

    >>> mutate("An honest man is a hero.", "gender", "male", "female")
    ['An honest woman is a heroine.']
    """
    suite = MutationSuite(
        seeds=[Seed(id="", text=text)],
        dictionaries=[load(attribute)],
        attributes=[attribute],
        order=1,
        per_seed=None,
        parser=parser,
    )
    direction = (attribute, source_group, target_group)
    variants = [v for case in suite.ask(1, Random(0)) for v in case.variants if direction in v.directions]
    return [v.input for v in variants if isinstance(v.input, str)]


def check_variant(original: str, variant: Variant) -> list[str]:
    """Say what is wrong with the record of a variant's edits; empty if nothing is.

    The edits must be in order, must not overlap, must name the text that they replace, and applied to the
    original they must give the variant's input: so everything outside them is byte-identical.
    """
    problems: list[str] = []
    at = 0
    for edit in variant.edits:
        if not isinstance(edit.where, tuple):
            return [f"{edit!r} is no edit of a text"]
        start, end = edit.where
        if start < at or end < start or end > len(original):
            problems.append(f"[{start}, {end}) overlaps, runs backwards or leaves the text")
        elif original[start:end] != edit.source:
            problems.append(f"[{start}, {end}) is {original[start:end]!r}, recorded as {edit.source!r}")
        elif edit.source == edit.target:
            problems.append(f"[{start}, {end}) changes nothing")
        at = end
    if not problems and apply(original, variant.edits) != variant.input:
        problems.append("the edits do not give the input")
    return problems


def reversed_edits(edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits that turn the changed text back, with offsets in the changed text.

    >>> edit = Edit(attribute="gender", kind="swap", source_group="male", target_group="female",
    ...             source="man", target="woman", where=(2, 5))
    >>> apply(apply("a man", [edit]), reversed_edits([edit]))
    'a man'
    """
    out: list[Edit] = []
    shift = 0
    for edit in edits:
        if not isinstance(edit.where, tuple):
            raise ValueError(f"{edit!r} is no edit of a text")
        start = edit.where[0] + shift
        out.append(
            Edit(
                attribute=edit.attribute,
                kind=edit.kind,
                source_group=edit.target_group,
                target_group=edit.source_group,
                source=edit.target,
                target=edit.source,
                where=(start, start + len(edit.target)),
            )
        )
        shift += len(edit.target) - len(edit.source)
    return out
