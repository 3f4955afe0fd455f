"""Ask joint changes first and their parts only after a change: more hidden changes for the same calls, and no rates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from auditor.core.types import Case, SourceText, Variant, Verdict
from auditor.perturb.mutation import MutationSuite


class JointFirst(MutationSuite):
    """The mutants of texts that allow several attributes to change together, marked for this order.

    Its cases are directed: which parts are asked depends on answers, so they enter no rate and have no placebos.
    """

    name = "joint-first.v1"

    def cases(self, seeds: Sequence[SourceText]) -> list[Case]:
        """Make the cases of some texts; those without a joint change are left out and counted."""
        made = super().cases(seeds)
        joint = [case for case in made if any(v.order > 1 for v in case.variants)]
        if left_out := len(made) - len(joint):
            self.skipped["no two attributes together"] += left_out
        return list(map(_marked, joint))


def _marked(case: Case) -> Case:
    """Leave out single changes that are part of no joint one."""
    needed = [v for v in case.variants if v.order > 1 or _part_of(v, case.variants)]
    return dataclasses.replace(case, sampling="directed", variants=tuple(needed))


def _part_of(variant: Variant, others: Sequence[Variant]) -> bool:
    return any(variant.choices < other.choices for other in others)


def first(case: Case) -> list[Variant]:
    """Return what is asked at once, with one answer each: the original, and variants that are part of no other."""
    return [case.original, *(v for v in case.variants if not _part_of(v, case.variants))]


def again(case: Case, said: Sequence[Verdict]) -> list[Variant]:
    """Return what is asked as often as the plan says: variants that differ or have no label, and the original."""
    unlike = {verdict.variant_id for verdict in said if verdict.outcome != "pass"}
    return [case.original, *(v for v in case.variants if v.id in unlike)] if unlike else []


def later(case: Case, said: Sequence[Verdict]) -> list[Variant]:
    """Return the parts of the joint variants that changed the answer."""
    changed = {verdict.variant_id for verdict in said if verdict.outcome == "violation"}
    joint = [v for v in case.variants if v.id in changed]
    return [v for v in case.variants if _part_of(v, joint)]
