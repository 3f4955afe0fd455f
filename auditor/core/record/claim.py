"""Claims and cautions: what a record says of the groups, and of the answers that this rests on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from auditor.core.types import ClaimVerdict

Family = Literal["net", "instability", "interaction", "refusal"]
Scale = Literal["log_odds", "share", "number"]
Code = Literal["constant_answers", "one_label", "unreadable_answers", "control_not_seen", "model_changed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One contrast with its verdict: the contract of ``claims`` in ``run.json``.

    Attributes
    ----------
    estimate : float or None
        Group minus reference, on ``scale``.
    low, high : float or None
        95 % interval for the group: texts and words random.
    words_estimate, words_low, words_high : float or None
        The same for these words: texts random.
    texts, words : int, float
        Texts with both groups; effective number of words.
    shares : tuple of float or None
        Share of the label for the group and for the reference, for a label.
    share_difference, share_low, share_high : float or None
        The difference of shares where ``scale`` is the log odds: what delta is compared with.
    p_value, p_adjusted : float or None
        Two-sided, for the group; adjusted within the family (weighted Holm).
    carriers : mapping of str to int
        Of the texts, those where words of the text state the group, those where a name does, or a statement.
    examples : tuple of str
        Variant ids, the clearest first.
    calls_needed : int or None
        Calls in all after which a difference of delta (else 5 points) would be shown with 80 %, as far as texts decide.
    """

    family: Family
    attribute: str
    groups: tuple[str, ...]
    label: str
    model: str
    format: str
    scale: Scale
    unit: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    words_estimate: float | None = None
    words_low: float | None = None
    words_high: float | None = None
    texts: int = 0
    words: float = 0.0
    shares: tuple[float, float] | None = None
    share_difference: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    p_value: float | None = None
    p_words: float | None = None
    p_adjusted: float | None = None
    verdict: ClaimVerdict = "not_tested"
    why: str = ""
    delta: float | None = None
    calls_needed: int | None = None
    carriers: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    def as_record(self) -> dict[str, object]:
        """Plain data for ``run.json``."""
        out = dataclasses.asdict(self)
        out["groups"] = list(self.groups)
        out["examples"] = list(self.examples)
        out["shares"] = None if self.shares is None else list(self.shares)
        return out


@dataclass(frozen=True, kw_only=True, slots=True)
class Caution:
    """One reason to be careful with the figures of one model.

    ``n`` of ``of`` answers are alike or could not be read (``control_not_seen``: pairs of control texts that
    were answered differently; ``model_changed``: names that the server gave, of that many answers). ``label`` is the
    answer that is given so often, None for texts, or the names. ``format`` is empty
    where the model was asked in one format, or where all are meant.
    """

    code: Code
    model: str
    format: str
    n: int
    of: int
    label: str | None = None
