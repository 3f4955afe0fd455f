"""Claims: who is worse off, by how much, and how sure, in five verdicts.

One claim is about one contrast of one family. *net*: the favourable answers (or the number, or the log odds) of one
group minus those of another, whichever was the original. *refusal*: the same of answers that were refused or could
not be read. *instability*: how often an answer changes at all, beyond placebo edits of the same shape.
This module says what claims are; `auditor.measure.families` makes them. docs/statistics.md says what each verdict
means; docs/decisions/0004-claims.md has the rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from auditor.core.types import ClaimVerdict
from auditor.measure.enough import ALPHA
from auditor.measure.sequential import Look, nominal, overall

Family = Literal["net", "instability", "interaction", "refusal"]
Scale = Literal["log_odds", "share", "number"]

UNITS: Mapping[Scale, str] = {"log_odds": "log odds", "share": "points"}
GRADED = "points of 100"  # unit of graded answers
MIN_TEXTS = 6  # no exact two-sided test of five differences reaches 5 %
MIN_WORDS = 4.0  # effective words from which on something is said of a group
PRIMARY = 0.9  # of an attribute's share of alpha, for the pair that its dictionary names first
OTHERS = "others"
USUAL_DELTA = 0.05  # what calls_needed is for where no delta is given


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

    def as_record(self) -> dict[str, Any]:
        """Plain data for ``run.json``."""
        out = dataclasses.asdict(self)
        out["groups"] = list(self.groups)
        out["examples"] = list(self.examples)
        out["shares"] = None if self.shares is None else list(self.shares)
        return out


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What the claims of a run depend on besides its observations.

    Attributes
    ----------
    outcomes : sequence of str
        Labels whose share is compared; none where answers are numbers.
    number, unit : bool, str
        Whether answers are numbers, and what they count in.
    graded : set of str
        Formats whose answers are a number from 0 to 100 besides a label.
    primary : mapping of str to tuple
        Attribute → (group, reference): the pair that its dictionary names first.
    references : mapping of str to str
        Attribute → the group that all others are compared with.
    unmarked : mapping of str to collection
        Attribute → groups that name nobody in particular; they are compared with none.
    delta : float or None
        Largest net difference that counts as none: a share, or an amount where answers are numbers.
    positive_control : mapping of str to bool or None
        By model. Nothing is bounded where the control was not seen.
    alpha : float
        Of each family, all looks together.
    looks : mapping of str to tuple of Look
        Attribute → the looks at its answers so far, this one the last; none where all are in. Intervals then hold at
        all looks together (Jennison and Turnbull 1989).
    """

    outcomes: Sequence[str] = ()
    number: bool = False
    unit: str = ""
    graded: frozenset[str] = frozenset()
    primary: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    unmarked: Mapping[str, Iterable[str]] = field(default_factory=dict)
    delta: float | None = None
    positive_control: Mapping[str, bool | None] = field(default_factory=dict)
    alpha: float = ALPHA
    looks: Mapping[str, tuple[Look, ...]] = field(default_factory=dict)

    def overall(self, attribute: str, p_value: float) -> float:
        """``p_value`` of this look, as one of all looks together."""
        return overall(self.looks.get(attribute, ()), p_value)

    def unit_of(self, scale: Scale) -> str:
        """What claims on ``scale`` count in."""
        return UNITS.get(scale, self.unit if self.number else GRADED)

    def limit(self, unit: str, delta: float | None = None) -> float | None:
        """``delta`` (None: that of the question) for claims in ``unit``: of graded answers, points of 100."""
        share = self.delta if delta is None else delta
        return share * 100 if share is not None and unit == GRADED else share

    def level(self, attribute: str) -> float:
        """Level of an interval, which is 95 % where nobody looked before."""
        return 1 - nominal(self.looks.get(attribute, ()))


class About(NamedTuple):
    """Which answers."""

    model: str
    format: str
