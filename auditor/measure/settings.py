"""What the findings of a run depend on besides its observations and claims."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from auditor.core.types import Estimate, Interaction

Variant = tuple[str, str, str]  # model, variant id, format


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the findings depend on besides the table.

    Attributes
    ----------
    deterministic : mapping of str to bool
        By model, as declared.
    noise : mapping of str to Estimate or None
        By model: how often two answers to one prompt differ, where it says something about labels.
    replicates : mapping of str to int
        By model: answers to one prompt.
    confirmed : mapping
        Whether a hidden change came again when its prompts were repeated.
    fresh : mapping
        P value of the exact test of a joint variant against its parts, on the answers to its repeated prompts; None
        where answers are missing.
    interactions : mapping
        What joint variants do beyond their parts, beside placebo edits.
    """

    deterministic: Mapping[str, bool]
    noise: Mapping[str, Estimate | None] = dataclasses.field(default_factory=dict)
    replicates: Mapping[str, int] = dataclasses.field(default_factory=dict)
    confirmed: Mapping[Variant, bool | None] = dataclasses.field(default_factory=dict)
    fresh: Mapping[Variant, float | None] = dataclasses.field(default_factory=dict)
    interactions: Mapping[Variant, Interaction] = dataclasses.field(default_factory=dict)
