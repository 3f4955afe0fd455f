"""Claims: who is worse off, by how much, and how sure, in five verdicts.

One claim is about one contrast of one family. *net*: the favourable answers (or the number, or the log odds) of one
group minus those of another, whichever was the original. *refusal*: the same of answers that were refused or could
not be read. *instability*: how often an answer changes at all, beyond placebo edits of the same shape.
This module says what claims are; `auditor.measure.families` makes them. docs/statistics.md says what each verdict
means; docs/decisions/0004-claims.md has the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from auditor.core.record.measured import Claim as Claim
from auditor.core.record.measured import Family as Family
from auditor.core.record.measured import Scale as Scale
from auditor.measure.enough import ALPHA
from auditor.measure.sequential import Look, nominal, overall

UNITS: Mapping[Scale, str] = {"log_odds": "log odds", "share": "points"}
GRADED = "points of 100"  # unit of graded answers
MIN_TEXTS = 6  # no exact two-sided test of five differences reaches 5 %
MIN_WORDS = 4.0  # effective words from which on something is said of a group
PRIMARY = 0.9  # of an attribute's share of alpha, for the pair that its dictionary names first
OTHERS = "others"
USUAL_DELTA = 0.05  # what calls_needed is for where no delta is given


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
