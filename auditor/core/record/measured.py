"""What a run of texts measured: its claims and cautions, and sections that a record has where the run measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from auditor.core.record.base import Part, Step
from auditor.core.types import ClaimVerdict, Estimate

Family = Literal["net", "omnibus", "instability", "interaction", "refusal"]
Scale = Literal["log_odds", "share", "number"]
Scope = Literal["group", "words", "wording"]
Code = Literal[
    "constant_answers", "one_label", "scores_alone", "unreadable_answers", "control_not_seen", "model_changed"
]
FAMILIES: dict[str, Family] = {  # of findings, by how their codes begin
    "DIR": "net",
    "SCO": "net",
    "REF": "refusal",
    "MUT": "instability",
    "INS": "instability",  # of version 0.2
    "INT": "interaction",
    "OMN": "omnibus",
}


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
        The same with exactly these words: texts random. A detail; no verdict rests on it.
    texts, words : int, float
        Texts with both groups; effective number of words (tokens).
    scope : str
        Whom a verdict is about: the "group"; its "words", where these are few; the "wording" that was recorded, where
        nothing tells what another wording does.
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
    scope: Scope = "group"
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


class Gold(Part, frozen=True, kw_only=True):
    """How many texts carry a label, and how many of these labels the task knows."""

    given: int = 0
    mapped: int = 0
    unmapped: int = 0
    missing: int = 0
    examples: tuple[str, ...] = ()


class Measures(Part, frozen=True, kw_only=True):
    """Answers against the labels in the data, of some texts."""

    attribute: str = ""
    group: str = ""
    n: int = 0
    accuracy: Estimate | None = None


class ByLabel(Part, frozen=True, kw_only=True):
    """Share of changed answers where the original was answered like its label, and where not."""

    right: Estimate | None = None
    wrong: Estimate | None = None


class ModelPerformance(Part, frozen=True, kw_only=True):
    """The answers of one model against the labels."""

    model: str
    format: str
    overall: Measures
    groups: tuple[Measures, ...] = ()
    violations: ByLabel = ByLabel()


class Performance(Part, frozen=True, kw_only=True):
    """Answers against the labels in the data, or why they were not compared."""

    status: str = ""
    reason: str | None = None
    source: str | None = None
    gold: Gold | None = None
    models: tuple[ModelPerformance, ...] | None = None


class Bounds(Part, frozen=True, kw_only=True):
    """A share with its interval."""

    value: float
    low: float
    high: float


class Token(Part, frozen=True, kw_only=True):
    """How often answers changed with one word: the share of cases with a violation, with its exact 95 % interval.

    ``index`` is the anomaly index within the family, ``anomalous`` whether it is beyond 2 (as published). ``p`` is
    exact, against the pooled rate of the family; ``q`` is adjusted over all tokens of the model. A token
    ``stands_out`` where ``q`` is at most 0.05 and its rate above the family's.
    """

    family: str
    token: str
    group: str
    n: int
    errors: int
    rate: float
    low: float
    high: float
    stands_out: bool
    index: float | None = None
    p: float | None = None
    q: float | None = None
    anomalous: bool | None = None


class TokenFamily(Part, frozen=True, kw_only=True):
    """Words that are compared with each other.

    ``enough`` is about how many generated cases (``--limit``) give the family an index; None if it has one, or has too
    few words for it.
    """

    name: str
    tokens: int = 0
    median: float | None = None
    mad: float | None = None
    reason: str | None = None
    enough: int | None = None


class Tokens(Part, frozen=True, kw_only=True):
    """The diagnosis of words for one model."""

    model: str
    format: str
    unit: str
    tokens: tuple[Token, ...]
    families: tuple[TokenFamily, ...] = ()


class Phase(Part, frozen=True, kw_only=True):
    """What one phase of a grammar suite made of one model."""

    model: str
    phase: str
    cases: int
    violating_cases: int
    unjudged_cases: int
    tests: int
    violations: int
    sampling: str = ""


class Coverage(Part, frozen=True, kw_only=True):
    """How much of a grammar was covered."""

    terminals: int
    terminals_covered: int
    terminal_share: float | None = None


class Ceiling(Part, frozen=True, kw_only=True):
    """At most this share of all sentences has a variant with a changed answer."""

    level: float
    share_at_most: float
    population: int
    found: int
    drawn: int


class Generation(Part, frozen=True, kw_only=True):
    """How the cases of a grammar came about."""

    grammar: str = "not recorded"
    generation: str = ""
    sentences: int | None = None
    derivations: int | None = None
    phases: tuple[Phase, ...] = ()
    coverage: dict[str, Coverage] = msgspec.field(default_factory=dict)
    bound: dict[str, Ceiling] = msgspec.field(default_factory=dict)


class Tolerance(Part, frozen=True, kw_only=True):
    """Texts with a variant beyond one tolerance."""

    model: str
    format: str
    epsilon: float
    cases: int
    rate: Estimate | None = None


class Probability(Part, frozen=True, kw_only=True):
    """What the probability oracle compared."""

    label: str
    reference: str = ""
    rows: tuple[Tolerance, ...] = ()


class Scores(Part, frozen=True, kw_only=True):
    """How amounts were compared."""

    unit: str = ""
    tolerance: float | None = None
    noise: dict[str, float | None] = msgspec.field(default_factory=dict)


class Difference(Part, frozen=True, kw_only=True):
    """One metric of texts, in one direction or in all: a mean paired difference with its tests."""

    metric: str
    model: str
    format: str
    unit: str = ""
    value: float = 0.0  # mean over texts
    low: float | None = None  # of its t interval by text; None where all texts differ by one amount
    high: float | None = None
    level: float = 0.95
    n: int = 0  # texts
    n_variants: int = 0
    discordant: int = 0  # texts with a difference other than 0
    attributes: tuple[str, ...] = ()
    directions: tuple[Step, ...] = ()  # none where all are taken
    noise: float | None = None  # how far two answers to one prompt lie apart, in the same unit
    placebo: float | None = None  # mean difference of placebo variants of the same texts; None where too few
    excess: float | None = None  # mean difference less that of placebo variants of the text
    p_placebo: float | None = None  # of the excess, by sign flips
    n_placebo: int = 0  # texts of the excess
    p_sign: float | None = None  # against the model's own noise
    p_value: float | None = None  # the larger one of the two
    p_adjusted: float | None = None  # after Holm
    verdict: ClaimVerdict = "not_tested"
    exemplars: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class JudgeControls(Part, frozen=True, kw_only=True):
    """The judge's own error."""

    n: int = 0
    right: int = 0
    wrong: int = 0
    undecided: int = 0
    unreadable: int = 0


