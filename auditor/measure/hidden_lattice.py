"""Hidden violations: a joint change that shows, of which no smaller part shows.

The sets of attributes that a variant changes form a lattice. A violation is *hidden* if the variants of all
its proper non-empty subsets, with the same choices, are valid and pass: the set is minimal. For two
attributes this is HInter's definition (Algorithm 1, lines 26–28).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from auditor.core.types import Case, Check, Variant, Verdict

Choices = frozenset[tuple[str, tuple[int, int] | str, str]]


class Lattice:
    """The variants of one case by what was chosen in them.

    Parameters
    ----------
    case : Case
        An original and its variants.
    checks : mapping of str to Check
        By variant id. Empty means that no validity check was run; otherwise a variant without a check does
        not count as valid.
    """

    def __init__(self, case: Case, checks: Mapping[str, Check]) -> None:
        self.case = case
        self.by_id: dict[str, Variant] = {variant.id: variant for variant in case.variants}
        self._by_choices: dict[Choices, str] = {}
        for variant in case.variants:
            self._by_choices.setdefault(variant.choices, variant.id)
        self._checks = checks

    def usable(self, variant_id: str) -> bool:
        """Whether no check found the variant invalid."""
        if not self._checks:
            return True
        check = self._checks.get(variant_id)
        return check is not None and check.status != "invalid"

    def subsets(self, variant: Variant) -> Iterator[tuple[tuple[str, ...], str | None]]:
        """Attribute sets below a variant, smallest first, each with its variant's id.

        The id is None where the case holds no such variant.
        """
        attributes = variant.attributes
        for size in range(1, len(attributes)):
            for subset in combinations(attributes, size):
                part = frozenset(choice for choice in variant.choices if choice[0] in subset)
                yield subset, self._by_choices.get(part)


def mark_hidden(case: Case, verdicts: Sequence[Verdict], checks: Mapping[str, Check]) -> list[Verdict]:
    """Set ``hidden`` on the verdicts of one case.

    Parameters
    ----------
    case : Case
        The case that was judged.
    verdicts : sequence of Verdict
        Its verdicts; those of several models and formats are kept apart.
    checks : mapping of str to Check
        By variant id; empty if no validity check was run.

    Returns
    -------
    list of Verdict
        In the same order. ``hidden`` is False for a joint variant that passes, or a valid subset of which
        violates; True for a violation all of whose subsets pass and none of which a check found invalid
        (one that a check could not judge counts as valid, as in all rates); None for atomic variants, and where a
        subset is missing, invalid, skipped or inconclusive, or the joint variant itself is.
    """
    lattice = Lattice(case, checks)
    outcomes = {(v.model, v.format, v.variant_id): v.outcome for v in verdicts}
    return [replace(v, hidden=_hidden(lattice, v, outcomes)) for v in verdicts]


def _hidden(lattice: Lattice, verdict: Verdict, outcomes: Mapping[tuple[str, str, str], str]) -> bool | None:
    if verdict.order < 2 or not lattice.usable(verdict.variant_id):
        return None
    if verdict.outcome != "violation":
        return False if verdict.outcome == "pass" else None
    settled = True
    for _, variant_id in lattice.subsets(lattice.by_id[verdict.variant_id]):
        outcome = None
        if variant_id is not None and lattice.usable(variant_id):
            outcome = outcomes.get((verdict.model, verdict.format, variant_id))
        if outcome == "violation":
            return False
        settled = settled and outcome == "pass"
    return True if settled else None
