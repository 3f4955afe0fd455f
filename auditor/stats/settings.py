"""What the findings of a run depend on besides its verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence

from auditor.stats import directions as signed
from auditor.stats.claims import ALPHA
from auditor.stats.noise import PERMUTATIONS
from auditor.stats.summary import Labels
from auditor.types import Interaction, Verdict


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
    delta : float or None
        The largest rate that the user calls negligible.
    positive_control : mapping of str to bool or None
        By model: whether a change that must show was seen. A model that is not named was not tried.
    confirmed : mapping
        (model, variant id, format) → whether a hidden change came again when its prompts were repeated.
    directed : container of str
        Ids of cases that may not enter a rate.
    placebos : sequence of Verdict
        Of placebo variants; ``attributes`` are those whose edits they copy.
    answers : mapping of str to Labels
        By model: as ``labels``, of every model. Needed for signed differences.
    outcomes : sequence of str
        The labels whose share is compared between groups.
    silent : mapping of str to Silent
        By model: the share of answers that were refused or unreadable.
    fresh : mapping
        (model, variant id, format) → p value of the exact test of a joint variant against its parts, on the answers
        to its repeated prompts; None where answers are missing.
    interactions : mapping
        (model, variant id, format) → what joint variants do beyond their parts, beside placebo edits.
    seed : int
        Of the permutation tests.
    alpha : float
        Significance level for the family of all claims of the run.
    permutations : int
        For each test at first. Where the family is so large that they could show nothing, tests that all but
        none of them reach are drawn again with more.
    """

    deterministic: Mapping[str, bool]
    labels: Mapping[str, Labels] = dataclasses.field(default_factory=dict)
    delta: float | None = None
    positive_control: Mapping[str, bool | None] = dataclasses.field(default_factory=dict)
    confirmed: Mapping[tuple[str, str, str], bool | None] = dataclasses.field(default_factory=dict)
    directed: Container[str] = frozenset()
    placebos: Sequence[Verdict] = ()
    answers: Mapping[str, Labels] = dataclasses.field(default_factory=dict)
    outcomes: Sequence[str] = ()
    silent: Mapping[str, signed.Silent] = dataclasses.field(default_factory=dict)
    fresh: Mapping[tuple[str, str, str], float | None] = dataclasses.field(default_factory=dict)
    interactions: Mapping[tuple[str, str, str], Interaction] = dataclasses.field(default_factory=dict)
    seed: int = 7
    alpha: float = ALPHA
    permutations: int = PERMUTATIONS
