"""The smallest sets of attributes whose change still shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auditor.diagnosis.hidden import Lattice
from auditor.types import Case, Check, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Minimal:
    """A violating set of attributes, no judged proper subset of which violates.

    Attributes
    ----------
    joint : str
        Id of the largest variant whose choices it is a part of.
    variant_id : str
        The variant that changes just this set.
    attributes : tuple of str
        The set.
    certain : bool
        Whether all its proper non-empty subsets were valid and passed; False if one could not be judged.
    """

    joint: str
    variant_id: str
    attributes: tuple[str, ...]
    certain: bool
    model: str = ""
    format: str = ""


def minimal_sets(case: Case, verdicts: Sequence[Verdict], checks: Mapping[str, Check]) -> list[Minimal]:
    """Minimal violating sets of a case, for each joint choice, model and format.

    Parameters
    ----------
    case : Case
        The case that was judged.
    verdicts : sequence of Verdict
        Its verdicts.
    checks : mapping of str to Check
        By variant id; empty if no validity check was run.

    Returns
    -------
    list of Minimal
        By model, format, joint variant, then size. A joint choice is one that is no part of a larger one in
        this case.
    """
    lattice = Lattice(case, checks)
    choices = [variant.choices for variant in case.variants]
    largest = [v for v in case.variants if not any(v.choices < other for other in choices)]
    found: list[Minimal] = []
    for model, name in sorted({(v.model, v.format) for v in verdicts}):
        outcomes: dict[str, str] = {
            v.variant_id: v.outcome
            for v in verdicts
            if (v.model, v.format) == (model, name) and lattice.usable(v.variant_id)
        }
        for joint in largest:
            hit: list[set[str]] = []
            judged: dict[frozenset[str], bool] = {}
            for subset, variant_id in lattice.subsets(joint, proper=False):
                outcome = None if variant_id is None else outcomes.get(variant_id)
                judged[frozenset(subset)] = outcome in ("pass", "violation")
                if outcome != "violation" or any(smaller <= set(subset) for smaller in hit):
                    continue
                assert variant_id is not None
                hit.append(set(subset))
                below = [done for part, done in judged.items() if part < set(subset)]
                found.append(
                    Minimal(
                        joint=joint.id,
                        variant_id=variant_id,
                        attributes=subset,
                        certain=all(below),
                        model=model,
                        format=name,
                    )
                )
    return found
