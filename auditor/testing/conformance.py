"""Checks that the author of a suite runs: what every suite and every variant has to keep to.

Examples
--------
>>> from auditor.core.types import SourceText
>>> from auditor.perturb.dictionaries import load
>>> from auditor.perturb.mutation import MutationSuite
>>> seeds = [SourceText(id="1", text="She is a nurse.")]
>>> check_suite(lambda: MutationSuite(seeds=seeds, dictionaries=[load("gender")]))
[]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from random import Random

from auditor.core.protocols import Suite
from auditor.core.shown import plural
from auditor.core.types import Case, Variant
from auditor.perturb.edits import apply

MAX_CASES = 200  # of a suite, that are looked at


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A suite, case or variant that breaks the contract, and what is wrong with it."""

    where: str
    problem: str


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
    return [Failure(where=where, problem=problem) for where, problem in problems]


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
