"""What the findings of a run depend on besides its verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping

from auditor.core.types import Interaction
from auditor.measure.summary import Labels


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the findings depend on besides the verdicts.

    Attributes
    ----------
    deterministic : mapping of str to bool
        By model, as declared.
    labels : mapping of str to Labels
        By model: the labels of all replicates, of originals too. Needed for models that are not declared
        deterministic.
    confirmed : mapping
        (model, variant id, format) → whether a hidden change came again when its prompts were repeated.
    directed : container of str
        Ids of cases that may not enter a rate.
    fresh : mapping
        (model, variant id, format) → p value of the exact test of a joint variant against its parts, on the answers
        to its repeated prompts; None where answers are missing.
    interactions : mapping
        (model, variant id, format) → what joint variants do beyond their parts, beside placebo edits.
    """

    deterministic: Mapping[str, bool]
    labels: Mapping[str, Labels] = dataclasses.field(default_factory=dict)
    confirmed: Mapping[tuple[str, str, str], bool | None] = dataclasses.field(default_factory=dict)
    directed: Container[str] = frozenset()
    fresh: Mapping[tuple[str, str, str], float | None] = dataclasses.field(default_factory=dict)
    interactions: Mapping[tuple[str, str, str], Interaction] = dataclasses.field(default_factory=dict)
