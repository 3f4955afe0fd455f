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

from auditor.core.types import Edit, SourceText, Variant
from auditor.perturb._persons import ALL, SUBJECT, TextParser
from auditor.perturb.dictionaries import load
from auditor.perturb.mutation import MutationSuite, apply
from auditor.testing.fixtures import MUTATOR_FIXTURES, MutatorFixture

Mutator = Callable[[str, str, str, str], list[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One fixture that a mutator does not meet: what it returned, and what is wrong with that."""

    fixture: str
    output: tuple[str, ...]
    problem: str


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
    text: str, attribute: str, source_group: str, target_group: str, *, parser: TextParser | None = None, who: str = ALL
) -> list[str]:
    """Return the rewritten texts of this project's suite (scope ``text``) for one direction.

    ``who`` is as on the command line; ``subject`` needs a parser, and takes *the applicant* for the person.

    >>> mutate("An honest man is a hero.", "gender", "male", "female")
    ['An honest woman is a heroine.']
    """
    suite = MutationSuite(
        seeds=[SourceText(id="", text=text)],
        dictionaries=[load(attribute)],
        attributes=[attribute],
        order=1,
        per_seed=None,
        parser=parser,
        who=who,
        subject="the applicant",
    )
    direction = (attribute, source_group, target_group)
    variants = [v for case in suite.ask(1, Random(0)) for v in case.variants if direction in v.directions]
    return [v.input for v in variants if isinstance(v.input, str)]


def mutate_subject(text: str, attribute: str, source_group: str, target_group: str) -> list[str]:
    """Return the rewritten texts in which the words about the person who is judged are changed, and nobody else's.

    >>> from auditor.testing.fixtures import PERSON_FIXTURES
    >>> check_mutator(mutate_subject, PERSON_FIXTURES)
    []
    """
    from auditor.text.parse import Parser

    return mutate(text, attribute, source_group, target_group, parser=Parser(), who=SUBJECT)


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
