"""A conformance suite for suites, for what rewrites texts, for gates, and for what a run asks.

Each text is a defect that was seen in a published tool, or a sentence that a mutator of this kind has written; they
stand in ``auditor/embedded/conformance/``. A mutator is a function
``(text, attribute, source_group, target_group) -> list of rewritten texts``; `mutate` is this project's own.

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
>>> check_kept({one.id: one.kept for one in SENTENCES})
[]
>>> wrong = {SENTENCES[0].id: ("She was the fifth boy and youngest daughter of a miner.",)}
>>> [failure.problem for failure in check_kept(wrong, SENTENCES[:1])]
["'He was the fifth child and youngest son of a miner.' is missing", "contains 'fifth boy'"]
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
class Sentence:
    """One text, variants of it that a run must keep, and phrases (in lower case, from a word on) that none may hold.

    ``subject``: whether only the words of the person who is judged are changed.
    """

    id: str
    text: str
    kept: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    subject: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One fixture that is not met: what came out, and what is wrong with that."""

    fixture: str
    output: tuple[str, ...]
    problem: str


def gate_fixture(name: str, text: str, *changes: str, good: bool) -> GateFixture:
    """A fixture from changes written ``attribute:old>new source=target``; each takes the next place of its source.

    >>> gate_fixture("", "A boy and a boy.", "gender:male>female boy=girl", good=True).variant.input
    'A girl and a boy.'
    """
    edits, at = [], 0
    for change in changes:
        head, _, words = change.partition(" ")
        attribute, _, groups = head.partition(":")
        old, _, new = groups.partition(">")
        source, _, target = words.partition("=")
        start = next(m.start() for m in re.compile(rf"(?<!\w){re.escape(source)}").finditer(text, at))
        at = start + len(source)
        edit = Edit(
            attribute=attribute, kind=_kind(old, new, source), source_group=old, target_group=new,
            source=source, target=target, where=(start, at),
        )  # fmt: skip
        edits.append(edit)
    return GateFixture(id=name, text=text, edits=tuple(edits), good=good)


def _kind(old: str, new: str, source: str) -> EditKind:
    if old in ("agreement", "unmarked"):
        return "agreement" if old == "agreement" else "marking"
    return "insertion" if not source else "placebo" if old == new else "swap"


def _read(name: str) -> object:
    return reading.load_yaml(reading.shipped("embedded", "conformance", f"{name}.yaml"))


_MUTATORS = msgspec.convert(_read("mutators"), dict[str, tuple[MutatorFixture, ...]])
MUTATOR_FIXTURES = _MUTATORS["mutators"]
PERSON_FIXTURES = _MUTATORS["persons"]
SENTENCES = msgspec.convert(_read("sentences"), tuple[Sentence, ...])
GATE_FIXTURES = tuple(
    gate_fixture(name, *row, good=verdict == "good")
    for verdict, rows in msgspec.convert(_read("gates"), dict[str, dict[str, list[str]]]).items()
    for name, row in rows.items()
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
    text: str, attribute: str, source_group: str, target_group: str, *, parser: TextParser | None = None, who: str = ALL
) -> list[str]:
    """Return the rewritten texts of this project's suite for one direction.

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

    >>> check_mutator(mutate_subject, PERSON_FIXTURES)
    []
    """
    from auditor.text.parse import Parser

    return mutate(text, attribute, source_group, target_group, parser=Parser(), who=SUBJECT)


def check_gate(gate: Gate, fixtures: Iterable[GateFixture] | None = None) -> list[Failure]:
    """Run ``gate`` over ``fixtures`` (None: all) and return those that it judges otherwise."""
    failures = []
    for one in GATE_FIXTURES if fixtures is None else fixtures:
        check = gate.check(one.original, [one.variant])[0]
        if (check.status == "valid") != one.good:
            problem = f"{check.status}: {check.reason}" if one.good else f"{check.status}, and it is wrong"
            failures.append(Failure(fixture=one.id, output=(str(one.variant.input),), problem=problem))
    return failures


def check_kept(kept: Mapping[str, Sequence[str]], sentences: Iterable[Sentence] | None = None) -> list[Failure]:
    """Say of which ``sentences`` (None: all) the texts in ``kept`` lack a good variant or hold a bad one."""
    failures = []
    for one in SENTENCES if sentences is None else sentences:
        texts = tuple(kept.get(one.id, ()))
        low = [text.lower() for text in texts]
        problems = [f"{text!r} is missing" for text in one.kept if text not in texts]
        problems += [
            f"contains {phrase!r}"
            for phrase in one.never
            if any(re.search(rf"(?<!\w){re.escape(phrase)}", text) for text in low)
        ]
        failures += [Failure(fixture=one.id, output=texts, problem=problem) for problem in problems]
    return failures


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
        back = dataclasses.replace(
            edit, source_group=edit.target_group, target_group=edit.source_group, source=edit.target,
            target=edit.source, where=(start, start + len(edit.target)),
        )  # fmt: skip
        out.append(back)
        shift += len(edit.target) - len(edit.source)
    return out


def check_suite(make: Callable[[], Suite], *, seed: int = 7, round_size: int = 16) -> list[Failure]:
    """Ask a suite for cases, twice, and list what breaks its contract; an empty list is what one wants.

    Looked at: the name with its version; that cases come out, in rounds no larger than asked for, without one
    twice; that a second suite makes the same ones; ids (``<case>.o``, ``<case>.…``); that all edits applied to the
    original give the variant's input exactly, so that `Edit.where` counts in the original; that groups and edits
    agree; that every smaller attribute set of a joint variant has a variant; and that ``checks``, where the suite
    brings its own, hold every variant. Whether the texts read well is the matter of
    `auditor.testing.check_variant`.

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
    failures: list[Failure] = []
    first, second = _cases(suite, seed, round_size, failures), _cases(make(), seed, round_size, [])
    if not first:
        failures.append(_failure(suite.name, "ask gives no case"))
    if first != second:
        failures.append(_failure(suite.name, "two suites with the same options and seed make other cases"))
    ids = [case.id for case in first]
    failures += [_failure(i, "two cases have this id") for i in sorted({i for i in ids if ids.count(i) > 1})]
    for case in first:
        failures += [_failure(case.id, problem) for problem in _case(case)]
        failures += [_failure(v.id, problem) for v in case.variants for problem in _variant(case, v)]
    checks = suite.checks
    for v in (v for case in first for v in case.variants):
        try:
            if checks is not None:
                checks[v.id]  # such a mapping may make them when they are asked for
        except KeyError:
            failures.append(_failure(v.id, "the suite brings checks, but none of this variant"))
    return failures


def _failure(what: str, problem: str) -> Failure:
    return Failure(fixture=what, output=(), problem=problem)


def _cases(suite: Suite, seed: int, size: int, failures: list[Failure]) -> list[Case]:
    rng = Random(seed)
    cases: list[Case] = []
    while len(cases) < MAX_CASES:
        asked = list(suite.ask(size, rng))
        if not asked:
            break
        if len(asked) > size:
            failures.append(_failure(suite.name, f"ask({size}) gives {plural(len(asked), 'case')}"))
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
    ids = [v.id for v in case.variants]
    problems += [f"two variants are called {i!r}" for i in sorted({i for i in ids if ids.count(i) > 1})]
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
