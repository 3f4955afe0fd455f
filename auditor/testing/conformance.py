"""Conformance checks for suites, mutators and gates.

The texts are in ``auditor/embedded/conformance/``: defects of published tools, and sentences that a mutator got wrong.
A mutator is a function ``(text, attribute, source_group, target_group) -> list of texts``; `mutate` is this project's.

Examples
--------
>>> check_mutator(mutate)
[]
>>> naive = lambda text, attribute, source, target: [text.replace("his", "hers")]
>>> check_mutator(naive, [f for f in MUTATOR_FIXTURES if f.id == "his-possessive"])[0].output
('He lost hers keys.',)
>>> from auditor.perturb.gate.constructs import Constructs
>>> from auditor.text.parse import Parser
>>> check_gate(Constructs(parser=Parser()))
[]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from random import Random

import msgspec

from auditor.core import reading
from auditor.core.protocols import Gate, Suite
from auditor.core.shown import plural
from auditor.core.types import Case, Edit, EditKind, SourceText, Variant
from auditor.perturb.dictionaries import load
from auditor.perturb.edits import apply
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.persons import ALL, SUBJECT, TextParser

Mutator = Callable[[str, str, str, str], list[str]]
MAX_CASES = 200  # of a suite, that are looked at


@dataclass(frozen=True, kw_only=True, slots=True)
class MutatorFixture:
    """One text and the acceptable results.

    ``must_equal_one_of`` is empty where the text does not name the source group: then no result and the text itself are
    acceptable. ``must_not_contain`` has phrases of published wrong results, in lower case and from a word on. ``why``
    says what went wrong.
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
class GateFixture:
    """One text with the edits of a variant, and whether a careful writer could have written the variant."""

    id: str
    text: str
    edits: tuple[Edit, ...]
    good: bool

    @property
    def original(self) -> Variant:
        """The text as it was."""
        return Variant(id="fixture.o", input=self.text)

    @property
    def variant(self) -> Variant:
        """The text with the edits."""
        return Variant(id="fixture.v0", input=apply(self.text, self.edits), edits=self.edits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A fixture that is not met, the output, and what is wrong with it."""

    fixture: str
    output: tuple[str, ...]
    problem: str


def gate_fixture(name: str, text: str, *changes: str, good: bool) -> GateFixture:
    """Return a fixture from changes like ``attribute:old>new source=target``; each takes the next place of its source.

    >>> gate_fixture("", "A boy and a boy.", "gender:male>female boy=girl", good=True).variant.input
    'A girl and a boy.'
    """
    edits: list[Edit] = []
    at = 0
    for change in changes:
        attribute, old, new, source, target = re.match(r"(.*?):(.*?)>(\S*) (.*?)=(.*)", change).groups()  # type: ignore[union-attr]
        start, at = next(m.span() for m in re.compile(rf"(?<!\w){re.escape(source)}").finditer(text, at))
        kind: EditKind = "agreement" if old == "agreement" else "marking" if old == "unmarked" else "swap"
        edits.append(
            Edit(
                attribute=attribute,
                kind="placebo" if old == new else kind,
                source_group=old,
                target_group=new,
                source=source,
                target=target,
                where=(start, at),
            )
        )
    return GateFixture(id=name, text=text, edits=tuple(edits), good=good)


def _read(name: str) -> object:
    return reading.load_yaml(reading.shipped("embedded", "conformance", f"{name}.yaml"))


_MUTATORS = msgspec.convert(_read("mutators"), dict[str, tuple[MutatorFixture, ...]])
MUTATOR_FIXTURES = _MUTATORS["mutators"]
PERSON_FIXTURES = _MUTATORS["persons"]
GATE_FIXTURES = tuple(
    gate_fixture(name, *row, good=verdict == "good")
    for verdict, rows in msgspec.convert(_read("gates"), dict[str, dict[str, list[str]]]).items()
    for name, row in rows.items()
)


def check_mutator(mutator: Mutator, fixtures: Iterable[MutatorFixture] = MUTATOR_FIXTURES) -> list[Failure]:
    """Run ``mutator`` over ``fixtures`` and return the failures.

    Every output must be acceptable, there must be one where the text names the source group, and a second call must
    return the same.
    """
    failures: list[Failure] = []
    for one in fixtures:
        output, again = (tuple(mutator(one.text, one.attribute, one.source_group, one.target_group)) for _ in range(2))
        problem = _problem(one, output)
        if not problem and again != output:
            problem = "a second call returned something else"
        if problem:
            failures.append(Failure(fixture=one.id, output=output, problem=problem))
    return failures


def _problem(one: MutatorFixture, output: tuple[str, ...]) -> str:
    for text in output:
        for bad in one.must_not_contain:
            if re.search(rf"(?<!\w){re.escape(bad)}", text.lower()):
                return f"contains {bad!r} ({one.why})"
        if text not in (one.must_equal_one_of or (one.text,)):
            return f"{text!r} is not an acceptable result ({one.why})"
    return f"nothing was changed ({one.why})" if one.must_equal_one_of and not output else ""


def mutate(
    text: str, attribute: str, source_group: str, target_group: str, *, parser: TextParser | None = None, who: str = ALL
) -> list[str]:
    """Return the texts that this project's suite makes for one direction; ``who="subject"`` needs a parser.

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
    """Return the texts in which only words about the applicant are changed.

    >>> check_mutator(mutate_subject, PERSON_FIXTURES)
    []
    """
    from auditor.text.parse import Parser

    return mutate(text, attribute, source_group, target_group, parser=Parser(), who=SUBJECT)


def check_gate(gate: Gate, fixtures: Iterable[GateFixture] | None = None) -> list[Failure]:
    """Run ``gate`` over ``fixtures`` (None: all) and return those that it misjudges."""
    failures = []
    for one in GATE_FIXTURES if fixtures is None else fixtures:
        check = gate.check(one.original, [one.variant])[0]
        if (check.status == "valid") != one.good:
            problem = f"{check.status}: {check.reason}" if one.good else f"{check.status}, and it is wrong"
            failures.append(Failure(fixture=one.id, output=(str(one.variant.input),), problem=problem))
    return failures


def check_variant(original: str, variant: Variant) -> list[str]:
    """Return what is wrong with a variant's edits.

    They must be in order, must not overlap, must name the text that they replace, and applied to the original they must
    give the variant's input.
    """
    problems: list[str] = []
    at = 0
    for edit in variant.edits:
        if not isinstance(edit.where, tuple):
            return [f"{edit!r} is not an edit of a text"]
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


def check_suite(make: Callable[[], Suite], *, seed: int = 7, round_size: int = 16) -> list[Failure]:
    """Ask a suite for cases, twice, and return what breaks its contract.

    Cases come in rounds no larger than asked for, and a second suite makes the same ones. Ids are unique. Edits of the
    original give the variant's input, and groups agree with edits. Every smaller attribute set of a joint variant has
    a variant. ``checks``, where the suite has its own, include every variant.

    Parameters
    ----------
    make : callable
        Builds the suite anew.
    seed : int
        Of the generator that the suite is asked with.
    round_size : int
        Cases that are asked for at once.

    Examples
    --------
    >>> seeds = [SourceText(id="1", text="She is a nurse.")]
    >>> check_suite(lambda: MutationSuite(seeds=seeds, dictionaries=[load("gender")]))
    []
    """
    suite = make()
    problems: list[tuple[str, str]] = []
    first, second = _cases(suite, seed, round_size, problems), _cases(make(), seed, round_size, [])
    if not first:
        problems.append((suite.name, "ask gives no case"))
    if first != second:
        problems.append((suite.name, "two suites with the same options and seed make other cases"))
    problems += [(i, "two cases have this id") for i in _twice(case.id for case in first)]
    for case in first:
        problems += [(case.id, problem) for problem in _case(case)]
        for variant in case.variants:
            problems += [(variant.id, problem) for problem in _variant(case, variant)]
            try:
                if suite.checks is not None:
                    suite.checks[variant.id]  # such a mapping may make them when they are asked for
            except KeyError:
                problems.append((variant.id, "the suite brings checks, but none of this variant"))
    return [Failure(fixture=fixture, output=(), problem=problem) for fixture, problem in problems]


def _twice(ids: Iterable[str]) -> list[str]:
    return sorted(i for i, n in Counter(ids).items() if n > 1)


def _cases(suite: Suite, seed: int, size: int, problems: list[tuple[str, str]]) -> list[Case]:
    rng = Random(seed)
    cases: list[Case] = []
    while len(cases) < MAX_CASES:
        asked = list(suite.ask(size, rng))
        if not asked:
            break
        if len(asked) > size:
            problems.append((suite.name, f"ask({size}) gives {plural(len(asked), 'case')}"))
        cases += asked
        suite.tell([])
    return cases


def _case(case: Case) -> list[str]:
    problems = []
    if case.original.id != f"{case.id}.o":
        problems.append(f"the original is called {case.original.id!r} instead of '{case.id}.o'")
    if case.original.edits:
        problems.append("the original has edits")
    if case.sampling not in ("iid", "directed"):
        problems.append(f"sampling is {case.sampling!r} instead of one of iid, directed")
    if not case.variants:
        problems.append("it has no variant")
    problems += [f"two variants are called {i!r}" for i in _twice(v.id for v in case.variants)]
    sets = {v.attributes for v in case.variants}
    for one in sorted(s for s in sets if len(s) > 1):
        lost = [s for k in range(1, len(one)) for s in combinations(one, k) if s not in sets]
        problems += [f"{' × '.join(one)} is changed, but {' × '.join(s)} alone is not" for s in lost]
    return problems


def _variant(case: Case, variant: Variant) -> list[str]:
    problems = []
    if not variant.id.startswith(f"{case.id}."):
        problems.append(f"its id does not begin with '{case.id}.'")
    if not variant.edits:
        return [*problems, "it has no edit"]
    text = case.original.input
    if not isinstance(text, str) or not isinstance(variant.input, str):
        return problems
    for edit in variant.edits:
        named = variant.groups.get(edit.attribute, "").split("+")  # a text may name several
        if edit.kind != "agreement" and edit.target_group not in named:
            problems.append(f"groups[{edit.attribute!r}] lacks {edit.target_group!r}, where its edit leads to")
    return problems + check_variant(text, variant)
