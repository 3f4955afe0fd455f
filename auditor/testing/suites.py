"""What every suite has to keep to, checked on its cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import combinations
from random import Random

from auditor.core.counting import plural
from auditor.core.protocols import Suite
from auditor.core.types import Case, Variant
from auditor.testing.conformance import Failure, check_variant

NAME = re.compile(r"(?:[\w-]+/)?[\w.-]+\.v\d+")
SAMPLINGS = ("iid", "directed")
MAX_CASES = 200  # that are looked at


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
    >>> from auditor.perturb.dictionaries import load
    >>> from auditor.perturb.mutation import MutationSuite
    >>> from auditor.core.types import SourceText
    >>> seeds = [SourceText(id="1", text="She is a nurse.")]
    >>> check_suite(lambda: MutationSuite(seeds=seeds, dictionaries=[load("gender")]))
    []
    """
    suite = make()
    failures: list[Failure] = []
    if not NAME.fullmatch(suite.name):
        failures.append(_failure(suite.name, "the name does not end in a version, as acme/titles.v1"))
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
    if (checks := suite.checks) is not None:
        failures += [
            _failure(v.id, "the suite brings checks, but none of this variant")
            for case in first
            for v in case.variants
            if not _has(checks, v.id)
        ]
    return failures


def _has(checks: Mapping[str, object], variant: str) -> bool:
    """Whether a check can be looked up; such a mapping may make them when they are asked for."""
    try:
        checks[variant]
    except KeyError:
        return False
    return True


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
    if case.sampling not in SAMPLINGS:
        problems.append(f"sampling is {case.sampling!r} instead of one of {', '.join(SAMPLINGS)}")
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