class JudgePairs(Part, frozen=True, kw_only=True):
    """How the pairs of a run came out."""

    pairs: int = 0
    inconsistent: int = 0
    first_named: int = 0
    named: int = 0


class Judge(Part, frozen=True, kw_only=True):
    """What is known of the judge of texts."""

    model: str = ""
    trusted: bool = False
    controls: JudgeControls | None = None
    pairs: JudgePairs = JudgePairs()
    asked: int = 0
    cached: int = 0
    failed: int = 0
    tokens_in: int | None = None
    measured_usd: float | None = None


class TextPairs(Part, frozen=True, kw_only=True):
    """Free text in pairs."""

    masked: str = ""
    judge: Judge = Judge()
    rows: tuple[Difference, ...] = ()


class ToldApart(Part, frozen=True, kw_only=True):
    """Whether the texts of one model about two groups can be told apart, in a sentence."""

    model: str
    attribute: str
    groups: tuple[str, ...]
    shown: bool
    said: str


class DiscardedRow(Part, frozen=True, kw_only=True):
    """Answers to variants that the validity check discarded, beside valid ones."""

    model: str
    format: str
    attributes: tuple[str, ...]
    estimate: Estimate
    changes: int
    changes_valid: int
    estimate_valid: Estimate | None = None
    share_of_all_changes: float | None = None


class Discarded(Part, frozen=True, kw_only=True):
    """What the discarded variants would have added."""

    rows: tuple[DiscardedRow, ...] = ()
    exemplars: tuple[str, ...] = ()


# -- the protocol hinter -----------------------------------------------------------------------------------------------


class Level(Part, frozen=True, kw_only=True):
    """Counts of mutants of one order under the HInter protocol."""

    generated: int = 0
    valid: int = 0  # that the invariant kept (RQ3.1)
    discarded: int = 0  # that it rejected
    tested: int = 0  # valid mutants that were judged
    errors: int = 0  # of these, with another label than their original
    originals: int = 0  # texts with a tested mutant
    originals_with_error: int = 0
    discarded_tested: int = 0  # as `tested` and `errors`, where the run asks about discarded ones (RQ3.2)
    discarded_errors: int = 0


class Split(Part, frozen=True, kw_only=True):
    """Joint errors by their atomic parts, and atomic errors by the joint mutants that they are part of (RQ1, RQ4.1)."""

    hidden: int = 0  # joint errors, all atomic mutants of which are valid and no errors
    joint_only: int = 0  # joint errors without an atomic error among their parts
    joint_with_atomic: int = 0
    atomic_only: int = 0  # atomic errors that are part of joint mutants, none of which is an error
    atomic_with_joint: int = 0


class HinterPair(Split, frozen=True, kw_only=True):
    """The paper's measures of one pair of attributes."""

    attributes: tuple[str, ...]
    joint: Level
    atomic: dict[str, Level]


class HinterTotals(Split, frozen=True, kw_only=True):
    """One model over all pairs of attributes, or several models added up."""

    joint: Level = Level()  # mutants of two attributes
    atomic: Level = Level()  # of one
    both: Level = Level()


class HinterFigures(Part, frozen=True, kw_only=True):
    """Counts of the paper's tables and figures."""

    models: dict[str, HinterTotals] = msgspec.field(default_factory=dict)
    all: HinterTotals = HinterTotals()
